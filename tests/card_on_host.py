"""A card made of this machine: as much of CuPy as the GPU kernel uses, over NumPy, with the CUDA sources built by g++.

What is tested so is everything but the card: the Python of `kernels/gpu`, and the arithmetic of its sources.
"""

import ctypes
import hashlib
import re
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np

HEADER = Path(__file__).with_name("cuda_on_host.h")
_built = {}
_folder = tempfile.TemporaryDirectory(prefix="card-on-host-")

# What is said in assembler, and what the header says instead.
_ASSEMBLER = (
    (r"__device__ __forceinline__ void (multiply|copy_async)\(.*?\n}\n", ""),
    (r"asm\(\"rcp\.approx.*?\);", "estimate = 1.0 / d;"),
    (r"asm volatile\(.*?\);", ""),
    (r"extern __shared__ double shared\[\];", ""),
)


class Memory:
    def __init__(self, array):
        self.array = array

    def memset_async(self, value, _):
        np.ndarray.fill(self.array, value)


class Array(np.ndarray):
    """An array that says it is on the card."""

    data = property(Memory)


def _card(array):
    return np.ascontiguousarray(array).view(Array)


def _library(code, options):
    key = hashlib.sha256("\n".join((code, *options)).encode()).hexdigest()
    if key not in _built:
        for pattern, instead in _ASSEMBLER:
            code = re.sub(pattern, instead, code, flags=re.DOTALL)
        names = re.findall(r'extern "C" __global__ .*?void (\w+)\(', code, flags=re.DOTALL)
        launchers = [
            f'extern "C" void launch_{name}(unsigned gx, unsigned gy, unsigned threads, void** arguments)'
            f" {{ host::launch({name}, gx, gy, threads, arguments); }}"
            for name in names
        ]
        source = Path(_folder.name) / f"{key}.cpp"
        source.write_text("\n".join([f'#include "{HEADER}"', code, *launchers]))
        command = ["g++", "-std=c++17", "-O1", "-march=native", "-ffp-contract=off", "-fno-strict-aliasing", "-w"]
        command += ["-U_FORTIFY_SOURCE", "-fPIC", "-shared", *(o for o in options if o.startswith("-D"))]
        done = subprocess.run(
            [*command, str(source), "-o", str(source) + ".so"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[:4000]
        _built[key] = ctypes.CDLL(str(source) + ".so")
    return _built[key]


_TYPES = {
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
    "float64": ctypes.c_double,
    "bool": ctypes.c_bool,
}


class RawModule:
    def __init__(self, code, options):
        self.library = _library(code, options)

    def get_function(self, name):
        return Function(getattr(self.library, f"launch_{name}"))


class Function:
    max_dynamic_shared_size_bytes = 0

    def __init__(self, launcher):
        self.launcher = launcher

    def __call__(self, grid, block, arguments, shared_mem=0):
        assert shared_mem <= 8 << 15
        values = []
        for one in arguments:
            if isinstance(one, np.ndarray):
                assert one.flags.c_contiguous
                assert isinstance(one, Array), "an array of the host"
                values.append(ctypes.c_void_p(one.ctypes.data))
            else:
                values.append(_TYPES[np.dtype(type(one)).name](one))
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
        if all(grid):
            self.launcher(grid[0], grid[1] if len(grid) > 1 else 1, block[0], pointers)


class Stream:
    def __init__(self, non_blocking=False):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def synchronize(self):
        pass


class Card:
    """Takes the place of the module cupy."""

    float64, int32, int64 = np.float64, np.int32, np.int64

    def __init__(self, cards=1):
        self.cards, self.cuda, self.runtime = cards, self, self
        self.Stream = Stream
        self.RawModule = RawModule
        self.attributes = {"MaxSharedMemoryPerBlockOptin": 8 << 15}

    def empty(self, shape, dtype=np.float64):
        array = np.empty(shape, dtype)
        array.fill(np.nan if array.dtype.kind == "f" else -1)  # nothing may be read that was not written
        return array.view(Array)

    def zeros(self, shape, dtype=np.float64):
        return np.zeros(shape, dtype).view(Array)

    def asarray(self, array):
        return _card(np.array(array))

    ascontiguousarray = staticmethod(_card)

    def asnumpy(self, array):
        return np.array(array).view(np.ndarray)

    def concatenate(self, arrays, axis=0):
        return _card(np.concatenate(arrays, axis))

    def repeat(self, array, count, axis=None):
        return _card(np.repeat(array, count, axis))

    # ------------------------------------------------ cuda and its runtime
    id = 0

    def Device(self, _=0):
        return self

    def get_current_stream(self):
        return Stream()

    def memGetInfo(self):
        return 4 << 30, 4 << 30

    def get_default_memory_pool(self):
        return self

    def free_bytes(self):
        return 0

    def getDeviceCount(self):
        return self.cards

    def getDeviceProperties(self, _):
        return {"major": 9, "minor": 0, "name": b"this machine"}

    @property
    def nvrtc(self):
        return self

    def getVersion(self):
        return 13, 0


@contextmanager
def card_on_host():
    """Inside, the GPU kernel finds a card."""
    from echobound.kernels.gpu import batch, descents, device, work

    caches = [device.gpu_problem, device.compiled, device._function, device.shared_bytes, device.lanes]
    card, before = Card(), [(module, module.cupy) for module in (batch, descents, device, work)]

    def clear():
        for cached in caches:
            cached.cache_clear()
        work._data._kept.clear()

    clear()
    for module, _ in before:
        module.cupy = lambda: card
    try:
        yield card
    finally:
        for module, usual in before:
            module.cupy = usual
        clear()
