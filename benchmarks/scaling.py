"""Threads against as many separate processes, on many cores: ``python benchmarks/scaling.py [CASE ...]``.

Each worker has its own share of the same networks, all at the same time: once as threads of this process, once as
processes that know nothing of each other. What threads lose is the ratio of the time they need in sum. A campaign with
the engine `threads` hands the same networks out in batches, as `identify` does; it ends with its last worker. Needs the
packages of the core only.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
from numba.core.dispatcher import Dispatcher

from echobound.campaign import get_engine, run_campaign, usable_cores
from echobound.candidates import Networks
from echobound.kernels import blocks_in_turn, get_kernel, hold_out
from echobound.kernels.blas import one_blas_thread
from echobound.network import get_law
from echobound.network.laws import Shape
from echobound.plants import ph_experiment
from echobound.runs.ledger import Ledger
from echobound.scores import get_score

CASES = ("50", "200", "500", "default")
SECONDS = 3.0  # of work for each worker, about
PIECE = 16  # networks in a call: the signal of a user waits for them
ROUNDS = 2
CPU = get_kernel("cpu")


def problem(case: str):
    """Networks of one order on the pH plant, 8,000 samples; or the default law and settings on 1,600."""
    if case == "default":
        law, scores = get_law("mixed", shape=Shape(1600, 1, 1)), [get_score(name) for name in ("robust", "fit", "rmse")]
        return blocks_in_turn(ph_experiment(samples=(1000, 600)), 4, law=law, scores=scores)
    scores = [get_score("fit"), get_score("rmse")]
    return hold_out(*ph_experiment(samples=(5000, 3000)), law=get_law("paper", order=int(case)), scores=scores)


def evaluate(task, indices) -> float:
    """Seconds for so many networks, in pieces."""
    start = time.perf_counter()
    for at in range(0, len(indices), PIECE):
        CPU.evaluate(task, indices[at : at + PIECE])
    return time.perf_counter() - start


def serve() -> None:
    """A separate process: a line in is a case and a share of networks, a line out are the seconds."""
    tasks = {}
    for line in sys.stdin:
        case, first, stop, step = json.loads(line)
        if case not in tasks:
            tasks[case] = problem(case)
            CPU.prepare(tasks[case], lambda _: None)
            CPU.evaluate(tasks[case], range(2))
        print(evaluate(tasks[case], range(first, stop, step)), flush=True)


def by_processes(processes, case: str, count: int) -> list[float]:
    """Seconds that each process needs for its share."""
    for number, process in enumerate(processes):
        process.stdin.write(json.dumps([case, number, count, len(processes)]) + "\n")
        process.stdin.flush()
    return [float(process.stdout.readline()) for process in processes]


def by_threads(task, count: int, workers: int) -> list[float]:
    """Seconds that each thread needs for its share."""
    found = [0.0] * workers

    def work(number: int) -> None:
        found[number] = evaluate(task, range(number, count, workers))

    with one_blas_thread():
        threads = [threading.Thread(target=work, args=(number,)) for number in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return found


def by_campaign(task, count: int, workers: int) -> float:
    """Seconds of a campaign, until its last worker has finished."""
    with get_engine("threads", workers) as engine, Ledger(None, "bench", [s.name for s in task.scores]) as ledger:
        start = time.perf_counter()
        run_campaign(Networks(CPU, task), range(count), ledger, engine)
        return time.perf_counter() - start


def outside(task, indices) -> float:
    """Share of a thread's own time outside of compiled code that holds no lock: where threads can wait for each other.

    Part of it is NumPy, which lets others run too.
    """
    inside, depth = 0.0, 0

    def timed(function):
        def call(*arguments):
            nonlocal inside, depth
            start, depth = time.thread_time(), depth + 1
            try:
                return function(*arguments)
            finally:
                depth -= 1
                inside += time.thread_time() - start if depth == 0 else 0.0

        return call

    replaced = []
    for name, module in list(sys.modules.items()):
        for key, value in [*vars(module).items()] if name.startswith("echobound.kernels.cpu.") else []:
            if isinstance(value, Dispatcher) and value.targetoptions.get("nogil"):
                replaced.append((module, key, value))
                setattr(module, key, timed(value))
    try:
        start = time.thread_time()
        CPU.evaluate(task, indices)
        return 1.0 - inside / (time.thread_time() - start)
    finally:
        for module, key, value in replaced:
            setattr(module, key, value)


def measure(case: str, workers: int, processes) -> dict:
    """What threads and processes are worth, in cores."""
    task = problem(case)
    CPU.prepare(task, lambda _: None)
    evaluate(task, range(4))
    sample = 48 if case == "default" else 32
    each = evaluate(task, range(sample)) / sample
    share = max(8, min(int(SECONDS / each), 100_000))
    count = share * workers
    by_processes(processes, case, workers)  # loads the code
    alone, apart, near, campaign = [], [], [], []
    for _ in range(ROUNDS):
        alone.append(evaluate(task, range(0, count, workers)))
        apart.append(by_processes(processes, case, count))
        near.append(by_threads(task, count, workers))
        campaign.append(by_campaign(task, count, workers))
    best = int(np.argmin([sum(times) for times in apart]))
    # One core has the share of the first worker; others share caches and the clock with their neighbours.
    worth = workers * min(alone) / min(times[0] for times in apart)
    threads = worth * sum(apart[best]) / min(sum(times) for times in near)
    return {
        "case": case,
        "workers": workers,
        "networks": count,
        "milliseconds": 1e3 * min(alone) / share,
        "processes": worth,
        "threads": threads,
        "campaign": worth * sum(apart[best]) / (workers * min(campaign)),
        "threads_over_processes": threads / worth,
        "outside": outside(task, range(min(share, 64))),
    }


def table(rows: list[dict]) -> list[str]:
    """A line for each case, as in `RESULTS.md`."""
    return [
        "| networks | on one core | workers | processes | threads | threads / processes | a campaign in threads |"
        " outside of compiled code |",
        "|---|---|---|---|---|---|---|---|",
        *(
            f"| {'default law' if r['case'] == 'default' else 'order ' + r['case']} | {r['milliseconds']:.1f} ms |"
            f" {r['workers']} | {r['processes']:.1f} | {r['threads']:.1f} | {r['threads_over_processes']:.3f} |"
            f" {r['campaign']:.1f} | {100 * r['outside']:.1f} % |"
            for r in rows
        ),
    ]


def scaling(cases=CASES, workers: int | None = None) -> list[dict]:
    """All cases, one after the other, on the same processes."""
    workers = workers or usable_cores()
    command = [sys.executable, str(Path(__file__)), "serve"]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(workers)
    ]
    try:
        rows = []
        for case in cases:
            rows.append(measure(case, workers, processes))
            print(json.dumps(rows[-1]), flush=True)
        return rows
    finally:
        for process in processes:
            process.stdin.close()
            process.wait()


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
    else:
        print(*table(scaling(sys.argv[1:] or CASES)), sep="\n")
