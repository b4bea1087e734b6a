"""One BLAS thread for each worker: parallelism is over networks, and more BLAS threads would compete with it.

It also makes rows independent of the number of workers: a product shared among threads is summed in another order.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
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


@cache
def _setter() -> ThreadPoolExecutor:
    """The one thread that sets limits."""
    return ThreadPoolExecutor(1, thread_name_prefix="echobound-blas")


def _forked() -> None:
    """A copy of this process has none of its threads, and nobody is inside."""
    global _inside, _lock
    _inside, _lock = 0, threading.Lock()
    _setter.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread while any caller is inside; the last one to leave restores the previous limits.

    The limit holds for the whole process. Some versions of OpenBLAS obey only the first thread that ever set it, so one
    thread does so for all.
    """
    global _inside, _limits
    with _lock:
        if _inside == 0:
            _limits = _setter().submit(lambda: _controller().limit(limits=1, user_api="blas")).result()
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _setter().submit(_limits.restore_original_limits).result()
