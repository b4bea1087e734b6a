"""The first line: what a model explains, what further draws would bring, and whether it was tested."""

from __future__ import annotations

import math

from echobound.diagnostics.verdict import Evidence, number, per_cent
from echobound.scenario.words import confidence, noun, upward


def first_line(
    seen: Evidence,
    *,
    epsilon: float,
    beta: float,
    delivered: str,
    networks: int,
    blocks: int | None = None,
    members: int = 1,
) -> str:
    """What a user wants to know first, each part made from the numbers that it speaks of.

    `delivered` is ``"network"`` or ``"committee"``; the certificate is about the best of what was drawn, which is the
    model itself or the best network of its committee.

    Examples
    --------
    >>> first_line(Evidence(fit=89.3, linear=71.2), epsilon=0.05, beta=1e-7, delivered="network", networks=315)
    'Your model explains 89 % of held-out data (FIT; linear model: 71 %). At most 5 % of further draws would beat it
    (confidence 1 - 1e-07). New data: not tested yet.'
    """
    drawn = noun(members)
    if not seen.model:
        return f"There is no model: all {networks} {drawn.many} diverged."
    return " ".join([_held_out(seen, blocks), _draws(epsilon, beta, delivered, members), _tested(seen)])


def _held_out(seen: Evidence, blocks: int | None) -> str:
    how = "FIT" if blocks is None else f"mean FIT of {blocks} blocks, each left out in turn"
    ahead = "" if seen.horizon is None else f" {seen.horizon} sample{'s' * (seen.horizon > 1)} ahead"
    does = "explains" if seen.horizon is None else "predicts"
    fit = number(seen.fit)
    if not math.isfinite(fit):
        return f"Your model ran off on held-out data ({_linear(seen.linear, 0)})."
    digits = _digits(seen.fit, seen.linear)
    much, value = (per_cent(fit, digits), "") if fit > 0 else ("nothing", f" {per_cent(fit, digits)}")
    return f"Your model {does} {much} of held-out data{ahead} ({how}{value}; {_linear(seen.linear, digits)})."


def _linear(fit: float | None, digits: int) -> str:
    return f"linear model: {'ran off' if fit is None else per_cent(fit, digits)}"


def _draws(epsilon: float, beta: float, delivered: str, members: int) -> str:
    what = "it" if delivered == "network" or members > 1 else "the best of its networks"
    return (
        f"At most {upward(100 * epsilon, digits=3)} % of further draws would beat {what} (confidence 1 -"
        f" {confidence(beta)})."
    )


def _tested(seen: Evidence) -> str:
    if not seen.tested:
        return "New data: not tested yet."
    records = f"{seen.tested} test record{'s' * (seen.tested > 1)}"
    if not math.isfinite(number(seen.test)):
        return f"New data: the model ran off on {records} ({_linear(seen.linear_test, 0)})."
    digits = _digits(seen.test, seen.linear_test)
    return f"New data: FIT {per_cent(number(seen.test), digits)} on {records} ({_linear(seen.linear_test, digits)})."


def _digits(fit: float | None, other: float | None) -> int:
    """More digits where two numbers are close to each other, or the FIT to 100 %."""
    return 1 if fit is not None and (fit > 99 or (other is not None and abs(fit - other) < 2)) else 0
