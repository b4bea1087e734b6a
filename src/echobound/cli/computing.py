"""Options that say how to compute: workers, device, engine, scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from echobound.campaign.engines import Engine

__all__ = ["Device", "EngineName", "Scheduler", "Workers", "chosen_engine"]

Workers = Annotated[int | None, typer.Option(help="Networks trained at the same time; all cores if not given.")]
Device = Annotated[str, typer.Option("--device", help="cpu, gpu, or auto: the GPU where there is one.")]
EngineName = Annotated[str, typer.Option("--engine", help="Where they are trained: threads, processes or dask.")]
Scheduler = Annotated[
    str | None,
    typer.Option(help="With --engine dask: tcp://HOST:PORT of a scheduler. A cluster on this machine if not given."),
]


def chosen_engine(engine: str, scheduler: str | None, workers: int | None) -> Engine:
    """The engine that was asked for, ready to work."""
    from echobound.campaign.engines import get_engine

    return get_engine(engine, workers, scheduler)
