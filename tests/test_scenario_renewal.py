"""New data: a certificate renewed, and when it cannot be."""

import math
import warnings

import pytest

from echobound.errors import InputError
from echobound.scenario import Renewal, epsilon_exact

SCORES = [80.0, 90.0, math.nan, 85.0]


def test_renewed_with_the_same_networks():
    renewed = Renewal.of(SCORES, networks=4, beta=0.05, depends_on_model=False, score="fit", unit="%")
    assert (renewed.winner, renewed.threshold) == (1, 90.0)
    assert renewed.epsilon == epsilon_exact(4, 0.05)
    assert "above 90 %" in renewed.words


def test_several_renewals_share_beta():
    renewed = Renewal.of(SCORES, networks=4, beta=0.05, updates=5, depends_on_model=False)
    assert renewed.epsilon == pytest.approx(epsilon_exact(4, 0.01), rel=1e-12)
    assert "all 5 planned renewals together" in renewed.words


def test_all_diverged():
    renewed = Renewal.of([math.nan] * 4, networks=4, beta=0.05, depends_on_model=False)
    assert renewed.winner is None
    assert "finite score" in renewed.words


def test_networks_that_were_dropped_void_it():
    with pytest.raises(InputError, match="4 have scores on the new data: score all of them"):
        Renewal.of(SCORES, networks=10, beta=0.05, depends_on_model=False)


def test_data_that_depend_on_the_network_void_it():
    with pytest.raises(InputError, match="draw and certify new ones"):
        Renewal.of(SCORES, networks=4, beta=0.05, depends_on_model=True)


def test_it_asks_if_nothing_is_said():
    with pytest.warns(UserWarning, match="closed loop"):
        Renewal.of(SCORES, networks=4, beta=0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Renewal.of(SCORES, networks=4, beta=0.05, depends_on_model=False)
