"""Computing: how draws are computed. It has no influence on the result beyond rounding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Any, TypedDict

from echobound.campaign.engines import Engine, get_engine, require_known
from echobound.campaign.machine import worker_count
from echobound.errors import InputError
from echobound.kernels import Kernel
from echobound.plan import Plan
from echobound.typed import setting


class ComputingSettings(TypedDict, total=False):
    """The fields of `Computing` as keywords of `identify`, `verify`, `renew` and `audit`."""

    workers: int | None
    kernel: str | Kernel
    engine: str | Executor | Engine
    scheduler: str | None


@dataclass(frozen=True)
class Computing:
    """How draws are computed.

    Parameters
    ----------
    workers
        Networks trained at the same time; one for each core if not given.
    kernel
        Which code: ``"cpu"``, ``"gpu"``, ``"auto"`` (the GPU where there is one), ``"reference"``, or a
        `Kernel`.
    engine
        Where: ``"threads"``, ``"processes"``, ``"dask"``, any executor of `concurrent.futures`, or what `get_engine`
        returns.
    scheduler
        For ``"dask"``: address of a scheduler; a cluster on this machine if not given.

    Examples
    --------
    >>> with Computing(workers=2).open_engine() as engine:
    ...     engine.name, engine.workers
    ('threads', 2)
    """

    workers: int | None = setting(None, "Networks trained at the same time; all cores if not given.")
    kernel: str | Kernel = setting("cpu", "cpu, gpu, or auto: the GPU where there is one.", option="device")
    engine: str | Executor | Engine = setting("threads", "Where they are trained: threads, processes or dask.")
    scheduler: str | None = setting(
        None, "With --engine dask: tcp://HOST:PORT of a scheduler; a cluster on this machine if not given."
    )

    def __post_init__(self) -> None:
        worker_count(self.workers)
        require_known(self.engine)

    @classmethod
    def of(cls, computing: Computing | None, settings: Mapping[str, Any]) -> Computing:
        """What a caller gave, as an object, as keywords or as both; keywords take precedence."""
        _require_fields(settings, cls)
        return replace(computing or cls(), **settings)

    @contextmanager
    def open_engine(self) -> Iterator[Engine]:
        """The engine, ready to work; it is closed at the end unless it was lent."""
        engine = get_engine(self.engine, self.workers, self.scheduler)
        try:
            yield engine
        finally:
            if engine is not self.engine:
                engine.close()


def split_settings(settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Keywords that are fields of `Plan`, and those that are fields of `Computing`.

    Examples
    --------
    >>> split_settings({"order": 50, "workers": 4})
    ({'order': 50}, {'workers': 4})
    >>> split_settings({"ordr": 50})
    Traceback (most recent call last):
        ...
    echobound.errors.InputError: unknown setting 'ordr' (is it 'order'?): known are law, order, ...
    """
    _require_fields(settings, Plan, Computing)
    planned = {field.name for field in fields(Plan)}
    asked = {name: value for name, value in settings.items() if name in planned}
    return asked, {name: value for name, value in settings.items() if name not in planned}


def _require_fields(settings: Mapping[str, Any], *kinds: type[Any]) -> None:
    known = [field.name for kind in kinds for field in fields(kind)]
    for name in settings:
        if name not in known:
            near = "".join(f" (is it {one!r}?)" for one in get_close_matches(name, known, 1))
            raise InputError(f"unknown setting {name!r}{near}: known are {', '.join(known)}")
