"""Episodes: what independent test records say about new ones, for a model that was settled before they were opened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from echobound.errors import InputError
from echobound.scenario.bounds import epsilon_exact
from echobound.scenario.verification import downward, goodness, upward

__all__ = ["FEWEST_EPISODES", "Episodes", "judge_episodes"]

FEWEST_EPISODES = 20  # fewer say next to nothing: 19 alone leave epsilon = 0.146 at beta = 0.05
BETA = 0.05


@dataclass(frozen=True)
class Episodes:
    """The worst of n test episodes, and how likely a new one is worse.

    Parameters
    ----------
    episodes
        n, each independent of the others.
    worst
        Score of the worst of them; None if the model diverged there.
    epsilon, beta
        With confidence 1 - beta, a new episode is worse with probability at most epsilon.
    statement
        In plain words.
    """

    episodes: int
    worst: float | None
    epsilon: float
    beta: float
    statement: str

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return dict(vars(self))


def judge_episodes(
    scores: ArrayLike, *, what: str, score: str, direction: Literal["max", "min"], unit: str = "", beta: float = BETA
) -> Episodes | None:
    """Say how likely a new episode goes worse than the worst of the test; None of fewer than `FEWEST_EPISODES`.

    The best-of-N theory with episodes in place of networks: if they are independent and alike, a new one is worse than
    the worst of n with probability at most epsilon, where (1 - epsilon)**n = beta. It holds for one model that was
    settled before the episodes were opened.

    Parameters
    ----------
    scores
        One for each test episode.
    what
        The model, as the sentence calls it.
    score, direction, unit
        What was scored.
    beta
        1 - confidence.

    Examples
    --------
    >>> outcome = judge_episodes([90.0] * 19 + [80.0], what="the committee", score="fit", direction="max", unit="%")
    >>> outcome.worst, round(outcome.epsilon, 4)
    (80.0, 0.1391)
    >>> judge_episodes([90.0] * 19, what="the committee", score="fit", direction="max") is None
    True
    """
    values = goodness(scores, direction)
    if values.ndim != 1:
        raise InputError(f"one score for each episode is needed, got an array of shape {values.shape}")
    count = len(values)
    if count < FEWEST_EPISODES:
        return None
    worst = float(values.min() if direction == "max" else -values.min())
    epsilon = epsilon_exact(count, beta)
    name = score.upper() if score in ("fit", "rmse") else score
    start = f"With confidence 1 - {beta:g}, if the {count} test episodes are independent and new ones are like them,"
    if not np.isfinite(worst):
        said = f"{start} no limit follows: {what} diverged in at least one of them."
        return Episodes(count, None, epsilon, beta, said)
    rounded = (downward if direction == "max" else upward)(worst)
    said = (
        f"{start} {what} scores {name} {'below' if direction == 'max' else 'above'} {rounded}"
        f"{' ' + unit if unit else ''}, its worst there, on a new one with probability at most {upward(epsilon)}."
    )
    return Episodes(count, worst, epsilon, beta, said)
