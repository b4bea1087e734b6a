"""Renewal: the same networks trained and scored on new data, and the certificate with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from echobound.campaign import Computing, ComputingSettings
from echobound.data import Record, as_records
from echobound.data.copies import common
from echobound.data.experiments import records_digest
from echobound.errors import InputError
from echobound.identification import Identification
from echobound.identify import identify
from echobound.plan import RenewalStep, SettledPlan, settle_validation
from echobound.runs import Progress, RunFolder
from echobound.runs.journal import Journal, data_key
from echobound.scenario.statements.renewal import require_independent


def renew(
    run: str | Path,
    training: Record | Iterable[Record],
    validation: Record | Iterable[Record] | None = None,
    *,
    closed_loop: bool | None = None,
    updates: int | None = None,
    test: Record | Iterable[Record] = (),
    blocks: int | None = None,
    washout: int | None = None,
    computing: Computing | None = None,
    into: str | Path | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    **settings: Unpack[ComputingSettings],
) -> Identification:
    """Train and score all networks of a run again, on new data, and certify the best of them there.

    The networks were drawn without regard to the new data, so the certificate holds anew with the same N. It does not
    hold if the new data depend on the network in use, as in a loop that is closed through it, or if networks were
    dropped because of their scores: then use `identify` with another seed.

    Parameters
    ----------
    run
        The run folder, or that of its latest renewal; its files are checked first.
    training, validation, test, blocks, washout
        The new data, as in `identify`; washout and blocks are those of the run if not given.
    closed_loop
        Whether the new data depend on the network in use. True is refused; None warns.
    updates
        How many renewals are planned, settled at the first one (1 if not given): all of them hold together.
    computing, on_progress
        As in `identify`; fields of `Computing` may also be given as keywords.
    into
        Run folder of the renewal; as ``run`` in `identify`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from echobound import ph_experiment
    >>> training, validation, later, last = ph_experiment(samples=(400, 300, 400, 300))
    >>> with TemporaryDirectory() as folder:
    ...     run = identify(training, validation, law="paper", order=10, networks=20, beta=1e-3, run=f"{folder}/run").run
    ...     renewed = renew(run, later, last, closed_loop=False, updates=4)
    >>> renewed.certificate.networks, renewed.certificate.statements[0].kind
    (20, 'renewal')
    """
    folder = RunFolder(run)
    old, certificate = folder.plan, folder.certificate
    if old.at_will:
        raise InputError(
            f"how many networks {folder.path} has depends on their scores, by the rule {certificate.rule}: a renewal"
            " needs a number settled beforehand or found by patience; identify again with another seed"
        )
    require_independent(closed_loop)
    first, second = as_records(training, "training"), None if validation is None else as_records(validation)
    plan = replace(
        old.asked(),
        seed_of_data=False,  # the seed is that of the networks, which came before these data
        stop=None,  # patience has found the number of networks, which is settled from now on
        networks=certificate.networks // len(old.families),
        blocks=old.blocks if blocks is None and second is None else blocks,
        washout=old.washout if washout is None else washout,
    )
    scheme = settle_validation(first, second, test, blocks=plan.blocks, washout=plan.washout)
    new = scheme.experiments
    used = folder.experiments
    if records_digest([*new.training, *new.validation]) == records_digest([*used.training, *used.validation]):
        raise InputError(f"these are the data of {folder.path} itself: give new data to renew its certificate on")
    _require_new([*new.training, *new.validation], [*used.training, *used.validation], folder.path)
    before = old.renewal or RenewalStep(plan=old.digest, update=0, updates=1 if updates is None else updates)
    if updates not in (None, before.updates):
        raise InputError(f"{before.updates} renewals were planned at the first one, but {updates} are asked for now")
    plan = replace(plan, criterion=None, renewal=replace(before, update=before.update + 1))
    for parent in {folder.path.absolute().parent, *([] if into is None else [Path(into).absolute().parent])}:
        _require_next(Journal(parent), plan.settle(scheme), data_key(new))
    return identify(
        first, second, test=new.test, plan=plan, computing=computing, run=into, on_progress=on_progress, **settings
    )


def _require_next(journal: Journal, plan: SettledPlan, data: str) -> None:
    """Refuse a renewal on data that these networks were seen on, and one that was made already, on other data.

    What is stated holds in as many renewals as were planned, one after the other: not in the best of more.
    """
    step = plan.renewal
    if step is None:
        return
    for entry in journal.of_networks(step.plan):
        if entry["plan"] == plan.digest:  # this very one, resumed
            continue
        if entry["data"] == data:
            raise InputError(
                f"these networks were trained and scored on these data before, in {entry.get('run')}: that would be"
                " another look at old data, not a renewal; give new data"
            )
        if (entry.get("renewal") or {}).get("update") == step.update:
            raise InputError(
                f"renewal {step.update} of the {step.updates} that were planned was made already, in"
                f" {entry.get('run')}: renew that run next, since what is stated holds in {step.updates} renewals and"
                " not in the best of more"
            )


def _require_new(records: Sequence[Record], used: Sequence[Record], run: Path) -> None:
    """Refuse records that share data with those of the run, in whatever role, but for a sample or rounding.

    A certificate on data that were searched before is another look at them, not a renewal.
    """
    for record in records:
        for other in used:
            if (found := common(record, other)) is not None:
                raise InputError(
                    f"{record.name} and the data of {run} have {found.words}: to train and score on them again would be"
                    " another look at the old data, not a renewal; give new data"
                )
