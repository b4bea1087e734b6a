"""Verification: a certificate put to the test by fresh networks."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from echobound.campaign.dispatch import run_campaign
from echobound.campaign.engines import Engine, opened
from echobound.draws import VERIFICATION
from echobound.errors import InputError
from echobound.kernels import get_kernel
from echobound.report import write_page
from echobound.runs.folder import RunFolder
from echobound.runs.progress import Progress, TotalProgress
from echobound.runs.verification import verification_of

__all__ = ["verify"]


def verify(
    run: str | Path,
    fresh: int = 500,
    *,
    workers: int | None = None,
    kernel: str = "cpu",
    engine: str | Executor | Engine = "threads",
    on_progress: Callable[[Progress], None] | None = None,
) -> dict[str, Any]:
    """Draw fresh networks from the law of a run, and count those that violate its certificate.

    They come from a stream of their own, so that none is among those of the search. A second call goes on at the next
    unused index, and pools all fresh networks.

    Parameters
    ----------
    run
        The run folder; its files are checked first.
    fresh
        How many networks to add, of each family.
    workers, kernel, engine, on_progress
        As in `identify`.

    Returns
    -------
    dict
        ``fresh``, ``violations``, ``p_value`` = P(X >= violations), ``epsilon_combined`` (what search and fresh
        networks certify together; ties count) and the same under ``worst``; of several families, ``families`` too.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from echobound import identify, ph_experiment
    >>> training, validation = ph_experiment(samples=(400, 300))
    >>> with TemporaryDirectory() as folder:
    ...     run = identify(training, validation, law="paper", order=10, networks=20, run=f"{folder}/run").run
    ...     verify(run, fresh=5)["fresh"]
    5
    """
    if not isinstance(fresh, int) or fresh < 0:
        raise InputError(f"the number of fresh networks must be a whole number from 0 on, got {fresh!r}")
    folder = RunFolder(run)
    direction = folder.certificate.direction  # nothing is drawn for a certificate that does not follow from its run
    total, code = len(folder.verification) // len(folder.problems) + fresh, get_kernel(kernel)
    whole = TotalProgress(on_progress, total * len(folder.problems), direction)
    with folder.ledger(write=True) as ledger, opened(engine, workers) as crew:
        for problem in folder.problems:
            fresh_problem = problem.on(stream=VERIFICATION)
            run_campaign(code, fresh_problem, range(total), ledger, engine=crew, on_progress=whole)
            whole.next()
    folder.record_verification(total)
    write_page(folder)
    return verification_of(folder)
