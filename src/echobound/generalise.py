"""Generalisation: the second certificate, about the models of a run on test data that nothing was chosen by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from echobound.data import Record, as_records, require_varying_outputs
from echobound.data.experiments import records_digest
from echobound.data.overlap import require_untouched
from echobound.data.record import require_alike
from echobound.errors import InputError
from echobound.plan import settle_questions
from echobound.report import write_page
from echobound.runs import RunFolder
from echobound.runs.lock import lock
from echobound.runs.opening import models_of, open_test_data, permit_opening, record_once
from echobound.scenario import Generalisation


def generalise(
    run: str | Path,
    test: Record | Iterable[Record] | None = None,
    *,
    criterion: str | None = None,
    beta: float = 0.05,
    discarded: int = 0,
    blocks: int | None = None,
    gap: int | None = None,
    mixing: float | None = None,
    sure_band: bool = False,
    window: int | None = None,
) -> Generalisation:
    """Say what the models of a run are worth on new data, and record it in the run folder.

    The picked network and the committee run over each test record. Their errors limit those in new episodes, if the
    test records are independent and the new ones arise in the same way. Test data can be opened once: the same call
    returns the same answer again, and any other is refused.

    Parameters
    ----------
    run
        The run folder; its files are checked first.
    test
        Test records, each an episode of its own; those of the run if not given.
    criterion
        What each episode must satisfy, such as ``"fit>80"`` or ``"rmse<0.1"``, settled beforehand.
    beta
        1 - confidence of each statement.
    discarded
        How many of the largest errors to set aside, settled beforehand.
    blocks, gap, mixing
        For one long record: the number of blocks to cut it into, the samples to leave out between two of them, and the
        mixing coefficient over this gap, which is an assumption about the plant: the statements say so.
    sure_band
        Also state a band with a confidence for this very one, not only on average over test data like these.
    window
        Also state such a band over so many consecutive samples, which holds in longer runs too, if they are stationary.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from echobound import identify, ph_experiment
    >>> training, validation, *test = ph_experiment(samples=(400, 300, *[150] * 20))
    >>> with TemporaryDirectory() as folder:
    ...     run = identify(training, validation, law="paper", order=10, networks=20, run=f"{folder}/run").run
    ...     second = generalise(run, test, criterion="rmse<1")
    >>> [statement.kind for statement in second.statements["model"]]
    ['error limit', 'failure rate', 'conformal band']
    """
    how = {"blocks": blocks, "gap": gap, "mixing": mixing, "sure_band": sure_band, "window": window}
    asked = settle_questions(criterion, beta=beta, discarded=discarded, **how)
    folder = RunFolder(run)
    models = models_of(folder)
    release = lock(folder.path)  # nobody else may open the test data meanwhile
    try:
        known, own = folder.generalisation, folder.experiments.test
        records = as_records(test, "test") if test is not None else folder.tested(known) if known else own
        if not records:
            raise InputError(f"{folder.path} has no test data: give test records that nothing was chosen by")
        digest = records_digest(records)
        opened, _ = permit_opening(known, digest, asked, records_digest(own))
        if known is not None and not opened:
            return known
        given = records if digest != records_digest(own) else ()
        if given:
            require_alike([folder.experiments.training[0], *given])
            require_untouched(given, folder.experiments.roles)
        require_varying_outputs(records, models["model"].washout, "test")
        second = open_test_data(folder, asked, given or None)
        # The run's own test data were opened by identify, even if its second certificate is gone since.
        late = known is None and not given and folder.comes_late(asked)
        second = record_once(folder, replace(second, late=late), given)
    finally:
        release()
    folder.record_assessment()
    write_page(folder)
    return second
