"""How many networks for (epsilon, beta), and both inverses, by the explicit and by the exact bound.

The certificate says P(V > epsilon) <= beta: V is the probability that a new network beats the threshold, and P is over
the N draws. For a scenario program with d decisions (d = 1: one threshold) it holds when

    exact      Bin(N, epsilon; d - 1) <= beta,   Bin(N, e; m) = sum_{i<=m} C(N, i) e^i (1 - e)^(N - i)
    explicit   N >= (2 / epsilon) (ln(1 / beta) + d - 1)

and, if `discarded` scenarios are removed, C(m, discarded) Bin(N, epsilon; m) <= beta with m = discarded + d - 1; the
explicit bound then has ln(C(m, discarded) / beta) + m in its brackets, since Bin(N, e; m) <= 2^m exp(-N e / 2).

To beat the best in *any* of K scores is one event of a scenario program with K decisions (`any_of`). Statements about
*each* of K scores, or of K families' own bests, share beta: each is made at beta / K, and the union bound makes them
hold together (`each_of`).

Everything is computed in decimal arithmetic from what the user typed (the shortest text of a float), with enough digits
to decide every ceiling; genuine equality, such as 0.95^1 = 0.95, is decided in fractions. Results that become floats
are rounded up, so that no reported epsilon or beta is better than the truth. Probabilities that no float can hold
may be given as text: ``"1e-400"``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Context, Decimal, InvalidOperation, getcontext, localcontext
from fractions import Fraction
from typing import SupportsIndex

from echobound.errors import InputError

Probability = float | str | Decimal

_DIGITS = 60
_HALF = Decimal("0.5")
_GUARD = 20  # of them may be lost to rounding
_STEP = Decimal("1e-40")  # relative size of a Newton step after which the next would change nothing


def networks_explicit(epsilon: Probability, beta: Probability, d: int = 1, discarded: int = 0) -> int:
    """Number of networks by the paper's closed formula, (2 / epsilon) (ln(1 / beta) + d - 1).

    Parameters
    ----------
    epsilon
        Largest probability allowed that a new network violates the threshold.
    beta
        1 - confidence.
    d
        Number of decisions of the scenario program; one threshold is d = 1.
    discarded
        How many of the best networks are set aside (settled in advance): the threshold is the next one.

    Examples
    --------
    >>> networks_explicit(0.05, 1e-7)
    645
    """
    e, b = as_probability("epsilon", epsilon), as_probability("beta", beta)
    m, factor = _program(d, discarded)
    with localcontext(digits_for(e, b)):
        return int((2 / e * (m + Decimal(factor).ln() - b.ln())).to_integral_value(ROUND_CEILING))


def epsilon_explicit(networks: int, beta: Probability, d: int = 1, discarded: int = 0) -> float:
    """Smallest epsilon for which the explicit bound accepts this many networks; 1.0 if there is none.

    Examples
    --------
    >>> round(epsilon_explicit(645, 1e-7), 6)
    0.049979
    """
    n, b = as_count("networks", networks), as_probability("beta", beta)
    m, factor = _program(d, discarded)
    with localcontext(digits_for(b=b, count=n)):
        value = 2 * (m + Decimal(factor).ln() - b.ln()) / n
        return least_float(value, lambda e: e >= value)


def beta_explicit(networks: int, epsilon: Probability, d: int = 1, discarded: int = 0) -> float:
    """Smallest beta for which the explicit bound accepts this many networks; 1.0 if there is none.

    Examples
    --------
    >>> f"{beta_explicit(645, 0.05):.4g}"
    '9.931e-08'
    """
    n, e = as_count("networks", networks), as_probability("epsilon", epsilon)
    m, factor = _program(d, discarded)
    with localcontext(digits_for(e=e, count=n)):
        value = _exp(m + Decimal(factor).ln() - n * e / 2)
        return least_float(value, lambda b: b >= value)


def networks_exact(epsilon: Probability, beta: Probability, d: int = 1, discarded: int = 0) -> int:
    """Smallest number of networks by the exact bound; parameters as in `networks_explicit`.

    Examples
    --------
    >>> networks_exact(0.05, 1e-7)
    315
    >>> networks_exact(0.05, 0.05, discarded=1)  # Wilks: the second best of 93
    93
    """
    e, b = as_probability("epsilon", epsilon), as_probability("beta", beta)
    m, factor = _program(d, discarded)
    with localcontext(digits_for(e, b)):
        return least_count(lambda n: _holds(n, m, factor, e, b), m)


def epsilon_exact(networks: int, beta: Probability, d: int = 1, discarded: int = 0) -> float:
    """Smallest epsilon that this many networks certify at `beta`; 1.0 if they certify nothing.

    With ``d = x + 1`` this is also the Clopper-Pearson upper limit for x events in `networks` trials.

    Examples
    --------
    >>> round(epsilon_exact(645, 1e-7), 10)
    0.0246796478
    """
    n, b = as_count("networks", networks), as_probability("beta", beta)
    m, factor = _program(d, discarded)
    if n <= m:
        return 1.0
    with localcontext(digits_for(b=b, count=n)):
        # Newton on ln Bin as a function of y = -ln(1 - e). It is concave and decreasing (the survival function of a sum
        # of independent exponentials), so from the first step on every y is at or above the root: never optimistic.
        y = -(Decimal(n - m) / (n + 1)).ln()
        target = b.ln() - Decimal(factor).ln()
        step = y
        while abs(step) > y * _STEP:
            log_tail, slope = _log_tail(n, m, (-y).exp())
            step = (log_tail - target) / slope
            y += step
        value = 1 - (-y).exp()
        return least_float(value, lambda e: _holds(n, m, factor, e, b))


def log_beta_exact(networks: int, epsilon: Probability, d: int = 1, discarded: int = 0) -> float:
    """Natural logarithm of `beta_exact`, for values that no float can hold."""
    n, e = as_count("networks", networks), as_probability("epsilon", epsilon)
    m, factor = _program(d, discarded)
    if n <= m:
        return 0.0
    with localcontext(digits_for(e=e, count=n)):
        exact = _log_tail(n, m, 1 - e)[0] + Decimal(factor).ln()
        value = float(exact)
        if Decimal(value) < exact:
            value = math.nextafter(value, math.inf)
    return min(value, 0.0) + 0.0  # no negative zero


def beta_exact(networks: int, epsilon: Probability, d: int = 1, discarded: int = 0) -> float:
    """Smallest beta at which this many networks certify `epsilon`: P(V > epsilon) for a continuous score.

    Rounded up like every float here, so it is never 0: what lies below all floats becomes the smallest of them, and
    `log_beta_exact` has the truth.

    Examples
    --------
    >>> f"{beta_exact(645, 0.05):.4g}"
    '4.283e-15'
    """
    n, e = as_count("networks", networks), as_probability("epsilon", epsilon)
    m, factor = _program(d, discarded)
    if n <= m:
        return 1.0
    with localcontext(digits_for(e=e, count=n)):
        value = _exp(_log_tail(n, m, 1 - e)[0] + Decimal(factor).ln())
        return least_float(value, lambda b: _holds(n, m, factor, e, b))


@dataclass(frozen=True)
class Several:
    """Numbers of networks (of each family), epsilon and beta: two given, the third follows; see `any_of`, `each_of`."""

    d: int = 1  # decisions of the scenario program
    shares: int = 1  # statements that share beta

    def networks(self, epsilon: Probability, beta: Probability) -> int:
        """Smallest number of networks for epsilon and beta."""
        # Beta is divided as it was typed, in decimals: 1e-7 / 3 has no exact float.
        return networks_exact(epsilon, as_probability("beta", beta) / self.shares, d=self.d)

    def epsilon(self, networks: int, beta: Probability) -> float:
        """Smallest epsilon that so many networks certify at beta."""
        return epsilon_exact(networks, as_probability("beta", beta) / self.shares, d=self.d)

    def beta(self, networks: int, epsilon: Probability) -> float:
        """Smallest beta at which so many networks certify epsilon."""
        return min(1.0, self.shares * beta_exact(networks, epsilon, d=self.d))


def any_of(scores: int) -> Several:
    """A new network beats the best in one or more of so many scores with probability at most epsilon.

    Examples
    --------
    >>> any_of(3).networks(0.05, 1e-7)
    424
    """
    return Several(d=as_count("scores", scores))


def each_of(count: int) -> Several:
    """Statements about each of so many scores or families, all true together with confidence 1 - beta.

    The best of all families alone needs only `networks_exact` of each family.

    Examples
    --------
    >>> each_of(3).networks(0.05, 1e-7), each_of(21).networks(0.05, 1e-7)
    (336, 374)
    """
    return Several(shares=as_count("count", count))


def as_probability(name: str, value: Probability) -> Decimal:
    """What the user typed, exactly: the shortest text that gives this float."""
    try:
        number = Decimal(value) if isinstance(value, str | Decimal) else Decimal(repr(float(value)))
    except (InvalidOperation, TypeError, ValueError, OverflowError):
        number = Decimal("NaN")
    if not (number.is_finite() and 0 < number < 1):
        example = "0.05" if name == "epsilon" else "1e-7"
        raise InputError(f"{name} must be a number strictly between 0 and 1, got {value!r}: give for example {example}")
    return number


def as_count(name: str, value: SupportsIndex, least: int = 1) -> int:
    """A whole number, refused below `least`."""
    try:
        number = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = -1
    if number < least:
        raise InputError(f"{name} must be an integer of at least {least}, got {value!r}: give a whole number")
    return number


def _program(d: int, discarded: int) -> tuple[int, int]:
    """Order m of the binomial tail, and the number of ways C(m, discarded) it is counted."""
    discarded = as_count("discarded", discarded, least=0)
    m = discarded + as_count("d", d) - 1
    return m, math.comb(m, discarded)


def digits_for(e: Decimal = _HALF, b: Decimal = _HALF, count: int = 1) -> Context:
    """Digits enough for 1 - e to be exact, for ln(b) close to 0, for `count` networks, and `_DIGITS` more."""
    places = -int(e.as_tuple().exponent) - (int(b.as_tuple().exponent) if b > _HALF else 0)
    return Context(prec=_DIGITS + places + 2 * len(str(count)), Emin=MIN_EMIN, Emax=MAX_EMAX)


def _log_tail(n: int, m: int, q: Decimal) -> tuple[Decimal, Decimal]:
    """ln Bin(n, 1 - q; m), and its derivative with respect to ln(q)."""
    odds = (1 - q) / q
    term = total = Decimal(1)
    for i in range(m):
        term = term * (n - i) / (i + 1) * odds
        total += term
    return total.ln() + n * q.ln(), (n - m) * term / total


def _holds(n: int, m: int, factor: int, e: Decimal, b: Decimal) -> bool:
    """Whether factor Bin(n, e; m) <= b, for n > m."""
    left, right = _log_tail(n, m, 1 - e)[0] + Decimal(factor).ln(), b.ln()
    rounding = Decimal(10) ** (_GUARD - getcontext().prec)  # relative error that no sum here exceeds
    if abs(left - right) > (1 - n * (1 - e).ln()) * rounding:
        return left < right
    p, q = Fraction(e), 1 - Fraction(e)
    return factor * sum(math.comb(n, i) * p**i * q ** (n - i) for i in range(m + 1)) <= Fraction(b)


def _exp(logarithm: Decimal) -> Decimal:
    """The exponential, cut where floats end anyway: decimal takes seconds for exponents of millions."""
    return max(Decimal(-800), min(Decimal(1), logarithm)).exp()


def least_count(enough: Callable[[int], bool], few: int = 0) -> int:
    """The smallest number above `few` that is enough, where all larger ones are: by doubling, then by bisection."""
    many = few + 1
    while not enough(many):
        few, many = many, 2 * many
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if enough(middle) else (middle, many)
    return many


def least_float(value: Decimal, enough: Callable[[Decimal], bool]) -> float:
    """The float next to `value` whose text satisfies `enough`: above 0, at most 1."""
    number = max(float(value), math.ulp(0.0))
    while number < 1.0 and not enough(Decimal(repr(number))):
        number = math.nextafter(number, 1.0)
    return min(number, 1.0)
