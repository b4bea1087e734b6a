"""Scenario constraints: the bound against its defining sum, the best of a search as independent draws, the words."""

import math

import numpy as np
import pytest

pytest.importorskip("daqp")

from controlled import ph_network, ph_run
from mpmath import binomial, mp, mpf

from echobound import identify, ph_experiment
from echobound.control import MPC, Effort, Scenarios, best_networks, epsilon_of, statement_of
from echobound.errors import InputError


@pytest.mark.parametrize(("count", "beta"), [(5, 1e-3), (40, 1e-7), (300, 0.1)])
def test_the_bound_solves_its_equation(count, beta):
    """The theorem asks that sum over k < m of C(m, k) (1 - epsilon(k))^(m - k) be at most beta."""
    mp.dps = 30
    total = sum(
        binomial(count, k) * (1 - mpf(epsilon_of(count, k, beta))) ** (count - k) for k in range(count)
    )  # fmt: skip
    assert total <= beta
    assert total == pytest.approx(beta, rel=1e-2)  # rounded to the safe side


def test_misses_are_as_rare_as_stated():
    """The m best of N, a decision by one of them, and how often too many others as good violate: in beta of all."""
    generator = np.random.default_rng(0)
    count, drawn, beta, misses = 8, 40, 0.2, 0
    epsilon = epsilon_of(count, 1, beta)
    for _ in range(4000):
        score = generator.random(drawn)
        mark = 0.5 * score + generator.random(drawn)  # what is bounded depends on the score, too
        order = np.argsort(-score)
        threshold, level = score[order[count]], mark[order[:count]].max()
        # A further network with a score above the threshold: its score is uniform there.
        inside = np.clip((level - 0.5 * np.linspace(threshold, 1, 201)), 0, 1).mean()
        misses += 1 - inside > epsilon
    assert misses <= beta * 4000


def test_the_best_networks_are_those_of_the_ledger(tmp_path):
    result = identify(
        *ph_experiment(samples=(600, 300)), law="paper", order=8, networks=20, committee=3, run=tmp_path / "run"
    )
    found = best_networks(tmp_path / "run", 4)
    scores = np.sort(result.table["scores"][:, 0])[::-1]
    assert found.threshold == scores[4]
    assert [one.digest for one in found.models[:3]] == [one.digest for one in result.committee.members]
    for count in (0, 20):
        with pytest.raises(InputError, match="between 1 and 19"):
            best_networks(tmp_path / "run", count)


def test_what_is_said_after_some_samples():
    members = ph_run().committee.members
    scenarios = Scenarios(tuple(members), 80.0, "fit")
    controller = MPC(ph_network(), horizon=10, output_high=7.3, scenarios=scenarios, effort=Effort(iterations=5))
    assert len(controller.observer.predictors) == 5  # the picked network is one of them, and is not taken twice
    controller.start(15.0, 7.0)
    controller.step(7.0, 7.0)
    quiet = statement_of(controller, scenarios)
    assert quiet.support == 1  # the cost is about it
    assert quiet.epsilon == epsilon_of(5, 1, 1e-3)
    assert f"at most {math.ceil(quiet.epsilon * 1e4) / 1e4:g}" in quiet.words
    for _ in range(5):
        controller.step(7.6, 7.1)
    assert statement_of(controller, scenarios).support > 1
    assert "not about the plant" in quiet.words


def test_scenarios_outside_the_support_could_be_left_out():
    """What the theorem asks for: with the support alone, the same inputs are applied at all samples."""
    from echobound.control import PHProcess, simulate_closed_loop

    members = ph_run().committee.members

    def loop(models):
        controller = MPC(ph_network(), horizon=8, output_high=7.36, scenarios=models, effort=Effort(iterations=6))
        return controller, simulate_closed_loop(PHProcess(), controller, np.full(12, 7.4))

    controller, whole = loop(members)
    owners = [one.model for one in controller.observer.predictors]
    support = [owners[i] for i in sorted(controller.supports) if i > 0]
    assert 0 < len(support) < len(members) - 1, "some of them had a part, some had none"
    np.testing.assert_allclose(loop(support)[1].u, whole.u, rtol=1e-9)


def test_nothing_is_said_where_nothing_follows():
    members = ph_run().committee.members
    controller = MPC(ph_run().committee, horizon=4)
    all_costed = statement_of(controller, Scenarios(tuple(members), 80.0, "fit"))
    assert all_costed.epsilon == 1
    assert "Nothing follows for other networks" in all_costed.words
    picked = statement_of(controller, Scenarios(tuple(members), None, "fit", "They were picked by hand."))
    assert picked.epsilon is None
    assert "picked by hand" in picked.words


def test_bad_numbers():
    for count, support, beta in ((5, 6, 0.1), (5, 1, 0.0), (0, 0, 0.1)):
        with pytest.raises(InputError, match="support between"):
            epsilon_of(count, support, beta)


def test_a_scenario_of_another_plant_is_refused():
    from controlled import mimo_network

    with pytest.raises(InputError, match="another input_names"):
        MPC(ph_network(), horizon=4, scenarios=[mimo_network()])
