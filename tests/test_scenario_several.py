"""Several families and several scores."""

import math

import numpy as np
import pytest
from golden import agrees

from echobound.errors import InputError
from echobound.scenario import Families, JointScores, any_of, each_of, epsilon_exact, networks_exact

# beta, p: joint, union, separate, for epsilon = 0.05 (section 7.2)
SCORES = {
    (1e-7, 2): (374, 665, 328),
    (1e-7, 3): (424, 1025, 336),
    (1e-7, 5): (512, 1764, 346),
    (1e-3, 2): (181, 301, 149),
    (1e-3, 3): (220, 477, 157),
    (1e-3, 5): (291, 848, 167),
}


@pytest.mark.parametrize("case", SCORES)
def test_networks_for_several_scores(case):
    beta, p = case
    joint, union, separate = SCORES[case]
    assert any_of(p).networks(0.05, beta) == joint
    assert networks_exact(0.05 / p, beta / p) == union
    assert each_of(p).networks(0.05, beta) == separate


def test_networks_for_several_families():
    assert [each_of(k).networks(0.05, 1e-7) for k in (1, 10, 21, 100)] == [315, 360, 374, 405]


@pytest.mark.parametrize("bound", [any_of(3), each_of(3)])
def test_all_three_directions_agree(bound):
    n = bound.networks(0.05, 1e-3)
    assert bound.epsilon(n, 1e-3) <= 0.05 < bound.epsilon(n - 1, 1e-3)
    assert bound.beta(n, 0.05) <= 1e-3 < bound.beta(n - 1, 0.05)
    assert bound.beta(1, 0.05) == 1.0
    with pytest.raises(InputError, match="beta"):
        bound.epsilon(n, 2.0)


def test_mixture_of_the_papers_orders():
    scores = {str(order): np.linspace(0, order, 645) for order in range(10, 31)}
    families = Families.of(scores, beta=1e-7)
    assert agrees(families.epsilon_mixture, "0.001189258727")
    assert families.epsilon == epsilon_exact(645, 1e-7)
    assert families.epsilons[0] == pytest.approx(epsilon_exact(645, 1e-7 / 21), rel=1e-12)
    assert families.best == 20


def test_families_of_unequal_size_and_with_divergence():
    families = Families.of({"a": [1.0, math.nan], "b": [math.nan] * 3, "c": [0.5]}, beta=0.1, direction="min")
    assert families.networks == (2, 3, 1)
    assert families.winners == (0, None, 0)
    assert (families.best, families.thresholds) == (2, (1.0, None, 0.5))
    assert families.epsilon == epsilon_exact(1, 0.1), "the smallest family decides"
    assert "All networks of 1 families" in Families.of({"a": [math.nan]}, beta=0.1).words
    with pytest.raises(InputError, match="each family"):
        Families.of({}, beta=0.1)


def test_joint_scores():
    joint = JointScores.of(
        {"fit": [80.0, 90.0, math.nan], "rmse": [0.1, 0.2, math.inf]}, beta=0.1, directions=("max", "min")
    )
    assert (joint.thresholds, joint.winners) == ((90.0, 0.1), (1, 0))
    assert joint.epsilon_joint == epsilon_exact(3, 0.1, d=2)
    assert joint.epsilon_separate == pytest.approx(epsilon_exact(3, 0.05), rel=1e-12)
    assert "beats one or more of them" in joint.words
    with pytest.raises(InputError, match="same networks"):
        JointScores.of({"a": [1.0], "b": [1.0, 2.0]}, beta=0.1, directions=("max", "max"))
    with pytest.raises(InputError, match="directions"):
        JointScores.of({"a": [1.0]}, beta=0.1, directions=())
