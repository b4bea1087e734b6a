"""Confidence sequences: limits for a probability that hold at every number of trials together.

Whoever adds fresh networks, or test episodes, until content looks at the same probability again and again, and a limit
for a number of trials settled beforehand (Clopper-Pearson) is then wrong far more often than beta. The limits here may
be looked at after every trial. Each comes from a process E of the probability v in question that is never negative and
has mean 1 at the true v, so that by Ville's inequality it ever reaches 1 / beta with probability at most beta: what has
E >= 1 / beta is excluded, and the limit is the largest v that is not. `docs/theory.md` has the proofs.

With x events in M trials and B the beta function, the likelihood ratio of a mixture of probabilities with law
Beta(a, b) against v is

    L(v) = B(a + x, b + M - x) / B(a, b) / (v^x (1 - v)^(M - x))

    alone      E = L                                     trials on their own, such as divergence, or test episodes
    pooled     E = L f / g, f density of Beta(1, c), g that of Beta(k, N - k + 1), the law of v after a search of N
    at will    E = L ((1 - v)^-(n - 1) - 1) / (n - 1)    after a search that stopped at n for any reason
"""

from __future__ import annotations

import math
from collections.abc import Callable

from echobound.errors import InputError
from echobound.scenario.bounds import Probability, as_count, as_probability

SAFE = 1 + 1e-9  # more than the arithmetic errs: no limit is better than the truth
UNIFORM = (0.5, 0.5)  # a mixture for probabilities of which nothing is known


def sequential_limit(
    events: int, trials: int, beta: Probability, mixture: tuple[float, float] = UNIFORM, *, stopped: int | None = None
) -> float:
    """Upper limit for the probability of an event, valid at every number of trials together; 1.0 if there is none.

    The probability is fixed before the trials (that to beat a threshold, for example, if they come after the search).
    `mixture` are the numbers of the beta law that events are expected from, settled before them. If `stopped` is given,
    the threshold is the best of that many draws of a search that was stopped for any reason, and these count too;
    events are then draws that are at least as good.

    Examples
    --------
    >>> round(sequential_limit(0, 59, 0.05), 6), round(sequential_limit(0, 59, 0.05, (1, 645)), 6)
    (0.090688, 0.050917)
    """
    x, m = _counts(events, trials)
    a, b = mixture
    ratio = _betaln(a + x, b + m - x) - _betaln(a, b)
    if stopped is None:
        return _limit(lambda y: ratio + _against(x, m - x, y), x / m if m else 0.0, beta)
    n = as_count("networks", stopped)
    limit = _limit(lambda y: ratio + _against(x, m - x, y) + _of_search(n, y), x / m if m else 0.0, beta)
    return min(1.0, max(limit, (a + x) / (a + b + m - 1)))  # from there on more events never lower the limit


def pooled_limit(networks: int, fresh: int, events: int, beta: Probability, rank: int = 1) -> float:
    """Upper limit for the probability to beat the k-th best of N, from N and M fresh draws; valid at every M together.

    N is settled beforehand or found by ranks. Events are fresh draws that are at least as good: ties count.

    Examples
    --------
    >>> round(pooled_limit(645, 500, 0, 1e-7), 6), round(pooled_limit(645, 500, 2, 0.05), 6)
    (0.017468, 0.009347)
    """
    x, m = _counts(events, fresh)
    n, k = as_count("networks", networks), as_count("rank", rank)
    if k > n:
        raise InputError(f"the rank must lie between 1 and the {n} networks, got {rank}")
    # The weight f is spread over what a search of N may leave open at this beta: a number settled with N and beta.
    c = max(1.0, n / -float(as_probability("beta", beta).ln()))
    inside, outside = k + x - 1, n + m - k - x  # exponents of the density of v given all draws, Beta(k + x, ...)
    constant = math.log(c) + _betaln(inside + 1, outside + 1)
    if outside + 1 <= c:
        return 1.0
    limit = _limit(
        lambda y: constant - (c - 1) * y + _against(inside, outside, y), inside / (inside + outside + 1 - c), beta
    )
    return min(1.0, max(limit, (k + x) / (n + m)))


def _counts(events: int, trials: int) -> tuple[int, int]:
    x, m = as_count("events", events, least=0), as_count("trials", trials, least=0)
    if x > m:
        raise InputError(f"{x} events cannot come from {m} trials")
    return x, m


def _against(events: int, others: int, y: float) -> float:
    """-ln(v^x (1 - v)^z) with v = 1 - exp(-y)."""
    return others * y - (events * math.log(-math.expm1(-y)) if events else 0.0)


def _of_search(networks: int, y: float) -> float:
    """ln of the integral of (1 - u)^-n over u from 0 to v: the mixture martingale of a search, see `Mixture`."""
    if networks == 1:
        return math.log(y)
    power = (networks - 1) * y
    return power + math.log(-math.expm1(-power)) - math.log(networks - 1)


def _limit(process: Callable[[float], float], least: float, beta: Probability) -> float:
    """The largest v with E(v) < 1 / beta, where E grows from `least` on; `least` if there is none above it."""
    from scipy.optimize import brentq

    target = -float(as_probability("beta", beta).ln())
    if least >= 1:
        return 1.0

    def excess(y: float) -> float:
        return process(y) - target

    low = max(-math.log1p(-least), 1e-300)
    if excess(low) >= 0:
        return min(1.0, least * SAFE)
    high = max(2 * low, 1e-12)
    while excess(high) < 0:
        low, high = high, 2 * high
        if high > 1e6:
            return 1.0
    root = float(brentq(excess, low, high, xtol=1e-300, rtol=8.9e-16))
    return min(1.0, -math.expm1(-root) * SAFE)


def _betaln(a: float, b: float) -> float:
    from scipy.special import betaln

    return float(betaln(a, b))
