"""One BLAS thread for each worker: parallelism is over networks, and more BLAS threads would compete with it.

It also makes rows independent of the number of workers: a product shared among threads is summed in another order.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_lock = threading.Lock()
_inside = 0
_limits: Any = None


@cache
def _controller() -> Any:
    import scipy.linalg.cython_blas  # noqa: F401 (loads SciPy's own BLAS, which must be limited too)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()  # looks through all loaded libraries, so once is enough


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread while any caller is inside; the last one to leave restores the previous limits.

    The limit holds for the whole process. Some versions of OpenBLAS let only the thread that set it restore it, so a
    campaign enters before its workers do and leaves after them.
    """
    global _inside, _limits
    with _lock:
        if _inside == 0:
            _limits = _controller().limit(limits=1, user_api="blas")
            _limits.__enter__()
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _limits.__exit__(None, None, None)
