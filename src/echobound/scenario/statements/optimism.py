"""Optimism: how much better a picked network does on the data it was picked by than on others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from echobound.scenario.ordering import Direction
from echobound.scenario.statements.base import Statement
from echobound.scenario.statements.episodes import finite
from echobound.scenario.words import ahead_words
from echobound.typed import later


@dataclass(frozen=True, kw_only=True)
class Optimism(Statement):
    """How much better the picked network is on the data it was picked by than on test data.

    Examples
    --------
    >>> print(Optimism.of(90.5, 88.25, score="fit", unit="%").words)
    The picked network scores 90.5 % on the validation data it was picked by and 88.25 % on test data: 2.25 worse. The
    certificate is about the former.
    """

    kind = "optimism"
    title = "on test data"
    derived = ("difference",)

    score: str
    direction: Direction
    unit: str
    # The scores of the picked network; None where it diverged.
    validation: float | None
    test: float | None
    horizon: int | None = later(None)  # horizon and blocks as in `certify`
    blocks: int | None = later(None)

    @property
    def difference(self) -> float | None:
        """By how much the score is worse on test data; negative if it is better."""
        if self.validation is None or self.test is None:
            return None
        return (self.validation - self.test) * (1 if self.direction == "max" else -1)

    @property
    def words(self) -> str:
        """The difference in plain words."""
        unit = f" {self.unit}" if self.unit else ""
        if self.difference is None:
            return f"The picked {self.drawn.one} diverged on validation or test data."
        sense = "worse" if self.difference > 0 else "better"
        outcome = "the same" if self.difference == 0 else f"{abs(self.difference):.3g} {sense}"
        score = "scores" if self.horizon is None else f"scores, {ahead_words(self.horizon)},"
        before, test = (f"{value:.6g}{unit}" for value in (self.validation, self.test))
        if self.blocks is not None:
            return (
                f"The picked {self.drawn.one} {score} {before} in mean over the {self.blocks} blocks it was picked by,"
                " each after training on the others. Trained again on all of them, which no data had scored before, it"
                f" {score} {test} on test data: {outcome}. These are scores of models that differ in their training;"
                " the certificate is about the former."
            )
        return (
            f"The picked {self.drawn.one} {score} {before} on the validation data it was picked by"
            f" and {test} on test data: {outcome}. The certificate is about the former."
        )

    @classmethod
    def of(
        cls,
        validation: float,
        test: float,
        *,
        score: str = "score",
        direction: Direction = "max",
        unit: str = "",
        members: int = 1,
        horizon: int | None = None,
        blocks: int | None = None,
    ) -> Optimism:
        """State it from both scores; what is not finite has diverged."""
        found: dict[str, Any] = {"validation": finite(validation), "test": finite(test)}
        how: dict[str, Any] = {"members": members, "horizon": horizon, "blocks": blocks}
        return cls(score=score, direction=direction, unit=unit, **found, **how)
