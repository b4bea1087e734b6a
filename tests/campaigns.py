"""Campaigns of networks, in one call: what most tests of engines and ledgers need."""

import os
from pathlib import Path

from echobound.campaign import Computing, run_campaign
from echobound.candidates import Networks
from echobound.kernels import get_kernel

# The environment of a command whose law broad does not clip: with limits no network diverges.
UNCLIPPED = {
    "PYTHONPATH": os.pathsep.join(
        [str(Path(__file__).parent / "unclipped"), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
}


def campaign(problem, indices, ledger, *, kernel="cpu", workers=None, engine="threads", **options):
    """Score networks of a problem on an engine that is opened for it, unless one is lent."""
    code = get_kernel(kernel) if isinstance(kernel, str) else kernel
    with Computing(workers=workers, engine=engine).open_engine() as opened:
        return run_campaign(Networks(code, problem), indices, ledger, opened, **options)


def same(one, other):
    """Whether two tables are equal bit for bit, but for the seconds their rows took."""
    return all((one[name] == other[name]).all() for name in one.dtype.names if name != "seconds")
