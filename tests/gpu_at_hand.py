"""Whether tests of the GPU kernel can run here: they skip without one, and fail where ECHOBOUND_REQUIRE_GPU=1."""

import os

import pytest

from echobound.errors import MissingExtra
from echobound.kernels.gpu import gpu_problem


def reason():
    try:
        return gpu_problem()
    except MissingExtra as error:
        return str(error)


needs_gpu = pytest.mark.skipif(bool(reason()) and os.environ.get("ECHOBOUND_REQUIRE_GPU") != "1", reason=reason())
