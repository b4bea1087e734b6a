"""Attack echobound: kills, concurrent starts, mutated files, damaged folders, options at the edges; count what falls.

    python benchmarks/attack.py [--size small|full] [--only files,folders,...] [--minutes 10] [--again]

Counted are: lost (a run that cannot be opened or resumed, or another result), traceback (an error that is not one
sentence), hang (over 10 s), memory (over 2 GiB) and crash (the process is gone). Attempts are numbered, and each is
made from its number alone. What was tried is kept in benchmarks/attack.json, so that another call goes on from there.
The exit code is 1 if anything fell.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
SIZES = {
    "files": (3000, 100_000),
    "folders": (200, 10_000),
    "options": (60, 5000),
    "kills": (20, 1000),
    "starts": (20, 500),
}
FALLEN = ("lost", "traceback", "hang", "memory", "crash")
SECONDS, BYTES = 10.0, 2 << 30
AGAIN = "; tried again: "
BEGIN, END = "<!-- what was tried -->", "<!-- end -->"
KEPT = 30.0  # seconds after which what was tried is written down


def worker(kind: str, folder: Path, first: int, end: int, report: int) -> None:
    """Make attempts one after the other, in this process, and say what came of each."""
    module = importlib.import_module(f"attacks.{kind}")
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    for number in range(first, end):
        try:
            outcome, note = module.attempt(folder, number), ""
        except BaseException as error:
            outcome = "lost" if isinstance(error, AssertionError) and str(error).startswith("lost") else "traceback"
            frame = traceback.extract_tb(error.__traceback__)[-1]
            note = f"{type(error).__name__}: {str(error)[:150]} ({Path(frame.filename).name}:{frame.lineno})"
        if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 > BYTES:
            outcome, note = "memory", f"{outcome} {note}"
        os.write(report, (json.dumps([number, outcome, note]) + "\n").encode())
        if outcome == "memory":
            break
    os._exit(0)


def attempts(kind: str, folder: Path, first: int, end: int) -> Iterator[tuple[int, str, str]]:
    """Outcomes of attempts; a worker that hangs or dies is replaced and the attempt counted."""
    steps = getattr(importlib.import_module(f"attacks.{kind}"), "STEPS", 1)
    while first < end:
        read, write = os.pipe()
        child = os.fork()
        if not child:
            os.close(read)
            worker(kind, folder, first, end, write)
        os.close(write)
        rest, why, outcome = b"", "", ""
        try:
            while True:
                # On a machine with more to do than it has cores, everything takes so many times longer.
                limit = SECONDS * steps * max(1.0, os.getloadavg()[0] / len(os.sched_getaffinity(0)))
                ready, _, _ = select.select([read], [], [], limit)
                part = os.read(read, 65536) if ready else b""
                if not part:
                    why = "crash" if ready else "hang"
                    break
                *lines, rest = (rest + part).split(b"\n")
                for line in lines:
                    number, outcome, note = json.loads(line)
                    first = number + 1
                    yield number, outcome, note
        finally:  # also when nobody asks for more
            os.close(read)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        if first < end and outcome != "memory":  # that one was counted, and a fresh process goes on
            yield first, why, ""
            first += 1


def run(kind: str, count: int, state: dict, deadline: float, save: Callable[[], object]) -> None:
    """Make attempts until so many were made, or the time is over; what was done is kept every half minute."""
    done = state.setdefault(kind, {"attempts": 0, "outcomes": {}, "notes": {}, "seconds": 0.0})
    if done["attempts"] >= count:
        return
    outcomes, notes = Counter(done["outcomes"]), done["notes"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        importlib.import_module(f"attacks.{kind}").prepare(folder)
        last = time.monotonic()
        for number, outcome, note in attempts(kind, folder, done["attempts"], count):
            outcomes[outcome] += 1
            done["attempts"] = number + 1
            if outcome in FALLEN and len(notes) < 200:
                notes[str(number)] = f"{outcome}: {note}"
                print(f"{kind} {number}: {outcome} {note}", flush=True)
            now = time.monotonic()
            if now - last > KEPT or now > deadline or number + 1 == count:
                done["seconds"] = round(done["seconds"] + now - last, 1)
                done["outcomes"], last = dict(sorted(outcomes.items())), now
                save()
            if now > deadline:
                break


def again(kind: str, state: dict) -> None:
    """Try again what fell, under its number: the count stays as it was, and the note says what comes of it now."""
    with tempfile.TemporaryDirectory() as name:
        folder, notes = Path(name), state[kind]["notes"]
        importlib.import_module(f"attacks.{kind}").prepare(folder)
        for number in sorted(map(int, notes)):
            [(_, outcome, note)] = attempts(kind, folder, number, number + 1)
            notes[str(number)] = f"{notes[str(number)].split(AGAIN)[0]}{AGAIN}{outcome} {note}".rstrip()
            print(f"{kind} {number}: {notes[str(number)]}", flush=True)


def written(state: dict) -> None:
    """Put the table, and what fell, into ATTACK.md."""
    file = HERE / "ATTACK.md"
    before, _, after = file.read_text().partition(BEGIN)
    fell = [f"- {kind} {number}: {note}" for kind, done in state.items() for number, note in done["notes"].items()]
    content = "\n".join(
        [BEGIN, table(state), "", "What fell, with what came of it under the same number later:", "", *fell]
    )
    file.write_text(f"{before}{content}\n{END}{after.partition(END)[2]}")


def table(state: dict) -> str:
    """What was tried and what came of it, as Markdown."""
    lines = [
        "| what | attempts | " + " | ".join(FALLEN) + " | all outcomes |",
        "|---|---|" + "---|" * (len(FALLEN) + 1),
    ]
    for kind, done in state.items():
        outcomes = done["outcomes"]
        fallen = " | ".join(str(outcomes.get(name, 0)) for name in FALLEN)
        every = ", ".join(f"{name} {count}" for name, count in outcomes.items())
        lines.append(f"| {kind} | {done['attempts']} | {fallen} | {every} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Attack echobound, and count what falls.")
    parser.add_argument("--size", choices=("small", "full"), default="full")
    parser.add_argument("--only", default=",".join(SIZES))
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--again", action="store_true", help="only try again what fell, under its number")
    parser.add_argument("--fresh", action="store_true", help="forget what was tried before")
    arguments = parser.parse_args()
    small, file = arguments.size == "small", HERE / "attack.json"
    state: dict = {} if small or arguments.fresh or not file.exists() else json.loads(file.read_text())
    deadline = time.monotonic() + 60 * arguments.minutes

    def save() -> None:
        if not small:
            file.write_text(json.dumps(state, indent=1, sort_keys=True) + "\n")

    for kind in arguments.only.split(","):
        if not arguments.again:
            run(kind, SIZES[kind][0 if small else 1], state, deadline, save)
        elif state.get(kind, {}).get("notes"):
            again(kind, state)
    save()
    if not small:
        written(state)
    print(table(state))
    sys.exit(any(done["outcomes"].get(name) for done in state.values() for name in FALLEN))


if __name__ == "__main__":
    main()
