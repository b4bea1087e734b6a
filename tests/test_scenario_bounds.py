"""The bounds: golden values, float traps, independent computation, properties."""

import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from echobound.errors import InputError
from echobound.scenario import (
    beta_exact,
    beta_explicit,
    epsilon_exact,
    epsilon_explicit,
    networks_exact,
    networks_explicit,
)
from echobound.scenario.bounds import log_beta_exact

probabilities = st.floats(min_value=1e-6, max_value=0.999)
decisions = st.integers(1, 6)


def tail(networks, epsilon, order):
    """Bin(N, e; m) in 60 digits, from the text of epsilon."""
    with mpmath.workdps(60):
        e = mpmath.mpf(str(epsilon))
        return mpmath.fsum(mpmath.binomial(networks, i) * e**i * (1 - e) ** (networks - i) for i in range(order + 1))


def digits(value, text):
    """Whether a number agrees with a golden value to the digits printed."""
    golden = Decimal(text)
    return abs(Decimal(value) - golden) <= Decimal((0, (1,), golden.as_tuple().exponent))


# eps, beta, d, explicit, exact (section 1)
TRAPS = [
    (0.05, 1e-7, 1, 645, 315),
    (0.05, 1e-300, 1, 27632, 13468),
    (0.05, 1e-300, 5, 27792, 13920),
    (1e-9, 1e-7, 1, 32236191302, 16118095643),
    (1e-9, 1e-7, 2, 34236191302, 19119800050),
    (1e-9, 1e-300, 1, 1381551055797, 690775527553),
    (1e-9, 1e-300, 5, 1389551055797, 713885977711),
    (1e-12, 1e-7, 1, 32236191301917, 16118095650951),
    (0.5, 0.25, 1, 6, 2),
    (0.3, 0.7, 1, 3, 1),
    (0.1, 0.81, 1, 5, 2),
    (0.9, 1e-7, 1, 36, 7),
    (0.99, 1e-10, 1, 47, 5),
    (0.999, 1e-300, 1, 1383, 100),
    (0.999999, 1e-7, 1, 33, 2),
    (0.05, 0.05, 1, 120, 59),
    (0.05, 0.05, 2, 160, 93),
    (0.05, 0.05, 3, 200, 124),
    (0.05, 0.9999999, 1, 1, 1),
    (0.05, 0.95, 1, 3, 1),
]

# rows eps = 0.1, 0.05, 0.01, 0.001, 1e-6; columns beta = 1e-3, 1e-5, 1e-7, 1e-10 (section 2)
EXPLICIT = {
    1: """139 231 323 461  277 461 645 922  1382 2303 3224 4606  13816 23026 32237 46052
          13815511 23025851 32236192 46051702""",
    2: """159 251 343 481  317 501 685 962  1582 2503 3424 4806  15816 25026 34237 48052
          15815511 25025851 34236192 48051702""",
    5: """219 311 403 541  437 621 805 1082  2182 3103 4024 5406  21816 31026 40237 54052
          21815511 31025851 40236192 54051702""",
}
EXACT = {
    1: """66 110 153 219  135 225 315 449  688 1146 1604 2292  6905 11508 16111 23015
          6907752 11512920 16118088 23025840""",
    2: """89 136 182 251  181 279 374 514  920 1418 1903 2621  9230 14231 19111 26322
          9233410 14236622 19119791 26333969""",
    5: """143 198 251 326  291 405 512 667  1475 2057 2605 3394  14789 20640 26144 34069
          14794144 20648071 26154759 34083795""",
}


@pytest.mark.parametrize(("epsilon", "beta", "d", "explicit", "exact"), TRAPS)
def test_float_traps(epsilon, beta, d, explicit, exact):
    assert networks_explicit(epsilon, beta, d) == explicit
    assert networks_exact(epsilon, beta, d) == exact


@pytest.mark.parametrize("d", [1, 2, 5])
def test_tables_of_networks(d):
    grid = [(e, b) for e in (0.1, 0.05, 0.01, 0.001, 1e-6) for b in (1e-3, 1e-5, 1e-7, 1e-10)]
    assert [networks_explicit(e, b, d) for e, b in grid] == [int(n) for n in EXPLICIT[d].split()]
    assert [networks_exact(e, b, d) for e, b in grid] == [int(n) for n in EXACT[d].split()]


@pytest.mark.parametrize(
    ("d", "networks", "at", "before"),
    [
        (1, 315, "9.614698409e-8", "1.012073517e-7"),
        (2, 374, "9.644224856e-8", "1.012598405e-7"),
        (5, 512, "9.963612456e-8", "1.040935002e-7"),
    ],
)
def test_predicate_at_the_edge(d, networks, at, before):
    assert digits(beta_exact(networks, 0.05, d), at)
    assert digits(beta_exact(networks - 1, 0.05, d), before)


@pytest.mark.parametrize(
    ("epsilon", "beta", "d", "golden"),
    [
        (0.1, 1e-7, 1, [153, 182, 207, 271, 362, 523, 948]),
        (0.05, 1e-7, 1, [315, 374, 424, 553, 738, 1064, 1920]),
        (0.01, 1e-7, 1, [1604, 1903, 2158, 2811, 3744, 5385, 9693]),
        (0.05, 1e-3, 1, [135, 181, 220, 324, 476, 752, 1506]),
        (0.05, 1e-7, 2, [374, 439, 494, 635, 836]),
        (0.05, 1e-7, 5, [512, 591, 657, 824, 1060]),
    ],
)
def test_discarding(epsilon, beta, d, golden):
    counts = [networks_exact(epsilon, beta, d, discarded=r) for r in (0, 1, 2, 5, 10, 20, 50)[: len(golden)]]
    assert counts == golden


@pytest.mark.parametrize(
    ("networks", "beta", "d", "golden"),
    [
        (315, 1e-3, 1, "0.0216906809822"),
        (315, 1e-3, 2, "0.0289323830035"),
        (315, 1e-3, 5, "0.0461676193391"),
        (315, 1e-7, 1, "0.0498814926819"),
        (315, 1e-7, 2, "0.0589837242281"),
        (315, 1e-7, 5, "0.0801697475357"),
        (500, 1e-7, 1, "0.0317221437388"),
        (500, 1e-7, 2, "0.0375546747740"),
        (500, 1e-7, 5, "0.0511653691704"),
        (645, 1e-3, 1, "0.0106525534727"),
        (645, 1e-3, 2, "0.0142243572354"),
        (645, 1e-3, 5, "0.0227455307101"),
        (645, 1e-7, 1, "0.0246796477917"),
        (645, 1e-7, 2, "0.0292304423888"),
        (645, 1e-7, 5, "0.0398604923843"),
        (1000, 1e-7, 1, "0.0159888942389"),
        (1000, 1e-7, 2, "0.0189475768755"),
        (1000, 1e-7, 5, "0.0258668930698"),
        (13545, 1e-7, 1, "0.001189258727"),
        (13545, 1e-7, 2, "0.00141063246901"),
        (13545, 1e-7, 5, "0.00192937537206"),
        (645, 1e-17, 1, "0.0588834498"),
        (645, 1e-300, 1, "0.657323974657"),
        (645, 1e-300, 5, "0.67062609751"),
        (10**9, 1e-7, 1, "1.61180955211e-8"),
        (10**9, 1e-7, 5, "2.61547689156e-8"),
        (645, 1e-7, 3, "0.0330877"),
        (645, 1e-7, 6, "0.0429676"),
        (645, 1e-7, 11, "0.0570226"),
        (645, 1e-7, 21, "0.0815565"),
    ],
)
def test_epsilon_exact(networks, beta, d, golden):
    assert digits(epsilon_exact(networks, beta, d), golden)
    assert epsilon_exact(networks, beta, discarded=d - 1) == epsilon_exact(networks, beta, d)


@pytest.mark.parametrize(
    ("networks", "epsilon", "d", "golden"),
    [
        (315, 0.05, 1, "9.61469840942e-8"),
        (315, 0.05, 2, "1.69016277302e-6"),
        (315, 0.05, 5, "0.000384116682545"),
        (315, 0.01, 1, "0.0421780306651"),
        (315, 0.01, 2, "0.176380855509"),
        (315, 0.01, 5, "0.790214669694"),
        (645, 0.05, 1, "4.28277650308e-15"),
        (645, 0.05, 2, "1.49671768318e-13"),
        (645, 0.05, 5, "2.65205193605e-10"),
        (645, 0.01, 1, "0.00153003200498"),
        (645, 0.01, 2, "0.0114984223405"),
        (645, 0.01, 5, "0.227914330985"),
        (1000, 0.01, 1, "4.31712474107e-5"),
        (1000, 0.01, 2, "0.000479244453579"),
        (1000, 0.01, 5, "0.0286863999990"),
    ],
)
def test_beta_exact(networks, epsilon, d, golden):
    assert digits(beta_exact(networks, epsilon, d), golden)
    assert math.isclose(log_beta_exact(networks, epsilon, d), math.log(float(golden)), rel_tol=1e-10)


def test_beta_below_every_float():
    assert digits(log_beta_exact(10**6, 0.05), "-51293.2943876")
    assert digits(log_beta_exact(10**6, 0.05, 5), "-51252.9880851")
    assert beta_exact(10**6, 0.05) == beta_explicit(10**6, 0.05) == 5e-324  # rounded up, so still a true statement


def test_beta_and_epsilon_no_float_can_hold():
    assert epsilon_exact(645, "1e-300") == epsilon_exact(645, 1e-300) == epsilon_exact(645, Decimal("1e-300"))
    with mpmath.workdps(60):
        golden = 1 - mpmath.mpf("1e-400") ** (mpmath.mpf(1) / 645)
    assert math.isclose(epsilon_exact(645, "1e-400"), float(golden), rel_tol=1e-15)
    with mpmath.workdps(60):
        root = mpmath.findroot(
            lambda e: mpmath.log(tail(645, e, 4)) - mpmath.log(mpmath.mpf("1e-400")), (0.7, 0.8), "anderson"
        )
    assert math.isclose(epsilon_exact(645, "1e-400", d=5), float(root), rel_tol=1e-15)
    assert epsilon_exact(1, "1e-400") == epsilon_exact(5, 1e-300, d=3) == 1.0  # nothing below 1.0 would be true
    with mpmath.workdps(1100):
        tiny = mpmath.mpf("5e-324")
        assert networks_exact(5e-324, 5e-324) == int(mpmath.ceil(mpmath.log(tiny) / mpmath.log1p(-tiny)))


def test_equalities_are_decided_exactly():
    for k in range(1, 100):  # (1 - k/100)^1 = 1 - k/100 as typed, whatever the floats say
        epsilon, beta = k / 100, float(Decimal(100 - k) / 100)
        assert networks_exact(epsilon, beta) == 1
        assert epsilon_exact(1, beta) == epsilon
        assert beta_exact(1, epsilon) == beta
    for n in range(1, 40):
        assert networks_exact("0.9", f"1e-{n}") == n
        assert networks_exact(0.5, Decimal(0.5**n)) == n  # exact in binary and, as a Decimal, in digits


def test_round_inputs_against_fractions():
    """The inputs that a naive ceil(log(beta) / log(1 - epsilon)) gets wrong."""
    naive_errors = 0
    for epsilon in [f"{m}e-{k}" for k in (1, 2, 3) for m in (1, 2, 3, 5, 7, 9)]:
        for beta in [f"{m}e-{k}" for k in (1, 2, 3, 5, 7, 10) for m in (1, 2, 5, 9)]:
            e, b = Fraction(epsilon), Fraction(beta)
            n = networks_exact(epsilon, beta)
            assert (1 - e) ** n <= b
            assert n == 1 or (1 - e) ** (n - 1) > b
            assert networks_exact(float(epsilon), float(beta)) == n
            naive_errors += n != math.ceil(math.log(float(beta)) / math.log(1 - float(epsilon)))
    assert naive_errors > 0


@settings(max_examples=80, deadline=None)
@given(probabilities, probabilities, decisions, st.integers(0, 3))
def test_networks_exact_is_the_smallest(epsilon, beta, d, discarded):
    n, m = networks_exact(epsilon, beta, d, discarded), discarded + d - 1
    factor = math.comb(m, discarded)
    assert factor * tail(n, epsilon, m) <= mpmath.mpf(repr(beta)) * (1 + mpmath.mpf(10) ** -14)
    assert n == m + 1 or factor * tail(n - 1, epsilon, m) > mpmath.mpf(repr(beta)) * (1 - mpmath.mpf(10) ** -14)


@settings(max_examples=80, deadline=None)
@given(probabilities, probabilities, decisions)
def test_exact_is_never_above_explicit(epsilon, beta, d):
    assert d <= networks_exact(epsilon, beta, d) <= max(d, networks_explicit(epsilon, beta, d))


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 10**6), probabilities, decisions)
def test_round_trips(networks, beta, d):
    epsilon = epsilon_exact(networks, beta, d)
    if epsilon < 1:
        # Rounded up, but by no more than a float: as many networks suffice, and a float less would not do.
        assert networks_exact(epsilon, beta, d) <= networks
        assert networks_exact(math.nextafter(epsilon, 0), beta, d) > networks
        assert math.isclose(beta_exact(networks, epsilon, d), beta, rel_tol=1e-12 * (networks + 1e3))
        assert beta_exact(networks, epsilon, d) <= beta
    explicit = epsilon_explicit(networks, beta, d)
    if explicit < 1:
        assert (
            networks_explicit(explicit, beta, d) <= networks < networks_explicit(math.nextafter(explicit, 0), beta, d)
        )
        assert epsilon <= explicit


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 10**5), probabilities, decisions)
def test_beta_round_trips(networks, epsilon, d):
    for of_beta, of_networks in ((beta_exact, networks_exact), (beta_explicit, networks_explicit)):
        beta = of_beta(networks, epsilon, d)
        if 5e-324 < beta < 1:
            assert of_networks(epsilon, beta, d) <= networks
            below = math.nextafter(beta, 0)
            assert below == 0 or of_networks(epsilon, below, d) > networks


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 10**5), probabilities, st.integers(1, 5))
def test_monotone(networks, beta, d):
    assert epsilon_exact(networks + networks // 2, beta, d) <= epsilon_exact(networks, beta, d)
    assert epsilon_exact(networks, beta, d) <= epsilon_exact(networks, beta, d + 1)
    assert epsilon_exact(networks, beta, d) <= epsilon_exact(networks, beta / 2, d)
    assert beta_exact(networks, 0.01, d) <= beta_exact(networks, 0.005, d)


@pytest.mark.parametrize("d", [1, 3, 40])
def test_against_scipy(d):
    for networks in (50, 645, 20000):
        for beta in (0.9, 0.05, 1e-7, 1e-200):
            assert math.isclose(
                epsilon_exact(networks, beta, d), special.betainccinv(d, networks - d + 1, beta), rel_tol=1e-7
            )
        assert math.isclose(beta_exact(networks, 0.01, d), special.bdtr(d - 1, networks, 0.01), rel_tol=1e-9)


def test_clopper_pearson_of_all_events_certifies_nothing():
    assert epsilon_exact(10, 0.05, d=11) == 1.0
    assert beta_exact(3, 0.5, d=4) == 1.0
    assert log_beta_exact(3, 0.5, d=4) == 0.0


def test_types_of_the_trade_are_taken():
    assert networks_exact(np.float64(0.05), np.float64(1e-7), np.int64(1)) == 315
    assert type(networks_exact(0.05, 1e-7)) is int
    assert epsilon_exact(np.int64(645), 1e-7) == epsilon_exact(645, 1e-7)


@pytest.mark.parametrize(
    "bad", [0, 1, -0.1, 1.5, math.nan, math.inf, "five", "nan", None, Decimal("NaN"), True, 1 + 1j]
)
def test_bad_probabilities(bad):
    for call in (
        lambda: networks_exact(bad, 0.1),
        lambda: networks_exact(0.1, bad),
        lambda: networks_explicit(bad, 0.1),
        lambda: networks_explicit(0.1, bad),
        lambda: epsilon_exact(10, bad),
        lambda: epsilon_explicit(10, bad),
        lambda: beta_exact(10, bad),
        lambda: log_beta_exact(10, bad),
        lambda: beta_explicit(10, bad),
    ):
        with pytest.raises(InputError, match=r"strictly between 0 and 1, got .*: give for example"):
            call()


@pytest.mark.parametrize("bad", [0, -1, 1.5, 2.0, math.nan, "3", None, True])
def test_bad_counts(bad):
    for call in (
        lambda: networks_exact(0.1, 0.1, bad),
        lambda: networks_explicit(0.1, 0.1, bad),
        lambda: epsilon_exact(bad, 0.1),
        lambda: beta_explicit(bad, 0.1),
        lambda: networks_exact(0.1, 0.1, discarded=bad or -1),
    ):
        with pytest.raises(ValueError, match="must be an integer of at least"):
            call()
