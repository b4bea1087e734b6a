"""The refitted pick on an outer block: its rank among fresh networks, on data that nothing was chosen by."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from echobound.data import Record, as_records
from echobound.data.overlap import require_untouched
from echobound.data.record import require_alike
from echobound.draws import VERIFICATION
from echobound.errors import InputError
from echobound.kernels.blas import one_blas_thread
from echobound.network import respond
from echobound.runs import RunFolder
from echobound.runs.opening import models_of
from echobound.scenario import OuterRank


def outer_rank(
    run: str | Path,
    outer: Record | Iterable[Record],
    fresh: int = 100,
    *,
    beta: float | None = None,
    kernel: str = "cpu",
) -> OuterRank:
    """Rank the picked network, as it is delivered, among fresh ones on data that played no part.

    With blocks in turn the pick is trained again on all training data, and that network was never scored. Here it runs
    over an outer block, and so do fresh networks, drawn and trained as it was. Nothing is recorded, and nothing is
    chosen: the same call draws the same networks, a larger number adds further ones, and the limit holds at every
    number together. Data that were used for this are used up for a choice among models, as any others.

    Parameters
    ----------
    run
        The run folder, of one family; its files are checked first.
    outer
        Records that are not among the data of the run.
    fresh
        How many networks to draw.
    beta
        1 - confidence; that of the certificate if not given.
    kernel
        What draws and trains.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from echobound import identify, outer_rank, ph_experiment
    >>> training, outer = ph_experiment(samples=(600, 300))
    >>> with TemporaryDirectory() as folder:
    ...     run = identify(training, law="paper", order=5, networks=20, beta=0.05, blocks=3, run=f"{folder}/run").run
    ...     rank = outer_rank(run, outer, fresh=30)
    >>> rank.fresh, rank.beta, rank.violations < 30
    (30, 0.05, True)
    """
    if not isinstance(fresh, int) or fresh < 1:
        raise InputError(f"the number of fresh networks must be a whole number from 1 on, got {fresh!r}")
    folder = RunFolder(run)
    model, plan, records = models_of(folder)["model"], folder.plan, as_records(outer, "outer")
    drawn = folder.candidates(kernel)
    if len(drawn) > 1:
        raise InputError(f"{folder.path} has {len(drawn)} families: a rank among fresh networks is for one law")
    require_alike([folder.experiments.training[0], *records])
    require_untouched(records, folder.experiments.roles)
    score = plan.measures[plan.plain]

    def scored(one: object) -> float:
        pairs = respond(one, records, plan.horizon)  # type: ignore[arg-type]
        return score(*(np.concatenate(side) for side in zip(*pairs, strict=True)))

    with one_blas_thread():
        found = [scored(drawn[0].on(VERIFICATION).make(index).model) for index in range(fresh)]
        about = {"score": score.name, "direction": score.direction, "unit": score.unit}
        return OuterRank.of(
            found,
            scored(model),
            beta=folder.certificate.beta if beta is None else beta,
            horizon=plan.horizon,
            blocks=plan.blocks,
            members=plan.members,
            **about,  # type: ignore[arg-type]
        )
