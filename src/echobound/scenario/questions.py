"""Questions: what is asked of test data before they are opened, among it a criterion; and the errors that are found."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from echobound.arrays import Mask
from echobound.errors import InputError
from echobound.scenario.bounds import as_count, as_probability
from echobound.scenario.ordering import Direction
from echobound.typed import later, refuse, shortened

Relation = Literal["<", "<=", ">", ">="]
_COMPARE = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
_FORM = re.compile(r"\s*(?P<score>[^<>=]*[^<>=\s])\s*(?P<relation><=|>=|<|>)\s*(?P<limit>[^<>=\s%]+)\s*%?\s*")


@dataclass(frozen=True)
class Criterion:
    """What an episode has to meet, such as ``fit>80``, settled before the test data are opened.

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
            form = "a criterion is a score, a comparison and a limit, such as fit>80 or rmse<0.1"
            raise InputError(f"{form}, got {text!r}") from None

    def require_sense(self, direction: Direction) -> None:
        """Refuse a criterion that good models fail."""
        if (self.relation[0] == ">") != (direction == "max"):
            better, sign = ("larger", ">") if direction == "max" else ("smaller", "<")
            raise InputError(
                f"{better} is better for {self.score}, so bad models would satisfy the criterion {self}: write"
                f" {self.score}{sign}{self.limit:g}"
            )

    def met(self, scores: Sequence[float | None]) -> Mask:
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


@dataclass(frozen=True, kw_only=True)
class Questions:
    """What is asked of test data, settled before they are opened.

    Examples
    --------
    >>> from echobound.typed import to_json
    >>> to_json(Questions(criterion=Criterion.of("fit>80")))["criterion"]
    'fit>80'
    """

    beta: float = 0.05  # 1 - confidence of each statement
    discarded: int = 0  # how many of the largest errors are set aside
    criterion: Criterion | None = None  # None states no failure rate
    # None for records that are independent episodes. For one long record: into how many blocks it is cut, how many
    # samples are left out between two, and the mixing coefficient that is assumed over that gap.
    blocks: int | None = None
    gap: int | None = None
    mixing: float | None = None
    sure_band: bool = later(False)  # whether a band is stated with a confidence for this very one
    window: int | None = later(None)  # and one over so many consecutive samples

    def __post_init__(self) -> None:
        as_probability("beta", self.beta)
        as_count("discarded", self.discarded, least=0)
        given = [value is not None for value in (self.blocks, self.gap, self.mixing)]
        if any(given) and not all(given):
            raise InputError(
                "blocks of one record need three numbers: how many blocks, the gap between them in samples, and the"
                " mixing coefficient over the gap, an assumption that only you can make"
            )
        if self.blocks is not None and self.gap is not None and self.mixing is not None:
            as_count("blocks", self.blocks, least=2)
            as_count("gap", self.gap, least=0)
            if not 0 <= self.mixing <= 1:
                raise InputError(f"a mixing coefficient lies between 0 and 1, got {self.mixing}")
            object.__setattr__(self, "mixing", float(self.mixing))
        if self.window is not None:
            as_count("window", self.window)
        object.__setattr__(self, "beta", float(self.beta))


@dataclass(frozen=True, kw_only=True)
class EpisodeErrors:
    """Errors of one model in the test: one entry for each episode, None where it diverged.

    Examples
    --------
    >>> EpisodeErrors(rmse=(0.1, None), peaks=((0.2,), None)).episodes
    2
    """

    rmse: tuple[float | None, ...]
    peaks: tuple[tuple[float, ...] | None, ...]  # largest absolute error of each output
    scores: tuple[float | None, ...] | None = None  # what the criterion looks at; None without one
    # As peaks, over the last samples of each episode that a window has; None without one.
    windows: tuple[tuple[float, ...] | None, ...] | None = later(None)

    @property
    def episodes(self) -> int:
        """How many."""
        return len(self.rmse)
