"""Certified identification: the whole method on one screen.

Settle the number of networks, record the plan, draw and train them all, pick the best on validation data, certify
that a new draw is unlikely to beat it, and leave a folder behind in which all of it can be checked.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from echobound.arrays import Rows, Signal
from echobound.campaign.engines import Engine, require_known
from echobound.campaign.machine import memory_gib, worker_count
from echobound.campaign.search import run_search
from echobound.data import Record
from echobound.errors import DamagedFile, InputError
from echobound.kernels import Problem, get_kernel
from echobound.kernels.training import train_network
from echobound.network import Committee, EchoStateNetwork, get_laws
from echobound.network.law import Laws, Orders
from echobound.plan.numbers import Bound, settle_networks, settle_stop
from echobound.plan.plan import Plan, Renewed
from echobound.plan.validation import settle_validation
from echobound.report import write_page
from echobound.runs.derivation import certificate_of
from echobound.runs.folder import RunFolder
from echobound.runs.ledger import Ledger, rows_digest
from echobound.runs.opening import generalisation_of, record_once, settle_test
from echobound.runs.outcome import Outcome, committee_outputs, outcome_of
from echobound.runs.progress import Progress
from echobound.runs.provenance import provenance
from echobound.scenario import Certificate, ErrorLimit, Generalisation, Optimism, StoppingRule, ranking
from echobound.scores import Score, get_score

__all__ = ["Identification", "identify"]


@dataclass(frozen=True, eq=False)
class Identification:
    """What comes out: the model, the certificate, the table of all networks, and the model's scores.

    Parameters
    ----------
    model
        The best network on validation data; None if all networks diverged.
    certificate
        What is promised about it, and what is not.
    table
        One row for each network: family, index, status, scores, order, ridge. Of several families, one after the other.
    scores
        FIT and RMSE of the model on validation and, where given, test data.
    generalisation
        The second certificate, on test data: what model and committee are worth on new data. None without test data.
    committee
        The best networks as one model; the certificate does not cover it. None if it was not wanted.
    committee_outcome
        Its scores.
    chosen
        What was chosen because it was not given, a sentence each.
    run
        The run folder, if one was asked for.

    Examples
    --------
    >>> from echobound.plants import ph_experiment
    >>> result = identify(*ph_experiment(samples=(400, 300)), law="paper", order=10, networks=20)
    >>> result.table["index"].tolist() == list(range(20)), result.model.order, result.run
    (True, 10, None)
    """

    model: EchoStateNetwork | None
    certificate: Certificate
    table: Rows
    scores: dict[str, Any]
    generalisation: Generalisation | None
    committee: Committee | None
    committee_outcome: Outcome | None
    chosen: tuple[str, ...]
    run: Path | None

    @property
    def optimism(self) -> Optimism | None:
        """The model's score on test data beside validation data; None without test data."""
        return None if self.generalisation is None else self.generalisation.optimism

    @property
    def episodes(self) -> ErrorLimit | None:
        """What the errors of the model in the test records say about new ones; None without test data."""
        return None if self.generalisation is None else self.generalisation.limit()


def identify(
    training: Record | Iterable[Record],
    validation: Record | Iterable[Record] | None = None,
    *,
    test: Record | Iterable[Record] = (),
    criterion: str | None = None,
    law: Laws = "broad",
    order: Orders = None,
    epsilon: float | None = None,
    beta: float = 1e-7,
    networks: int | None = None,
    bound: Bound = "exact",
    stop: str | StoppingRule | None = None,
    target: float | None = None,
    discarded: int = 0,
    scores: Sequence[str | Score] = ("fit", "rmse"),
    joint: bool = False,
    renewal: Renewed | None = None,
    blocks: int | None = None,
    washout: int | None = None,
    horizon: int | None = None,
    committee: int = 10,
    seed: int = 0,
    workers: int | None = None,
    kernel: str = "cpu",
    engine: str | Executor | Engine = "threads",
    run: str | Path | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Identification:
    """Identify a system with echo state networks, and certify the result.

    Parameters
    ----------
    training, validation, test
        Records, one or several each. Test data are used once, for the models that were picked.
    criterion
        What a test record has to keep, such as ``"fit>80"``: the second certificate then limits how often a new one
        does not.
    law, order
        What is drawn: ``"broad"``, ``"paper"`` or a `ReservoirLaw`; the order may be given apart. Of several laws or
        orders each is a family of networks, and the best of all families is picked and certified.
    epsilon, beta, networks, bound
        Either epsilon or the number of networks (of each family) follows from the other (default: epsilon = 0.05, so
        315 networks).
    stop
        A rule by which the search stops, recorded before the first draw: ``"patience:200"`` when epsilon is certified
        and the last 200 networks brought no improvement; ``"anytime"``, ``"between:100,10000"``, ``"looks:100,200"``,
        ``"mixture"`` when the rule, which holds at all numbers of networks together, certifies epsilon. Under these
        an interruption (Ctrl-C) is a reason to stop as well: what was drawn by then is certified.
    target
        Go on until the best score is as good as this; needs one of the rules that hold at all numbers of networks
        (``"anytime"`` if none is given).
    discarded
        So many of the best networks are set aside in a further statement, which then certifies epsilon too.
    scores, joint
        By name or as `Score`; the first selects. `joint` adds a statement on all of them together, which then certifies
        epsilon too.
    renewal
        As `renew` gives it: these networks were drawn before, for other data.
    blocks
        Without validation data: so many blocks of the training data are scored in turn, each network trained on the
        others, and the best is trained again on all; 0 holds out the end of the last training record instead. None
        chooses: 4 blocks where the data are short.
    washout
        Samples at the start of each record or block that are neither trained on nor scored; None chooses, at most 100.
    horizon
        None scores the free run; k scores the prediction k samples ahead.
    committee
        How many of the best networks are also kept as one model, the median of their outputs; 0 for none.
    seed
        With the index, it names each network.
    workers, kernel, engine
        How to compute: networks trained at the same time, by which code, and where (``"threads"``, ``"processes"``,
        ``"dask"``, any executor of `concurrent.futures`, or what `get_engine` returns). Workers and engines have no
        influence on the result, kernels none beyond rounding.
    run
        Folder to record the run in; an interrupted run of the same plan is resumed. ``{plan}`` in it becomes the
        first digits of the plan's digest.
    on_progress
        Called after each block of networks.

    Examples
    --------
    >>> from echobound.plants import ph_experiment
    >>> training, validation = ph_experiment(samples=(800, 500))
    >>> result = identify(training, validation, law="paper", order=20, epsilon=0.2, beta=1e-3)
    >>> result.certificate.networks, len(result.table)
    (31, 31)
    """
    code, measure = get_kernel(kernel), [get_score(score) for score in scores]
    if run is not None:  # whoever opens the folder later must find the score by its name
        _require_registered(measure)
    require_known(engine)
    if committee < 0:
        raise InputError(f"the size of the committee must be a number of networks from 0 on, got {committee}")
    asked = settle_test(criterion)
    scheme = settle_validation(training, validation, test, blocks=blocks, washout=washout)
    experiments = scheme.experiments
    if criterion is not None and not experiments.test:
        raise InputError(f"the criterion {criterion} is for test data, but there are none: give test data")
    laws = get_laws(law, order, sum(len(record) for record in experiments.training))
    problems = scheme.problems(laws=laws, scores=measure, seed=seed, horizon=horizon)
    _require_computable(problems, worker_count(workers))

    # Everything is settled before the first draw.
    if not 0 <= discarded < (networks or math.inf):
        raise InputError(f"networks to set aside must be fewer than those drawn and not negative, got {discarded}")
    rule, together = None, len(measure) if joint else 1
    if stop is None and target is None:
        count, epsilon = settle_networks(epsilon, beta, networks, bound, discarded, together)
    else:
        rule, count, epsilon = settle_stop(stop or "anytime", epsilon, beta, networks, bound, discarded, together)
    plan = Plan(
        laws=laws,
        seed=seed,
        scores=tuple(score.name for score in measure),
        folds=problems[0].folds,
        horizon=horizon,
        networks=count,
        epsilon=epsilon,
        beta=float(beta),
        bound=bound,
        committee=committee,
        data=experiments.digest,
        stop=rule,
        target=target,
        discarded=discarded,
        joint=joint,
        renewal=renewal,
    )
    folder = None
    if run is not None:
        folder = RunFolder.start(str(run).replace("{plan}", plan.digest[:8]), plan, experiments)

    # Draw, train and score every network.
    with Ledger(None, plan.digest, plan.scores) if folder is None else folder.ledger(write=True) as ledger:
        table = run_search(code, problems, plan, ledger, workers=workers, engine=engine, on_progress=on_progress)
        ran = [origin for problem in problems for origin in ledger.origins(family=problem.family)]

    # Pick the best, and say what that is worth.
    best = ranking(table["scores"][:, 0], measure[0].direction, max(committee, 1))
    trained = [train_network(code, problems[row["family"]], int(row["index"])) for row in table[best]]
    model, several = (trained[0][0] if trained else None), None
    achieved, outcome, second = Outcome({}), None, None
    if model is not None:
        outputs = trained[0][1]
        _require_same(problems[0], outputs, table["scores"][best[0], 0], folder)
        achieved = outcome_of(model, problems[0], outputs, experiments.test)
        if committee:
            several = Committee(tuple(member for member, _ in trained))
            medians = committee_outputs([outputs for _, outputs in trained])
            outcome = outcome_of(several, problems[0], medians, experiments.test)
    certificate = certificate_of(
        plan,
        table,
        measure,
        digests={
            "data": plan.data,
            "plan": plan.digest,
            "ledger": rows_digest(table),
            "model": "" if model is None else model.digest,
            "committee": "" if several is None else several.digest,
        },
        provenance=provenance(kernel=code.name, ran=ran, seconds=float(table["seconds"].sum())),
    )
    if model is not None and experiments.test:
        models = {"model": model} | ({} if several is None else {"committee": several})
        data, picked = (experiments.training, experiments.test), certificate.threshold
        second = generalisation_of(models, *data, asked, score=measure[0], picked=picked, horizon=horizon)
    if folder is not None:
        folder.finish(model, certificate, several)
        second = second and record_once(folder, second)
        write_page(folder)
    return Identification(
        model=model,
        certificate=certificate,
        table=table,
        scores=achieved.scores,
        generalisation=second,
        committee=several,
        committee_outcome=outcome,
        chosen=scheme.chosen,
        run=None if folder is None else folder.path,
    )


def _require_registered(scores: Sequence[Score]) -> None:
    for score in scores:
        if score != get_score(score.name):
            raise InputError(f"score {score.name!r} is not the one registered under that name: register_score it first")


def _require_computable(problems: Sequence[Problem], workers: int) -> None:
    """Refuse draws that cannot be made, and warn of least-squares problems with more columns than rows."""
    problem = problems[0]
    problem.key(0)
    columns = max(one.law.most_columns(one.inputs, one.outputs) for one in problems)
    needed = workers * 3 * 8 * columns**2 / 2**30
    if needed > memory_gib():
        raise InputError(
            f"a least-squares problem of {columns} columns needs about {needed:.0f} GiB with {workers} workers, but"
            f" this machine has {memory_gib():.0f}: take a smaller order or fewer workers"
        )
    rows = min(sum(segment.counted for segment in fold.training) for fold in problem.folds)
    if rows < columns:
        warnings.warn(
            f"{rows} training samples are fewer than the {columns} columns of the least-squares problem: the networks"
            " are trained all the same, but give more data or a smaller order",
            stacklevel=3,
        )


def _require_same(problem: Problem, outputs: Sequence[Signal], recorded: float, folder: RunFolder | None) -> None:
    """The network that is kept, trained again, must score what its row says; 1e-6 is far beyond all rounding."""
    found = float(np.mean([problem.scores[0](y, yhat) for y, yhat in zip(problem.measured, outputs, strict=True)]))
    if not np.isclose(found, recorded, rtol=1e-6):
        where = "the ledger" if folder is None else folder.path / "ledger.sqlite"
        raise DamagedFile(where, "row of the best network", f"it says {recorded:.9g}, trained again it is {found:.9g}")
