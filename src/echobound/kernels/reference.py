"""The reference kernel: plain NumPy, one network after the other. It defines what is right."""

from __future__ import annotations

from typing import Any

from echobound.kernels.base import TrialKernel
from echobound.network.training import PlainTools


class ReferenceKernel(TrialKernel):
    """Evaluate draws in plain NumPy."""

    name = "reference"

    def tools(self, draw: Any) -> PlainTools:
        """Those in plain NumPy."""
        return PlainTools()
