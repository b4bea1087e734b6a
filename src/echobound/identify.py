"""Certified identification: the whole method on one screen.

Settle the plan and record it, draw and train all networks, pick the best on validation data, certify that a new draw is
unlikely to beat it, and leave a folder behind in which all of it can be checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from echobound.arrays import Rows
from echobound.campaign import Computing, ComputingSettings, run_search
from echobound.campaign.bar import ProgressBar
from echobound.campaign.computing import split_settings
from echobound.campaign.feasibility import require_feasible
from echobound.campaign.machine import worker_count
from echobound.candidates import REMADE, Candidates, Made
from echobound.data import Record
from echobound.data.copies import require_independent_records
from echobound.errors import DamagedFile, RunError
from echobound.identification import Identification
from echobound.kernels.blas import one_blas_thread
from echobound.network import Committee
from echobound.plan import Plan, PlanSettings, settle_questions, settle_validation
from echobound.report import write_page
from echobound.runs import Progress, RunFolder, rows_digest
from echobound.runs.delivery import delivery_of
from echobound.runs.derivation import certificate_of, digests_of
from echobound.runs.drawn import candidates_of
from echobound.runs.holding import held_of
from echobound.runs.journal import Journal, data_key, with_search
from echobound.runs.keeping import kept_of
from echobound.runs.opening import open_test_data, record_once
from echobound.runs.provenance import provenance
from echobound.runs.scoring import committee_outputs, scores_of
from echobound.scenario.words import noun


class Settings(PlanSettings, ComputingSettings, total=False):
    """Everything that can be given as a keyword."""


def identify(
    training: Record | Iterable[Record],
    validation: Record | Iterable[Record] | None = None,
    *,
    test: Record | Iterable[Record] = (),
    plan: Plan | None = None,
    computing: Computing | None = None,
    run: str | Path | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    progress: bool = False,
    **settings: Unpack[Settings],
) -> Identification:
    """Identify a system with echo state networks, and certify the result.

    Parameters
    ----------
    training, validation, test
        Records, one or several each. Test data are used once, for the models that were picked.
    plan
        Everything that is settled before the first draw. That of another run does the same again:
        ``plan=RunFolder("runs/old").plan``.
    computing
        How to compute: workers, kernel and engine. It has no influence on the result beyond rounding.
    run
        Folder to record the run in; an interrupted run of the same plan is resumed. ``{plan}`` in it becomes the first
        digits of the plan's digest.
    on_progress
        Called after each batch of networks.
    progress
        Draw a progress bar, in a terminal and in a notebook.
    **settings
        Fields of `Plan` and `Computing` by name, such as ``law="paper"``, ``order=50``, ``epsilon=0.05``,
        ``workers=4``; they take precedence over `plan` and `computing`.

    Examples
    --------
    >>> from echobound.plants import ph_experiment
    >>> training, validation = ph_experiment(samples=(800, 500))
    >>> result = identify(training, validation, law="paper", order=20, epsilon=0.2, beta=1e-3)
    >>> result.certificate.networks, len(result.table)
    (31, 31)
    """
    if progress and on_progress is None:
        with ProgressBar() as bar:
            return identify(
                training, validation, test=test, plan=plan, computing=computing, run=run, on_progress=bar, **settings
            )
    asked, how = split_settings(settings)
    computing = Computing.of(computing, how)
    plan = replace((plan or Plan()).asked(), **asked)

    # Everything is settled before the first draw.
    scheme = settle_validation(training, validation, test, blocks=plan.blocks, washout=plan.washout)
    settled, experiments = plan.settle(scheme), scheme.experiments
    if experiments.test:  # before anything is drawn, as everything else about them was looked at when they were settled
        require_independent_records(experiments.test)
    candidates = candidates_of(settled, experiments, computing.kernel)
    require_feasible(candidates, computing.workers)

    # The engine first: one that cannot be had leaves no folder behind.
    with computing.open_engine() as engine, RunFolder.start(run, settled, experiments) as folder:
        # Entered before the first draw: whoever searches the same data again is told so.
        search, data = None, data_key(experiments)
        if folder.stored:
            search = Journal(folder.path.absolute().parent).enter(data, settled, folder.path.name)

        # Draw, train and score every network.
        table = run_search(settled, candidates, folder.ledger, engine, on_progress)

        # Pick the best, and derive what that is worth.
        made = _made(folder, candidates, table[kept_of(settled, table)], worker_count(computing.workers))
        picked = made[0].model if made else None
        several = Committee(tuple(one.model for one in made)) if made and settled.committee else None
        delivery = delivery_of(settled, len(made))
        digests = {**digests_of(settled), "ledger": rows_digest(table)}
        digests |= {"model": picked.digest if picked else "", "committee": several.digest if several else ""}
        ran = [origin for one in candidates for origin in folder.ledger.origins(family=one.family)]
        read = tuple(dict.fromkeys(record.note for _, record in experiments.roles if record.note))
        said = {"data": read} if read else {}  # what was interpolated or resampled when the data were read
        origin = provenance(kernel=candidates[0].code, ran=ran, seconds=float(table["seconds"].sum()), **said)
        certificate = certificate_of(settled, table, digests=digests, provenance=origin)
        certificate = with_search(certificate, settled, search, data)
        folder.finish(certificate, picked, several, delivery)

        # The models on validation data and, opened here, on test data.
        second = None
        if picked is not None:
            folder.outputs = {"model": made[0].outputs}
            if several is not None:
                folder.outputs["committee"] = committee_outputs([one.outputs for one in made])
            if experiments.test:
                second = record_once(folder, open_test_data(folder, settle_questions(settled.criterion)))
        scores, held = scores_of(folder), held_of(folder)
        assessment = folder.record_assessment()
        if run is not None:
            write_page(folder)
    network, committee = (None, None) if picked is None else (folder.network, folder.committee)
    return Identification(
        model=None if picked is None else folder.model,
        certificate=certificate,
        table=table,
        scores={} if picked is None else scores[folder.delivered],
        delivered="" if delivery is None else delivery.delivered,
        reason="" if delivery is None else delivery.reason,
        network=network,
        network_scores=None if network is None else scores["model"],
        committee=committee,
        committee_scores=None if committee is None else scores["committee" if several else "model"],
        generalisation=second,
        chosen=(*scheme.chosen, *(f"data: {note}" for note in read)),
        held=held,
        assessment=assessment,
        diagnostics=folder.diagnostics,
        run=None if run is None else folder.path,
        experiments=experiments,
    )


def _made(folder: RunFolder, candidates: Sequence[Candidates], rows: Rows, workers: int) -> list[Made]:
    """Train the networks that are kept, the best first: it must score what its row says.

    A row that was forged before the certificate was written would otherwise be certified. As many are trained at a time
    as in the search.
    """
    families = {one.family: one for one in candidates}
    if all(one.parallel for one in candidates):
        with one_blas_thread(), ThreadPoolExecutor(workers) as pool:
            made = list(pool.map(lambda row: families[row["family"]].make(int(row["index"])), rows))
    else:  # one device, which trains them all at a time
        found: dict[tuple[int, int], Made] = {}
        for family, drawn in families.items():
            own = [int(row["index"]) for row in rows if row["family"] == family]
            found |= zip([(family, index) for index in own], drawn.make_several(own), strict=True)
        made = [found[int(row["family"]), int(row["index"])] for row in rows]
    if made and not np.isclose(made[0].scores[0], rows["scores"][0, 0], rtol=REMADE):
        recorded, found = rows["scores"][0, 0], made[0].scores[0]
        why = f"it says {recorded:.9g}, trained again it is {found:.9g}"
        ledger = folder.path / "ledger.sqlite" if folder.stored else "the ledger"
        raise DamagedFile(ledger, "row of the best network", why)
    if made and folder.plan.confirm:
        _require_confirmable(folder, families[rows["family"][0]], rows[0])
    return made


def _require_confirmable(folder: RunFolder, drawn: Candidates, row: Any) -> None:
    """Refuse a best network whose score follows from rounding: on another machine it would be another.

    A certificate about it could not be told from a forged one.
    """
    moved, allowed = drawn.moved(row), folder.plan.confirm
    if moved > allowed:
        shift = "all of it" if not np.isfinite(moved) else f"{moved:.2g} of it"
        raise RunError(
            f"the best {noun(folder.plan.members).one}, {int(row['index'])}, scores {row['scores'][0]:.6g}, but {shift}"
            f" changes when its readout changes in the twelfth digit, and the plan allows {allowed:g}: nobody could"
            " confirm it, so nothing is certified; take the score robust, a law that clips or a shorter horizon, or"
            " confirm=0 to certify it all the same"
        )
