"""Numbers: how many networks, and the epsilon they certify, settled before the first draw."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from echobound.errors import InputError
from echobound.scenario import (
    Patience,
    StoppingRule,
    epsilon_exact,
    epsilon_explicit,
    networks_exact,
    networks_explicit,
    stopping_rule,
)

MOST_NETWORKS = 2**32  # an index is one word of the seed sequence
Bound = Literal["exact", "explicit"]


def settle_networks(
    epsilon: float | None, beta: float, networks: int | None, bound: Bound = "exact", discarded: int = 0, joint: int = 1
) -> tuple[int, float]:
    """Number of networks and epsilon: one given, the other follows; neither, epsilon = 0.05.

    Where the number follows, there are enough of them to certify epsilon after so many of the best were discarded, and
    for so many scores jointly.

    Examples
    --------
    >>> settle_networks(0.05, 1e-7, None)
    (315, 0.05)
    >>> networks, epsilon = settle_networks(None, 1e-7, 645)
    >>> round(epsilon, 7)
    0.0246796
    """
    if bound not in ("exact", "explicit"):
        raise InputError(f"the bound must be 'exact' or 'explicit', got {bound!r}")
    required, inverse = (networks_exact, epsilon_exact) if bound == "exact" else (networks_explicit, epsilon_explicit)
    if networks is None:
        epsilon = 0.05 if epsilon is None else epsilon
        needed = max(required(epsilon, beta, discarded=discarded), required(epsilon, beta, d=joint))
        return _drawable(needed), float(epsilon)
    _drawable(networks)
    if networks < 1:
        raise InputError(f"the number of networks must be at least 1, got {networks}")
    if epsilon is None:
        epsilon = float(inverse(networks, beta))
        if epsilon >= 1:
            raise InputError(
                f"{networks} networks certify nothing at beta={beta:g} by the {bound} bound: draw more networks, or"
                " take a larger beta"
            )
        return networks, epsilon
    needed = required(epsilon, beta)
    if networks < needed:
        raise InputError(
            f"{networks} networks cannot certify epsilon={epsilon:g} at beta={beta:g}: {needed} are needed by the"
            f" {bound} bound, so draw more, or give up one of the three numbers"
        )
    return networks, float(epsilon)


def settle_stop(
    stop: str | StoppingRule,
    epsilon: float | None,
    beta: float,
    networks: int | None,
    bound: Bound = "exact",
    discarded: int = 0,
    joint: int = 1,
) -> tuple[StoppingRule, int, float]:
    """The rule, the number of networks before which it does not stop, and epsilon, which is certified there.

    Examples
    --------
    >>> rule, networks, epsilon = settle_stop("patience:200", None, 1e-7, None)
    >>> rule.draws, networks, epsilon
    (200, 315, 0.05)
    >>> settle_stop("anytime", 0.05, 1e-7, None)[1:]
    (409, 0.05)
    """
    rule = stopping_rule(stop, float(beta)) if isinstance(stop, str) else stop
    if rule.beta != float(beta):
        raise InputError(f"the stopping rule is for beta={rule.beta:g}, but beta={beta:g} was given: give the same")
    if bound != "exact":
        raise InputError(f"a stopping rule goes with the exact bound, got {bound!r}: leave the bound out")
    if isinstance(rule, Patience):
        if networks is not None:
            raise InputError(
                f"patience finds the number of networks itself, but {networks} were asked for: leave the number out, or"
                f" give the least number with the rule, as in patience:{rule.draws},{networks}"
            )
        # Ranks say nothing about how good the best is in absolute terms: epsilon needs its own number of networks.
        least, epsilon = settle_networks(epsilon, beta, None, bound, discarded, joint)
        rule = replace(rule, least=max(rule.least, least))
        return rule, _drawable(rule.soonest), epsilon
    if networks is None:
        epsilon = 0.05 if epsilon is None else epsilon
        return rule, _drawable(rule.networks(epsilon)), float(epsilon)
    certified = rule.epsilon(_drawable(networks))
    if certified >= 1 or (epsilon is not None and certified > epsilon):
        wanted = "nothing" if certified >= 1 else f"epsilon={certified:g}"
        raise InputError(
            f"{networks} networks certify {wanted} at beta={beta:g} by the rule {rule.kind}: draw more, or take a"
            " larger epsilon or beta"
        )
    return rule, networks, certified if epsilon is None else float(epsilon)


def _drawable(networks: int) -> int:
    if networks > MOST_NETWORKS:
        raise InputError(
            f"{networks} networks were asked for, but an index has 32 bits: at most {MOST_NETWORKS} can be drawn, so"
            " take a larger epsilon or beta"
        )
    return networks
