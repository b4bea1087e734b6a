"""assessment.json: the numbers of an assessment on disk, and their checks when they are read.

The verdict and the first line are derived from the numbers whenever the file is read, and a file in which they do not
follow is refused. It is about the models and the test data that it names: where the folder has others by now (test data
were opened since), all of it is made again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from echobound.data.experiments import records_digest
from echobound.diagnostics.arx import LinearModel, Structure
from echobound.diagnostics.linear import Linear
from echobound.diagnostics.paired import Difference
from echobound.diagnostics.verdict import Evidence
from echobound.errors import DamagedFile
from echobound.files import jsonable
from echobound.runs.assessment import Assessment, assessment_of, known, opened_records
from echobound.scores import OutputScores, Summary
from echobound.typed import from_json, refuse, require_equal, require_version, shortened, to_json

if TYPE_CHECKING:
    from echobound.runs.folder import RunFolder

FILE = "assessment.json"
SCHEMA_VERSION = 1


def identity(folder: RunFolder) -> dict[str, str]:
    """What an assessment is about: digests of plan and models, and of the test data that were opened."""
    digests = folder.certificate.digests
    about = {name: digests.get(name, "") for name in ("plan", "model", "committee")}
    test = opened_records(folder) if folder.models else ()
    return {**about, "test": records_digest(test) if test else ""}


def linear_content(linear: Linear | None) -> dict[str, Any] | None:
    """What JSON says of the linear model: its FIT on validation data, its scores, and by how much it is worse."""
    if linear is None:
        return None
    model = linear.model
    return {
        "fit": known(linear.fit),
        "kind": linear.kind,
        "words": linear.words,
        "scores": linear.scores,
        "difference": to_json(linear.difference),
        "test_difference": to_json(linear.test_difference),
        "structure": to_json(model.structure),
        "coefficients": {name: getattr(model, name).tolist() for name in ("a", "b", "c", "centre", "spread")},
    }


def content_of(folder: RunFolder, found: Assessment) -> dict[str, Any]:
    """An assessment as JSON."""
    content = {
        "schema_version": SCHEMA_VERSION,
        "about": identity(folder),
        "summary": found.summary,
        "verdict": found.verdict.to_dict(),
        "scores": found.scores,
        "linear": linear_content(found.linear),
        "evidence": to_json(found.evidence),
    }
    return dict(jsonable(content))


@dataclass(frozen=True)
class _StoredOutput:
    """FIT and RMSE in the file; null is what was not finite."""

    fit: float | None
    rmse: float | None

    @property
    def numbers(self) -> OutputScores:
        return {"fit": _number(self.fit), "rmse": _number(self.rmse)}


@dataclass(frozen=True)
class _StoredScores(_StoredOutput):
    per_output: Mapping[str, _StoredOutput]

    @property
    def summary(self) -> Summary:
        return {**self.numbers, "per_output": {name: one.numbers for name, one in self.per_output.items()}}


_Numbers = tuple[float | None, ...]
_Rows = tuple[tuple[_Numbers, ...], ...]


@dataclass(frozen=True)
class _StoredCoefficients:
    a: _Rows
    b: _Rows
    c: _Numbers
    centre: _Numbers
    spread: _Numbers


@dataclass(frozen=True)
class _StoredLinear:
    fit: float | None
    kind: Literal["ARX", "output error"]
    words: str
    scores: Mapping[str, _StoredScores]
    difference: Difference | None
    test_difference: Difference | None
    structure: Structure
    coefficients: _StoredCoefficients

    @property
    def linear(self) -> Linear:
        """The linear model; its coefficients have the shapes that the structure asks for, or a ValueError says so."""
        structure, stored = self.structure, self.coefficients
        c, centre, spread = (np.array(one, dtype=np.float64) for one in (stored.c, stored.centre, stored.spread))
        outputs, inputs = len(c), len(centre) - len(c)
        a = np.array(stored.a, dtype=np.float64).reshape(structure.own, outputs, outputs)
        b = np.array(stored.b, dtype=np.float64).reshape(structure.inputs, outputs, inputs)
        if inputs < 1 or len(spread) != len(centre):
            raise ValueError(f"{len(c)} outputs, {len(centre)} means and {len(spread)} deviations do not go together")
        model = LinearModel(structure, a, b, c, centre, spread)
        scores = {role: one.summary for role, one in self.scores.items()}
        return Linear(self.kind, model, scores, (), self.difference, self.test_difference)


@dataclass(frozen=True)
class _Stored:
    """The whole file, every field with its type; what is derived again (`summary`, `verdict`) is compared as it is."""

    schema_version: int
    about: Mapping[str, str]
    summary: str
    verdict: Mapping[str, Any]
    scores: Mapping[str, _StoredScores]
    linear: _StoredLinear | None
    evidence: Evidence


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def read_assessment(folder: RunFolder, path: Path) -> Assessment | None:
    """The assessment of a folder from its file; None if it is about other models or test data.

    Every field is checked by its type, numbers that are there twice must be equal, and verdict and first line are
    derived again.
    """
    content = folder.json(FILE)
    require_version(content, SCHEMA_VERSION, path)
    if content.get("about") != identity(folder):
        return None
    stored = from_json(_Stored, content, path)
    try:
        linear = None if stored.linear is None else stored.linear.linear
    except ValueError as error:
        raise DamagedFile(path, "linear.coefficients", shortened(str(error))) from None
    scores = {role: one.summary for role, one in stored.scores.items()}
    _require_evidence(stored.evidence, scores, linear, path)
    derived = assessment_of(folder, stored.evidence, scores, linear)
    require_equal(content_of(folder, derived), content, path)
    return derived


def _require_evidence(evidence: Evidence, scores: dict[str, Summary], linear: Linear | None, path: Path) -> None:
    """The numbers that the verdict rests on must be those of the scores beside it."""
    if linear is None or "validation" not in scores or "validation" not in linear.scores:
        if evidence.model or scores or linear is not None:
            refuse(path, "scores", "those of a model or of the linear model beside it are missing")
        return
    if {*scores} != {*linear.scores} or ("test" in scores) != (evidence.tested > 0):
        refuse(path, "scores", "the delivered and the linear model are not scored on the same data")
    derived = {"fit": known(scores["validation"]["fit"]), "linear": known(linear.fit)}
    if "test" in scores:
        derived |= {"test": known(scores["test"]["fit"]), "linear_test": known(linear.scores["test"]["fit"])}
    last = scores.get("test", scores["validation"])
    content: dict[str, Any] = {
        **derived,
        "outputs": {name: known(one["fit"]) for name, one in last["per_output"].items()},
    }
    require_equal(to_json(content), {name: to_json(getattr(evidence, name)) for name in content}, path, "evidence")
