"""Questions: what will be asked of test data, settled before they are opened."""

from __future__ import annotations

from typing import Any

from echobound.scenario import Criterion, Questions
from echobound.scores import get_score


def settle_questions(criterion: str | None = None, **settled: Any) -> Questions:
    """What is asked of test data, the criterion as text; an unknown score, or a reversed comparison, is refused.

    Examples
    --------
    >>> settle_questions("fit<80")
    Traceback (most recent call last):
        ...
    echobound.errors.InputError: larger is better for fit, so bad models would satisfy the criterion fit<80: write
    fit>80
    """
    asked = Questions(criterion=None if criterion is None else Criterion.of(criterion), **settled)
    if asked.criterion is not None:
        asked.criterion.require_sense(get_score(asked.criterion.score).direction)
    return asked
