"""Verification: a certificate tested by fresh draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Unpack

from echobound.campaign import Computing, ComputingSettings, run_campaign
from echobound.candidates import Candidates
from echobound.draws import VERIFICATION
from echobound.errors import InputError
from echobound.report import write_page
from echobound.runs import Progress, RunFolder
from echobound.runs.drawn import require_candidates
from echobound.runs.progress import TotalProgress
from echobound.runs.verification import VerificationOutcome, verification_of


def verify(
    run: str | Path,
    fresh: int = 500,
    *,
    candidates: Sequence[Candidates] | None = None,
    computing: Computing | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    **settings: Unpack[ComputingSettings],
) -> VerificationOutcome:
    """Draw fresh networks from the law of a run, and count those that violate its certificate.

    They come from a stream of their own, so that none is among those of the search. A second call continues at the next
    unused index, and pools all fresh networks: what they certify holds at every number of them together, so that one
    may look and add more until content. A call that was interrupted is resumed by the next, and every fresh network
    that was ever drawn counts.

    Parameters
    ----------
    run
        The run folder; its files are checked first.
    fresh
        How many networks to add, of each family.
    candidates
        What was drawn, for a run that does not store it (`CertifiedSearch.candidates_`); made from the run if not
        given.
    computing
        How to compute; its fields may also be given as keywords (``workers=``, ``kernel=``, ``engine=``), which take
        precedence.
    on_progress
        Called after each batch of networks.

    Returns
    -------
    dict
        ``fresh``, ``violations``, ``p_value`` = P(X >= violations) for a number settled beforehand,
        ``epsilon_combined`` (what search and fresh networks certify together, however often one looks; ties count) and
        the same under ``worst``; of several families, ``families`` too.

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
    folder, how = RunFolder(run), Computing.of(computing, settings)
    # What can be refused is, before anything is locked.
    if candidates is not None:
        require_candidates(folder.plan, candidates)
    drawn = folder.candidates(how.kernel) if candidates is None else candidates
    with folder.writing() as ledger, how.open_engine() as engine:
        direction = folder.certificate.direction  # nothing is drawn for a certificate that does not follow from its run
        total = folder.fresh_due(fresh)
        progress = TotalProgress(on_progress, total * len(drawn), direction)
        for family in drawn:
            run_campaign(family.on(VERIFICATION), range(total), ledger, engine, on_progress=progress)
            progress.next()
        before = folder.verified
        folder.record_fresh(total, before)  # counted from here on, but one act until its page is written
        write_page(folder)
        folder.record_fresh(total)
        return verification_of(folder)
