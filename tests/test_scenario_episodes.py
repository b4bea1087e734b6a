import numpy as np
import pytest
from scipy import stats

from echobound.errors import InputError
from echobound.scenario import FEWEST_EPISODES, judge_episodes


def judged(scores, direction="max", **more):
    return judge_episodes(scores, what="the committee", score="fit", direction=direction, unit="%", **more)


def test_epsilon_is_clopper_pearsons_for_no_failure():
    for count in (20, 59, 200):
        for beta in (0.05, 1e-3):
            expected = stats.beta.ppf(1 - beta, 1, count)
            assert judged(np.linspace(80, 90, count), beta=beta).epsilon == pytest.approx(expected, rel=1e-9)
    assert judged([1.0] * 59).epsilon == pytest.approx(0.0495076, abs=1e-7)  # THEORY.md, section 9


def test_no_statement_from_few_episodes():
    assert FEWEST_EPISODES == 20
    assert judged([90.0] * 19) is None
    assert judged([]) is None
    assert judged([90.0] * 20) is not None


def test_the_worst_by_direction_and_words_that_hold():
    scores = [80.1234567, *np.linspace(85, 90, 30)]
    outcome = judged(scores)
    assert outcome.worst == 80.1234567
    assert "below 80.1234 %" in outcome.statement, "rounded down: a smaller set of episodes"
    outcome = judge_episodes(scores, what="the model", score="rmse", direction="min")
    assert outcome.worst == 90.0
    assert "the model scores RMSE above 90," in outcome.statement
    assert "independent" in outcome.statement


def test_a_diverged_episode_leaves_no_limit():
    for direction, bad in (("max", -np.inf), ("min", np.inf), ("max", np.nan)):
        outcome = judged([90.0] * 25 + [bad], direction)
        assert outcome.worst is None
        assert "no limit follows" in outcome.statement


def test_coverage_of_the_statement():
    """Over many repetitions, a new episode is worse more often than epsilon says in at most beta of them."""
    generator = np.random.default_rng(1)
    worst = generator.random((4000, 20)).min(axis=1)  # uniform scores: P(new one below the worst) is the worst itself
    missed = (worst > judged(np.ones(20)).epsilon).mean()
    assert missed == pytest.approx(0.05, abs=0.015)


def test_one_score_an_episode():
    with pytest.raises(InputError, match="one score for each episode"):
        judged(np.ones((20, 2)))
