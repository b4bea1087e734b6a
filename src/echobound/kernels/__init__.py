"""Draw, train and score networks: the reference kernel in plain NumPy defines what is right, the others are fast."""

from importlib import import_module
from typing import Any

from echobound.errors import InputError, MissingExtra
from echobound.kernels.base import Kernel, Status, Trial, row_dtype
from echobound.kernels.problem import Fold, Problem, Segment, blocks_in_turn, hold_out
from echobound.network.dynamics import Dynamics, default_dynamics

__all__ = [
    "Fold",
    "Kernel",
    "Problem",
    "Segment",
    "Status",
    "Trial",
    "blocks_in_turn",
    "compiled_dynamics",
    "compiled_rollout",
    "get_kernel",
    "hold_out",
    "row_dtype",
]

_KERNELS = {"cpu": "CPUKernel", "gpu": "GPUKernel", "reference": "ReferenceKernel"}  # each in a module of its name


def get_kernel(name: str = "cpu") -> Kernel:
    """Look up a kernel by name; the fast ones are loaded on first use, and ``"auto"`` is the GPU if there is one.

    Examples
    --------
    >>> get_kernel("reference").name
    'reference'
    """
    if name == "auto":
        from echobound.kernels.gpu import gpu_problem

        try:
            return get_kernel("cpu" if gpu_problem() else "gpu")
        except MissingExtra:
            return get_kernel("cpu")
    if name not in _KERNELS:
        raise InputError(f"unknown kernel {name!r}: known are auto, cpu, gpu, reference")
    kernel: Kernel = getattr(import_module(f"{__name__}.{name}"), _KERNELS[name])()
    return kernel


def compiled_dynamics() -> Dynamics:
    """The state equation in compiled code, by which models run if nothing else is asked for.

    Examples
    --------
    >>> from echobound import identify, ph_experiment
    >>> from echobound.network import dynamics
    >>> training, validation = ph_experiment(samples=(400, 300))
    >>> model = identify(training, validation, law="paper", order=10, networks=20).network
    >>> fast, plain = model.simulate(validation), model.simulate(validation, dynamics=dynamics)
    >>> bool(abs(fast.y - plain.y).max() < 1e-9)
    True
    """
    return default_dynamics()


def compiled_rollout(*network: Any) -> Any:
    """A network in compiled code, ready to be rolled out over planned inputs: `kernels.cpu.rollout.Rollout`.

    Its arguments are those of that class: the reservoir, the readout and the limits.
    """
    from echobound.kernels.cpu.rollout import Rollout

    return Rollout(*network)
