"""Auditing: the whole of it, part by part."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path

from echobound.audit.files import Files
from echobound.audit.findings import Audit
from echobound.audit.log import Log
from echobound.audit.originals import check_originals
from echobound.audit.replay import check_generalisation
from echobound.audit.retraining import Retraining
from echobound.campaign.engines import Engine, opened
from echobound.data import Record
from echobound.errors import InputError, RunError
from echobound.kernels import get_kernel
from echobound.runs.folder import RunFolder
from echobound.runs.progress import Progress

__all__ = ["audit"]


def audit(
    run: str | Path,
    *,
    data: Sequence[Record] | None = None,
    everything: bool = False,
    sample: int = 20,
    seed: int | None = None,
    workers: int | None = None,
    block: int | None = None,
    kernel: str = "cpu",
    engine: str | Executor | Engine = "threads",
    on_progress: Callable[[Progress], None] | None = None,
) -> Audit:
    """Derive the certificate of a run again, on any machine, and say what does not follow.

    Nothing in the folder is changed, and nothing it says of itself is believed: the digests of data, plan, ledger and
    models are made again, the certificate is derived from plan and ledger field by field, and networks are drawn and
    trained again from their index. Winner, worst network and members of the committee always are; of the others, fresh
    ones of a verification among them, a sample. Where there is a second certificate, the models run over the test data
    again.

    Parameters
    ----------
    run
        The run folder.
    data
        The original records, as read from their files: those of the run must be parts of them.
    everything
        Train all networks again.
    sample
        How many to train again of those that carry no claim.
    seed
        Chooses them; from the operating system if not given. Somebody who knows it beforehand can forge around it.
    workers, block, kernel, engine, on_progress
        As in `identify`; they have no influence beyond rounding.

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
    folder, code = RunFolder(run), get_kernel(kernel)
    if not (folder.path / "plan.json").exists():
        _ = folder.plan  # says that this is no run folder
    if not (folder.path / "certificate.json").exists():
        raise RunError(
            f"{folder.path} has no certificate.json yet: there is nothing to audit before its run is finished"
        )
    chosen = secrets.randbits(48) if seed is None else seed
    files = Files(folder, Log())
    files.read()
    log, counts = files.log, (0, 0, 0)
    later = check_generalisation(files)
    if data is not None and files.experiments is not None:
        everything_used = replace(files.experiments, test=(*files.experiments.test, *later))
        check_originals(everything_used, data, log)
    files.check_certificate()
    problems = files.problems()
    if problems is not None:
        with opened(engine, workers) as crew:
            retraining = Retraining(problems, code, files, log, crew, block, on_progress)
            counts = retraining.check_rows(None if everything else sample, chosen)
            retraining.check_models()
    elif files.plan is not None:
        log.notes.append("no network was trained again, since the plan, the data or the ledger cannot be used")
    return Audit(folder.path, tuple(log.findings), tuple(log.sensitive), tuple(log.notes), *counts, seed=chosen)
