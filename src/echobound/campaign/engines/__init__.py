"""Where batches are scored: threads, processes, any executor, a Dask cluster."""

from concurrent.futures import Executor
from typing import Any

from echobound.campaign.engines.base import Engine, Report
from echobound.campaign.engines.executors import AnyExecutor, Processes
from echobound.campaign.engines.threads import Threads
from echobound.errors import InputError

__all__ = ["AnyExecutor", "Engine", "Processes", "Report", "Threads", "get_engine", "require_known"]

NAMES = ("threads", "processes", "dask")


def require_known(engine: str | Executor | Engine) -> None:
    """Refuse what is not an engine before anything is started or written."""
    if not (isinstance(engine, Engine | Executor) or engine in NAMES):
        raise InputError(f"unknown engine {engine!r}: known are {', '.join(NAMES)} and any executor")


def get_engine(
    engine: str | Executor | Engine = "threads", workers: int | None = None, scheduler: Any = None
) -> Engine:
    """Look an engine up by name, or make one from an executor; arguments as in `Computing`.

    Examples
    --------
    >>> with get_engine("threads", workers=2) as engine:
    ...     engine.name, engine.workers
    ('threads', 2)
    """
    require_known(engine)
    if scheduler is not None and engine != "dask":
        raise InputError(f"a scheduler was given, but the engine is {engine!r}: use the engine 'dask' or leave it out")
    if isinstance(engine, Engine):
        return engine
    if isinstance(engine, Executor):
        return AnyExecutor(engine, workers)
    if engine != "dask":
        return Threads(workers) if engine == "threads" else Processes(workers)
    from echobound.campaign.engines.cluster import Dask

    return Dask(scheduler, workers)
