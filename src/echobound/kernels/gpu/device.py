"""The card: whether there is one, how much it can hold, and the CUDA sources compiled for it."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Any

from echobound.errors import InputError, MissingExtra
from echobound.network.spectral_norm import CHECK_EVERY, CONVERGED

SOURCES = Path(__file__).parent / "cuda"
CAPABILITY = (8, 0)  # the first cards with a matrix unit for double precision
LANES = 4  # batches in progress at once
SHARE = 0.85  # of the free memory: the driver and other programs need some


@cache
def cupy() -> Any:
    """The CuPy package; only this room imports it, and only when it is needed."""
    try:
        import cupy as package
    except ImportError as error:
        raise MissingExtra("the GPU kernel", "gpu") from error
    return package


@cache
def gpu_problem() -> str:
    """Why there is no usable GPU, in half a sentence with the remedy; empty if there is one."""
    cp = cupy()
    instead = "use --device cpu"
    try:
        count = cp.cuda.runtime.getDeviceCount()
    except Exception as error:  # no driver, or one that is too old; CuPy has an exception for each
        return f"the NVIDIA driver does not answer ({_first_line(error)}): install or update it, or {instead}"
    if count == 0:
        return f"no NVIDIA GPU was found: check nvidia-smi and CUDA_VISIBLE_DEVICES, or {instead}"
    properties = cp.cuda.runtime.getDeviceProperties(cp.cuda.Device().id)
    found = (properties["major"], properties["minor"])
    if found < CAPABILITY:
        name = properties["name"].decode()
        return (
            f"{name} has compute capability {found[0]}.{found[1]}, but {CAPABILITY[0]}.{CAPABILITY[1]} or higher is"
            f" needed for double-precision matrix products: {instead}"
        )
    try:
        cp.cuda.nvrtc.getVersion()
    except Exception as error:
        return (
            f"CUDA's run-time compiler does not load ({_first_line(error)}): pip install 'echobound[gpu]', or {instead}"
        )
    return ""


def require_gpu() -> None:
    """Refuse to continue without a usable GPU."""
    if gpu_problem():
        raise InputError(f"--device gpu asks for a GPU, but {gpu_problem()}")


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


@cache
def compiled(*sources: str, **sizes: int) -> Any:
    """The kernels of some sources, compiled for these sizes; CuPy keeps the code on disk from process to process."""
    code = "\n".join((SOURCES / f"{name}.cu").read_text() for name in ("common", *sources))
    options = [f"-D{name}={value}" for name, value in sizes.items()]
    options += [f"-DSETTLED={CONVERGED}", f"-DCHECK_EVERY={CHECK_EVERY}", "-std=c++17"]
    return cupy().RawModule(code=code, options=tuple(options))


@cache
def _function(module: Any, name: str, shared: int) -> Any:
    function = module.get_function(name)
    if shared > 48 * 1024:  # more than that must be asked for
        function.max_dynamic_shared_size_bytes = shared
    return function


def launch(module: Any, name: str, grid: tuple[int, ...], threads: int, *arguments: Any, shared: int = 0) -> None:
    """Start a kernel on the current stream."""
    most = (shared + 8191) // 8192 * 8192  # few different limits, so that functions are found in the cache
    _function(module, name, min(most, shared_bytes()) if shared > 48 * 1024 else 0)(
        grid, (threads,), arguments, shared_mem=shared
    )


@cache
def shared_bytes() -> int:
    """Shared memory that one thread block can have."""
    cp = cupy()
    return int(cp.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"])


class Lane:
    """A stream, and memory that it keeps from batch to batch: allocating it each time would cost milliseconds."""

    def __init__(self) -> None:
        self.stream = cupy().cuda.Stream(non_blocking=True)
        self._kept: dict[str, Any] = {}

    def array(self, name: str, shape: tuple[int, ...]) -> Any:
        """An array of doubles with any content; the same name gives the same memory, which grows if needed."""
        size = math.prod(shape)
        if name not in self._kept or self._kept[name].size < size:
            self._kept.pop(name, None)
            self._kept[name] = cupy().empty(size)
        return self._kept[name][:size].reshape(shape)

    @property
    def bytes(self) -> int:
        """Memory held."""
        return sum(int(kept.nbytes) for kept in self._kept.values())


@cache
def lanes() -> tuple[Lane, ...]:
    """The lanes of this process: networks of different sizes are different batches, and one may not fill the card."""
    return tuple(Lane() for _ in range(LANES))


def free_bytes() -> int:
    """Memory of the card that one lane can have."""
    cp = cupy()
    free, _ = cp.cuda.runtime.memGetInfo()
    held = cp.get_default_memory_pool().free_bytes() + sum(lane.bytes for lane in lanes())
    return int(SHARE * (free + held) / LANES)
