"""Trial: how long a run will take, by a few draws whose scores nobody looks at.

Run as a process of its own (``python -m echobound.studio.trial``), with a draft on standard input: it may compile, use
memory and be stopped without a word, and the server stays quick.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from echobound.campaign.machine import worker_count
from echobound.errors import EchoboundError
from echobound.kernels.blas import one_blas_thread
from echobound.runs.drawn import candidates_of
from echobound.studio.drafts import Draft
from echobound.studio.workspace import Workspace

SECONDS = 4.0  # spent on draws, beyond the first of each family
DRAWS = 12
REST = 8.0  # seconds of what is not drawing: start, reading, linear model, diagnostics, page


def trial(draft: Draft, space: Workspace) -> dict[str, Any]:
    """Seconds that one draw takes on one core, by a few of them, and what else a run takes."""
    settled, scheme = draft.settle(draft.records(space))
    families = candidates_of(settled, scheme.experiments, str(draft.computing.get("kernel", "cpu")))
    workers, total, drawn = worker_count(draft.computing.get("workers")), 0.0, 0
    with one_blas_thread():
        for family in families:
            family.score([0])  # compiles
            spent, count = 0.0, 0
            while count < DRAWS and spent < SECONDS / len(families):
                start = time.perf_counter()
                family.score([1 + count])
                spent, count = spent + time.perf_counter() - start, count + 1
            total, drawn = total + spent / count * settled.networks, drawn + count
    return {"each": total / max(1, settled.networks * len(families)), "draws": drawn, "workers": workers, "rest": REST}


def main() -> None:
    """Read a draft, print JSON."""
    warnings.simplefilter("ignore")
    try:
        content = json.load(sys.stdin)
        answer = trial(Draft.from_json(content["draft"]), Workspace(Path(content["folder"])))
    except EchoboundError as error:
        answer = {"error": str(error)}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
