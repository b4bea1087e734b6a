"""Engine room: blocks of draws to workers, rows to the ledger, events to whoever watches."""

from __future__ import annotations

import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import asdict

import numpy as np

from echobound.arrays import Rows
from echobound.campaign.batches import Batches
from echobound.campaign.engines import Engine, Job, Report, opened
from echobound.campaign.interrupt import Interrupted, asked_to_stop
from echobound.campaign.machine import memory_gib, usable_cores, worker_count
from echobound.errors import RunError
from echobound.kernels.base import Kernel, Status, row_dtype
from echobound.kernels.blas import one_blas_thread
from echobound.kernels.problem import Problem
from echobound.runs.ledger import Ledger
from echobound.runs.progress import Progress
from echobound.runs.provenance import require_same_versions

__all__ = ["Progress", "evaluate_draws", "memory_gib", "run_campaign", "usable_cores", "worker_count"]

AHEAD = 2  # blocks submitted for each worker: one in hand, one waiting
LOSSES = 3  # times a block may be lost with its worker
GLANCE = 0.2  # seconds between looks at signals and at the engine's health


def run_campaign(
    kernel: Kernel,
    problem: Problem,
    indices: range,
    ledger: Ledger,
    *,
    workers: int | None = None,
    block: int | None = None,
    engine: str | Executor | Engine = "threads",
    on_progress: Callable[[Progress], None] | None = None,
) -> Rows:
    """Evaluate the draws that the ledger does not have yet, and return the rows of all, in the order of their index.

    The result does not depend on `workers`, `block` or `engine`. Rows go to the ledger as blocks end. A signal (SIGINT,
    SIGTERM) lets the blocks in hand end and raises `Interrupted`; a process that is killed loses them. Either way the
    same call goes on from there.

    Parameters
    ----------
    kernel, problem, indices
        What to evaluate.
    ledger
        Where rows are, and go.
    workers, block
        Batches evaluated at the same time, and their size; cores, and about a second, if not given.
    engine
        By name (then it is closed at the end), an executor, or an engine; see `get_engine`.
    on_progress
        Called at the start and after each block.
    """
    stream, family = problem.stream, problem.family
    progress = ledger.begin(indices, problem.scores[0].direction, stream, family)
    todo = progress.planned - progress.done
    tell = on_progress or (lambda _: None)
    blocks = Batches(ledger.missing(indices, stream, family), todo, block, kernel)
    # Entered first: in threads, only the one that limits BLAS may be able to restore it.
    with one_blas_thread(), asked_to_stop() as asked:
        with opened(engine, workers) as crew:
            tell(progress)
            if todo:
                crew.start(Job(kernel, problem))
                for report in _reports(crew, blocks, asked):
                    ledger.append(report.rows, engine=crew.name, kernel=kernel.name, place=report.place)
                    tell(ledger.progress(stream, family))
        signum = asked()
        if signum is not None:
            raise Interrupted(signum, _how_to_go_on(signum, ledger, ledger.progress(stream, family)))
    return ledger.rows(stream, family, indices)


def evaluate_draws(
    kernel: Kernel,
    problem: Problem,
    indices: Sequence[int],
    *,
    workers: int | None = None,
    block: int | None = None,
    engine: str | Executor | Engine = "threads",
    on_progress: Callable[[Progress], None] | None = None,
) -> Rows:
    """Evaluate some draws without a ledger, and return their rows in the order of their index."""
    blocks, rows = Batches(iter(indices), len(indices), block, kernel), np.zeros(0, row_dtype(len(problem.scores)))
    start, sign = time.monotonic(), 1.0 if problem.scores[0].direction == "max" else -1.0
    with one_blas_thread(), asked_to_stop() as asked:
        with opened(engine, workers) as crew:
            if len(indices):
                crew.start(Job(kernel, problem))
            for report in _reports(crew, blocks, asked):
                rows = np.concatenate([rows, report.rows])
                if on_progress is not None:
                    scores = sign * rows["scores"][:, 0]
                    on_progress(
                        Progress(
                            done=len(rows),
                            planned=len(indices),
                            best=float(sign * scores.max()),
                            worst=float(sign * scores.min()),
                            failures=int((rows["status"] == Status.DIVERGED).sum()),
                            seconds=time.monotonic() - start,
                            fresh=len(rows),
                        )
                    )
        signum = asked()
        if signum is not None:
            raise Interrupted(
                signum, f"stopped by {signal.Signals(signum).name}: start again to have all of them trained"
            )
    return rows[np.argsort(rows["index"])]


def _reports(crew: Engine, blocks: Batches, asked: Callable[[], int | None]) -> Iterator[Report]:
    """Reports of blocks as they end; a bounded number is submitted, and none any more once asked to stop."""
    pending: dict[Future[Report], list[int]] = {}
    again: deque[list[int]] = deque()
    losses: Counter[int] = Counter()
    stopping = False
    while pending or again or (blocks.left and not stopping):
        if asked() is None:
            while (again or blocks.left) and len(pending) < AHEAD * crew.workers:
                if block := again.popleft() if again else blocks.cut(crew.workers):
                    pending[crew.submit(block)] = block
        elif not stopping:
            stopping = True
            again.clear()
            for future in crew.cancel(list(pending)):
                del pending[future]
        crew.check()
        if not pending:  # no workers just now, or all was taken back
            time.sleep(0.0 if stopping else GLANCE)
        ended, _ = wait(pending, timeout=GLANCE, return_when=FIRST_COMPLETED)
        for future in ended:
            block = pending.pop(future)
            try:
                report = future.result()
            except Exception as error:
                if not crew.recovered(error):
                    raise
                if stopping:
                    continue
                losses[block[0]] += 1
                if losses[block[0]] > LOSSES:
                    raise RunError(
                        f"the block of networks {block[0]} to {block[-1]} was lost with its worker {LOSSES + 1} times:"
                        " do workers have enough memory? The rows before are safe in the ledger; start again to go on"
                    ) from None
                again.append(block)
                continue
            require_same_versions(report.place.host, asdict(report.place))
            blocks.took(len(block), report.seconds)
            yield report


def _how_to_go_on(signum: int, ledger: Ledger, reached: Progress) -> str:
    what = f"stopped by {signal.Signals(signum).name} at {reached.done} of {reached.planned} networks"
    if ledger.path is None:
        return f"{what}: they are lost, since no run folder was given"
    return f"{what}: they are kept, and the same command with the run folder {ledger.path.parent} goes on from there"
