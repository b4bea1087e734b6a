"""Retraining: networks drawn and trained again, and held against their rows and models."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from echobound.arrays import Rows
from echobound.audit.files import NAMED, Draw, Files
from echobound.audit.log import Log
from echobound.campaign.dispatch import evaluate_draws
from echobound.campaign.engines import Engine
from echobound.draws import SEARCH, VERIFICATION, draw_keys
from echobound.files import jsonable
from echobound.kernels import Kernel, Problem, Status
from echobound.kernels.sensitivity import TOLERANCE, compare_rows, readout_moves, relative
from echobound.kernels.training import final_fit, train_network
from echobound.network import EchoStateNetwork, family_names
from echobound.runs.progress import Progress, TotalProgress

__all__ = ["Retraining"]

NAMES = {SEARCH: "search", VERIFICATION: "verification"}


@dataclass
class Retraining:
    """Networks drawn and trained again, and held against their rows and models."""

    problems: Sequence[Problem]  # one for each family
    kernel: Kernel
    files: Files
    log: Log
    engine: Engine
    block: int | None
    on_progress: Callable[[Progress], None] | None
    tied: set[Draw] = field(default_factory=set)  # two of their ridges are as good as equal

    def check_rows(self, sample: int | None, seed: int) -> tuple[int, int, int]:
        """Train again; return how many carry a claim, how many others there are, and how many of those were trained."""
        recorded = {SEARCH: self.files.search, VERIFICATION: self.files.fresh}
        table = {
            (stream, int(row["family"]), int(row["index"])): row
            for stream, rows in recorded.items()
            if rows is not None
            for row in rows
        }
        claimed = {(SEARCH, *draw) for draw in self.files.claimed()}
        others = sorted(set(table) - claimed)
        count = len(others) if sample is None else min(sample, len(others))
        picked = np.random.default_rng(seed).permutation(len(others))[:count]
        chosen = claimed | {others[position] for position in picked}
        self._require_disjoint(table)
        whole = TotalProgress(self.on_progress, len(chosen), self.problems[0].scores[0].direction)
        for stream, problem in product(NAMES, self.problems):
            indices = sorted(index for s, family, index in chosen if (s, family) == (stream, problem.family))
            rows = evaluate_draws(
                self.kernel,
                problem.on(stream=stream),
                indices,
                block=self.block,
                engine=self.engine,
                on_progress=whole,
            )
            self._compare(problem.on(stream=stream), rows, [table[stream, problem.family, i] for i in indices])
            whole.next()
        return len(claimed), len(others), count

    def _require_disjoint(self, table: Iterable[tuple[int, int, int]]) -> None:
        """No draw of the verification may be one of the search, nor one of a family one of another."""
        keys = [
            tuple(key)
            for stream, problem in product(NAMES, self.problems)
            for key in draw_keys(
                problem.seed,
                stream,
                problem.family,
                sorted(i for s, family, i in table if (s, family) == (stream, problem.family)),
            ).tolist()
        ]
        alike = len(keys) - len(set(keys))
        if alike:
            self.log.find("draws of the verification", "none of the search", f"{alike} of them")

    def _compare(self, problem: Problem, rows: Rows, recorded: Sequence[Any]) -> None:
        different, stream = 0, NAMES[problem.stream]
        of = f" of {family_names([p.law for p in self.problems])[problem.family]}" if len(self.problems) > 1 else ""
        for row, other in zip(rows, recorded, strict=True):
            where = f"network {row['index']}{of} of the {stream}"
            # Once many differ, the others are not probed: it takes long, and the case is clear.
            beyond = relative(row["scores"], other["scores"]) > TOLERANCE
            agreement = "different" if different >= NAMED and beyond else compare_rows(problem, self.kernel, row, other)
            if agreement == "sensitive":
                said = f"{_row(problem, row)} here, {_row(problem, other)} in the ledger"
                self.log.sensitive.append(f"{where}: {said}, which is what rounding does to it")
                if problem.stream == SEARCH and row["ridge"] != other["ridge"]:
                    self.tied.add((problem.family, int(row["index"])))
            elif agreement == "different":
                different += 1
                if different <= NAMED:
                    self.log.find(f"ledger.sqlite, {where}", f"{_row(problem, row)}", _row(problem, other))
        if different > NAMED:
            self.log.find(
                f"ledger.sqlite, networks{of} of the {stream}",
                f"the rows of {len(rows)} that were trained again",
                f"{different} that differ, those above among them",
            )

    def check_models(self) -> None:
        """Train the picked network and the committee again."""
        ranked, files = self.files.ranked, self.files
        assert files.plan is not None
        if files.model is not None and not ranked:
            self.log.find("model.npz", "no model, since all networks diverged", "one")
        if files.model is not None and ranked:
            self._check_model("model.npz", files.model, ranked[0])
        if files.committee is not None and files.plan.committee:
            members = files.committee.members
            stored = [(member.origin.get("family"), member.origin.get("index")) for member in members]
            if stored != ranked:
                self.log.find("committee.npz, members", *(_listed(draws, self.problems) for draws in (ranked, stored)))
            for member, draw in zip(members, stored, strict=True):
                if draw in ranked:
                    self._check_model(f"committee.npz, network {draw[1]}", member, draw)

    def _check_model(self, name: str, stored: EchoStateNetwork, draw: Draw) -> None:
        family, index = draw
        ours, _ = train_network(self.kernel, self.problems[family], index)
        (header, arrays), (other_header, other_arrays) = ours.content(), stored.content()
        header, other_header = jsonable(header), jsonable(other_header)
        differs = sorted(key for key in set(header) | set(other_header) if header.get(key) != other_header.get(key))
        distances = {key: _distance(arrays[key], other_arrays.get(key)) for key in sorted(arrays)}
        differs += [key for key, distance in distances.items() if distance > TOLERANCE]
        if not differs:
            return
        close = differs == ["readout"] and distances["readout"] <= self._readout_moves(draw)
        if close or (draw in self.tied and set(differs) <= {"origin", "readout"}):
            self.log.sensitive.append(f"{name}: its readout differs by {distances['readout']:.1e}, as by rounding")
        else:
            self.log.find(name, f"network {index} trained again", f"another {', '.join(differs)}")

    def _readout_moves(self, draw: Draw) -> float:
        problem, index = self.problems[draw[0]], draw[1]
        best, _ = self.kernel.trial(problem, index).pick(problem)
        return readout_moves(final_fit(problem, best), self.kernel, index)


def _listed(draws: Sequence[tuple[Any, Any]], problems: Sequence[Problem]) -> list[Any]:
    """Indices, with the family where there are several."""
    return [index for _, index in draws] if len(problems) == 1 else list(draws)


def _distance(ours: Any, theirs: Any) -> float:
    """Relative distance of two arrays, in norm; infinite for another shape, and for what is not finite."""
    if theirs is None or ours.shape != theirs.shape:
        return math.inf
    distance = float(np.linalg.norm(ours - theirs)) / max(float(np.linalg.norm(ours)), 1e-300)
    return distance if (ours != theirs).any() or not math.isfinite(distance) else 0.0


def _row(problem: Problem, row: Any) -> str:
    scores = [f"{s.name.upper()} {value:.10g}" for s, value in zip(problem.scores, row["scores"], strict=True)]
    status = "diverged, " if row["status"] == Status.DIVERGED else ""
    return f"{status}{', '.join(scores)} (order {row['order']}, ridge {row['ridge']:g})"
