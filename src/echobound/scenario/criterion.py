"""Criterion: a score and a limit that an episode has to meet, settled before the test data are opened."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from echobound.errors import InputError
from echobound.typed import refuse, shortened

Relation = Literal["<", "<=", ">", ">="]
_COMPARE = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
_FORM = re.compile(r"\s*(?P<score>[^<>=]*[^<>=\s])\s*(?P<relation><=|>=|<|>)\s*(?P<limit>[^<>=\s%]+)\s*%?\s*")


@dataclass(frozen=True)
class Criterion:
    """What an episode has to meet, such as ``fit>80``.

    Parameters
    ----------
    score
        Name of the score.
    relation, limit
        How the score of an episode must compare with which limit.

    Examples
    --------
    >>> criterion = Criterion.of("rmse < 0.1")
    >>> str(criterion), criterion.met([0.05, 0.1, None]).tolist()
    ('rmse<0.1', [True, False, False])
    """

    score: str
    relation: Relation
    limit: float

    def __post_init__(self) -> None:
        if self.relation not in _COMPARE or not math.isfinite(self.limit):
            raise InputError(f"a criterion is a score and a finite limit, such as fit>80, got {self}")

    @classmethod
    def of(cls, text: str) -> Criterion:
        """Read it from text."""
        found = _FORM.fullmatch(text)
        try:
            parts = found.groupdict() if found else {}
            return cls(parts["score"], parts["relation"], float(parts["limit"]))  # type: ignore[arg-type]  # by _FORM
        except (KeyError, ValueError):
            raise InputError(
                f"a criterion is a score, a comparison and a limit, such as fit>80 or rmse<0.1, got {text!r}"
            ) from None

    def require_sense(self, direction: Literal["max", "min"]) -> None:
        """Refuse a criterion that good models fail."""
        if (self.relation[0] == ">") != (direction == "max"):
            better, sign = ("larger", ">") if direction == "max" else ("smaller", "<")
            raise InputError(
                f"{better} is better for {self.score}, so bad models would satisfy the criterion {self}: write"
                f" {self.score}{sign}{self.limit:g}"
            )

    def met(self, scores: Sequence[float | None]) -> NDArray[np.bool_]:
        """Which scores meet it; None stands for an episode in which the model diverged, which does not."""
        values = np.array([math.nan if score is None else score for score in scores], dtype=np.float64)
        return np.asarray(_COMPARE[self.relation](values, self.limit)) & np.isfinite(values)

    def to_json(self) -> str:
        """As text: how a criterion is nested in other JSON."""
        return str(self)

    @classmethod
    def from_json(cls, content: Any, path: str | Path | None = None) -> Criterion:
        """Inverse of `to_json`."""
        if not isinstance(content, str):
            refuse(path, "criterion", f"a text was expected, found {shortened(repr(content))}")
        return cls.of(content)

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """The JSON Schema of `to_json`."""
        return {"type": "string", "minLength": 1}

    def __str__(self) -> str:
        short = f"{self.limit:g}"
        return f"{self.score}{self.relation}{short if float(short) == self.limit else repr(self.limit)}"
