"""Auditing: a run folder read with all its faults, and its draws made again."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from echobound.audit.findings import Audit
from echobound.audit.originals import check_originals
from echobound.audit.replay import replay_test_data
from echobound.audit.retraining import Retraining
from echobound.audit.worth import check_assessment
from echobound.campaign import Computing, ComputingSettings
from echobound.candidates import Candidates
from echobound.data import Record
from echobound.errors import InputError, RunError
from echobound.runs import Progress, RunFolder
from echobound.runs.drawn import require_candidates
from echobound.runs.faults import Faults


def audit(
    run: str | Path,
    *,
    data: Sequence[Record] | None = None,
    everything: bool = False,
    sample: int = 20,
    seed: int | None = None,
    batch: int | None = None,
    candidates: Sequence[Candidates] | None = None,
    computing: Computing | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    **settings: Unpack[ComputingSettings],
) -> Audit:
    """Derive the certificate of a run again, on any machine, and report what does not follow.

    Nothing in the folder is changed, and nothing it says about itself is believed. The digests of data, plan, ledger
    and models are computed again, and the certificate is derived from plan and ledger field by field. Networks are
    drawn and trained again from their index: always the winner, the worst network and the members of the committee, and
    a sample of the others, including the fresh ones of a verification. With a second certificate, the models run over
    the test data again; and what the delivered model is said to be worth is assessed again.

    Parameters
    ----------
    run
        The run folder.
    data
        The original records, as read from their files: those of the run must be parts of them.
    everything
        Train all networks again.
    sample
        How many of the networks that carry no claim to train again.
    seed
        Chooses them; taken from the operating system if not given. Whoever knows it beforehand can forge other rows.
    batch
        Draws in a batch; it has no influence.
    candidates
        What was drawn, for a run that does not store it (`CertifiedSearch.candidates_`).
    computing, on_progress
        As in `identify`; fields of `Computing` may also be given as keywords.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from echobound import identify, ph_experiment
    >>> training, validation = ph_experiment(samples=(400, 300))
    >>> with TemporaryDirectory() as folder:
    ...     run = identify(training, validation, law="paper", order=10, networks=20, run=f"{folder}/run").run
    ...     outcome = audit(run, data=[training, validation], sample=5)
    >>> outcome.passed, outcome.claimed, outcome.retrained
    (True, 11, 16)
    """
    if not isinstance(sample, int) or sample < 0:
        raise InputError(f"the sample must be a whole number of networks from 0 on, got {sample!r}")
    if seed is not None and (not isinstance(seed, int) or seed < 0):
        raise InputError(f"the seed must be a whole number from 0 on, got {seed!r}")
    faults = Faults(Path(run), collect=True)
    folder, how = RunFolder(run, faults), Computing.of(computing, settings)
    if not folder.has("plan.json"):
        _ = RunFolder(run).plan  # says that this is no run folder
    if not folder.has("certificate.json"):
        raise RunError(f"{run} has no certificate.json yet: there is nothing to audit before its run is finished")
    chosen = secrets.randbits(48) if seed is None else seed
    plan = faults.attempt("plan.json", lambda: folder.plan)
    stores_data = plan is None or folder.stores_data
    counts = (0, 0, 0)
    if stores_data:
        experiments = faults.attempt("data.npz", lambda: folder.experiments)
        for name, file in folder.model_files.items():
            faults.attempt(file, lambda name=name: folder.stored_model(name))  # type: ignore[misc]
        faults.attempt("model.npz", folder.require_delivered)
        later = replay_test_data(folder)
        if data is not None and experiments is not None:
            check_originals(replace(experiments, test=(*experiments.test, *later)), data, faults)
    elif data is not None:
        faults.notes.append("the original records were not looked at, since this run stores no data to compare")
    if plan is not None:
        if candidates is not None:  # other versions may well give the same scores: drawing again will tell
            require_candidates(plan, candidates, but=["packages"])
        rows = faults.attempt("ledger.sqlite", lambda: (folder.search, folder.fresh))
        faults.attempt("certificate.json", lambda: folder.certificate)
        drawn = candidates
        if not drawn and stores_data:
            drawn = faults.attempt("plan.json", lambda: folder.candidates(how.kernel))
        if drawn and faults.attempt("ledger.sqlite", lambda: folder.search) is not None:
            with how.open_engine() as engine:
                retraining = Retraining(folder, drawn, engine, batch, on_progress)
                counts = retraining.check_rows(None if everything else sample, chosen)
                retraining.check_models()
        elif stores_data:
            faults.notes.append("no network was trained again, since the plan, the data or the ledger cannot be used")
        else:
            counts = (0, 0 if rows is None else sum(map(len, rows)), 0)
            faults.notes.append(
                "nothing was drawn again, since this run stores neither its data nor what it drew: whoever has both"
                " fits the search again in Python and passes candidates=[search.candidates_]"
            )
    check_assessment(folder)
    found = tuple(faults.findings), tuple(faults.sensitive), tuple(faults.notes)
    members = 1 if plan is None else plan.members
    return Audit(folder.path, *found, *counts, seed=chosen, members=members, unconfirmed=tuple(faults.unconfirmed))
