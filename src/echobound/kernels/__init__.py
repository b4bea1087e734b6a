"""Evaluate a block of draws: the reference in plain NumPy says what is right, the others are fast."""

from echobound.errors import InputError
from echobound.kernels.base import Kernel, Rows, Status, Trial, row_dtype
from echobound.kernels.problem import Fold, Problem, Segment, hold_out

__all__ = ["Fold", "Kernel", "Problem", "Rows", "Segment", "Status", "Trial", "get_kernel", "hold_out", "row_dtype"]


def get_kernel(name: str = "cpu") -> Kernel:
    """Look a kernel up by name; the fast ones are loaded on first use.

    Examples
    --------
    >>> get_kernel("reference").name
    'reference'
    """
    if name == "reference":
        from echobound.kernels.reference import ReferenceKernel

        return ReferenceKernel()
    if name == "cpu":
        from echobound.kernels.cpu import CPUKernel

        return CPUKernel()
    raise InputError(f"unknown kernel {name!r}: known are cpu, reference")
