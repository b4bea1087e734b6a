"""Dispatch: hand out batches of draws to workers, write rows to the ledger, report progress."""

from __future__ import annotations

import signal
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import asdict, replace

import numpy as np

from echobound.arrays import Rows
from echobound.campaign.batches import Batches
from echobound.campaign.engines import Engine, Report
from echobound.campaign.interrupt import Interrupted, asked_to_stop
from echobound.candidates import Candidates
from echobound.errors import RunError
from echobound.kernels.base import Status, row_dtype
from echobound.kernels.blas import one_blas_thread
from echobound.runs.ledger import Ledger
from echobound.runs.progress import Progress
from echobound.runs.provenance import require_same_versions
from echobound.scenario.words import noun

AHEAD = 2  # batches submitted for each worker: one in hand, one waiting
LOSSES = 3  # times a batch may be lost with its worker
STALLED = 60.0  # seconds without a finished batch after which that is said, or ten times what the last one took
GLANCE = 0.2  # seconds between looks at signals and at the engine's health
OnProgress = Callable[[Progress], None]


def run_campaign(
    candidates: Candidates,
    indices: range,
    ledger: Ledger,
    engine: Engine,
    *,
    batch: int | None = None,
    on_progress: OnProgress | None = None,
) -> Rows:
    """Score the draws that the ledger does not have yet, and return the rows of all, in the order of their index.

    The result does not depend on `batch` or `engine`. Rows go to the ledger as batches are finished. A signal (SIGINT,
    SIGTERM) lets the batches in hand finish and raises `Interrupted`; a process that is killed loses them. Either way
    the same call resumes from there. A batch is about a second's worth of draws if its size is not given; progress is
    reported at the start and after each batch.
    """
    stream, family = candidates.stream, candidates.family
    progress = ledger.begin(indices, candidates.measures[0].direction, stream, family)
    todo = progress.planned - progress.done
    tell = on_progress or (lambda _: None)
    batches = Batches(ledger.missing(indices, stream, family), todo, candidates.batch if batch is None else batch)
    # Entered first: in threads, only the one that limits BLAS may be able to restore it.
    with one_blas_thread(), asked_to_stop() as asked:
        tell(progress)
        if todo:
            # Here, whatever the engine: networks are trained here in the end, and workers find the code that is kept.
            candidates.prepare(lambda words: tell(replace(progress, doing=words)))
            ledger.begin(indices, candidates.measures[0].direction, stream, family)  # the clock starts now
            engine.start(candidates)
            for report in _reports(engine, batches, asked):
                ledger.append(report.rows, engine=engine.name, kernel=candidates.code, place=report.place)
                tell(ledger.progress(stream, family))
        signum = asked()
        if signum is not None:
            raise Interrupted(signum, _how_to_resume(signum, ledger, ledger.progress(stream, family), candidates))
    return ledger.rows(stream, family, indices)


def evaluate_draws(
    candidates: Candidates,
    indices: Sequence[int],
    engine: Engine,
    *,
    batch: int | None = None,
    on_progress: OnProgress | None = None,
) -> Rows:
    """Score some draws without a ledger, and return their rows in the order of their index."""
    batches = Batches(iter(indices), len(indices), candidates.batch if batch is None else batch)
    rows = np.zeros(0, row_dtype(len(candidates.measures)))
    start, sign = time.monotonic(), 1.0 if candidates.measures[0].direction == "max" else -1.0
    with one_blas_thread(), asked_to_stop() as asked:
        if len(indices):
            nothing = Progress(0, len(indices), None, None, 0, 0.0, 0)
            candidates.prepare(lambda words: on_progress(replace(nothing, doing=words)) if on_progress else None)
            start = time.monotonic()
            engine.start(candidates)
        for report in _reports(engine, batches, asked):
            rows = np.concatenate([rows, report.rows])
            if on_progress is not None:
                scores, failures = sign * rows["scores"][:, 0], int((rows["status"] == Status.DIVERGED).sum())
                best, worst, done = float(sign * scores.max()), float(sign * scores.min()), len(rows)
                on_progress(Progress(done, len(indices), best, worst, failures, time.monotonic() - start, fresh=done))
        signum = asked()
        if signum is not None:
            raise Interrupted(signum, f"stopped by {signal.Signals(signum).name}: start again to train all of them")
    return rows[np.argsort(rows["index"])]


def _reports(engine: Engine, batches: Batches, asked: Callable[[], int | None]) -> Iterator[Report]:
    """Reports of batches as they finish; a bounded number is submitted, and no more once asked to stop."""
    pending: dict[Future[Report], list[int]] = {}
    lost: deque[list[int]] = deque()
    losses: Counter[int] = Counter()
    stopping, patience = False, _Patience(engine)
    while pending or lost or (batches.left and not stopping):
        if asked() is None:
            while (lost or batches.left) and len(pending) < AHEAD * engine.workers:
                if batch := lost.popleft() if lost else batches.cut(engine.workers):
                    pending[engine.submit(batch)] = batch
                    patience.began(batch)
        elif not stopping:
            stopping = True
            lost.clear()
            for future in engine.cancel(list(pending)):
                del pending[future]
        engine.check()
        patience.check(len(pending))
        if not stopping and (overdue := patience.overdue(pending)):
            lost.extend(pending.pop(future) for future in engine.elsewhere(overdue))
        if not pending:  # no workers at the moment, or all batches were withdrawn
            time.sleep(0.0 if stopping else GLANCE)
        ended, _ = wait(pending, timeout=GLANCE, return_when=FIRST_COMPLETED)
        # Finished batches first: an error must not lose their rows.
        for future in sorted(ended, key=lambda one: one.cancelled() or one.exception() is not None):
            batch = pending.pop(future)
            try:
                report = future.result()
            except Exception as error:
                if not engine.recovered(error):
                    raise
                if stopping:
                    continue
                losses[batch[0]] += 1
                if losses[batch[0]] > LOSSES:
                    raise RunError(
                        f"the batch of draws {batch[0]} to {batch[-1]} was lost with its worker {LOSSES + 1} times: do"
                        " workers have enough memory? Finished rows are safe in the ledger; start again to resume"
                    ) from None
                lost.append(batch)
                continue
            require_same_versions(report.place.host, asdict(report.place))
            batches.took(len(batch), report.seconds)
            patience.heard(batch, report.seconds)
            yield report


class _Patience:
    """How long to wait for workers. One that was stopped holds its batches without a word."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.last, self.limit = engine, time.monotonic(), STALLED
        self.slowest = 0.0
        self.begun: dict[int, float] = {}  # by the first draw of a batch
        self.moved: Counter[int] = Counter()

    def began(self, batch: list[int]) -> None:
        """A batch was handed out."""
        self.begun[batch[0]] = time.monotonic()

    def heard(self, batch: list[int], seconds: float) -> None:
        """A batch that took so long was finished."""
        self.last, self.limit = time.monotonic(), max(STALLED, 10 * seconds)
        self.slowest = max(self.slowest, seconds)

    def overdue(self, pending: Mapping[Future[Report], list[int]]) -> list[Future[Report]]:
        """Batches that take a minute and ten times as long as any other did.

        Each time that a batch is taken elsewhere it has twice as long: one that is only slow is finished in the end.
        """
        now, most, found = time.monotonic(), max(STALLED, 10 * self.slowest), []
        for future, batch in pending.items() if self.slowest else ():
            if now - self.begun[batch[0]] > most * 2 ** self.moved[batch[0]]:
                self.moved[batch[0]] += 1
                found.append(future)
        return found

    def check(self, pending: int) -> None:
        """Warn, and then half as often."""
        waited = time.monotonic() - self.last
        if pending and waited > self.limit:
            self.limit *= 2
            warnings.warn(
                f"no batch was finished for {waited:.0f} s, and {pending} are with the workers of the engine"
                f" {self.engine.name!r}: are these stopped, or out of memory? Rows so far are safe; Ctrl-C ends, and"
                " the same command resumes",
                stacklevel=2,
            )


def _how_to_resume(signum: int, ledger: Ledger, reached: Progress, candidates: Candidates) -> str:
    many = noun(candidates.members).many
    what = f"stopped by {signal.Signals(signum).name} at {reached.done} of {reached.planned} {many}"
    if ledger.path is None:
        return f"{what}: they are lost, since no run folder was given"
    return f"{what}: they are kept, and the same command with the run folder {ledger.path.parent} resumes from there"
