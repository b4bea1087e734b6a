"""Words against fields: each sentence says what was scored, how, and for how long, from the fields its numbers have."""

import numpy as np
import pytest

from echobound import generalise, identify, ph_experiment
from echobound.scenario import (
    Anytime,
    BothEnds,
    ConformalBand,
    CoverageBand,
    DistributionBand,
    ErrorLimit,
    ExpectedGain,
    FailureRate,
    Families,
    Gain,
    JointScores,
    Optimism,
    OuterRank,
    QuantileInterval,
    RankBand,
    Removal,
    Renewal,
    ScoreName,
    Search,
    Statement,
    Stopped,
    certify,
    statements_of,
)
from echobound.scenario.statements.base import ScoreStatement
from echobound.scenario.words import confidence

SCORES = np.random.default_rng(0).normal(88, 1, 100)
MADE = {
    Removal: lambda **how: Removal.of(SCORES, discarded=2, beta=0.05, **how),
    BothEnds: lambda **how: BothEnds.of(SCORES, beta=0.05, **how),
    RankBand: lambda **how: RankBand.of(SCORES, beta=0.05, ranks=5, **how),
    DistributionBand: lambda **how: DistributionBand.of(SCORES, beta=0.05, **how),
    QuantileInterval: lambda **how: QuantileInterval.of(SCORES, level=0.5, beta=0.05, **how),
    Families: lambda **how: Families.of({"a": SCORES[:50], "b": SCORES[50:]}, beta=0.05, **how),
    Renewal: lambda **how: Renewal.of(SCORES, networks=100, beta=0.05, depends_on_model=False, **how),
    ExpectedGain: lambda **how: ExpectedGain.of(SCORES, beta=0.05, further=10, **how),
    OuterRank: lambda **how: OuterRank.of(SCORES, 90.0, beta=0.05, **how),
    Stopped: lambda **how: Stopped.of(SCORES, Anytime(beta=0.05), **how),
}


def test_every_statement_about_scores_is_tried_here():
    own = {kind for kind in Statement.kinds.values() if issubclass(kind, ScoreStatement)}
    assert own == set(MADE)


@pytest.mark.parametrize("kind", MADE, ids=lambda kind: kind.kind)
def test_words_say_what_was_scored(kind):
    """Free run or k ahead, blocks or a record, one network or a committee: none of it changes without the words."""
    plain = MADE[kind](score="fit", unit="%").words
    ahead = MADE[kind](score="fit", unit="%", horizon=3).words
    blocks = MADE[kind](score="fit", unit="%", blocks=5).words
    members = MADE[kind](score="fit", unit="%", members=10).words
    assert "FIT" in plain
    assert "ahead" not in plain
    assert "blocks" not in plain
    assert "predicted 3 samples ahead" in ahead
    assert "mean FIT" in blocks
    assert "5 blocks" in blocks
    assert "committee" in members
    assert "predicted 1 sample ahead" in MADE[kind](score="fit", horizon=1).words


def test_joint_scores_and_gain_say_what_was_scored():
    table, scores = np.stack([SCORES, SCORES], axis=1), (ScoreName("fit", "max", "%"), ScoreName("rmse", "min"))
    for how, said in (({"horizon": 3}, "predicted 3 samples ahead"), ({"blocks": 5}, "blocks")):
        made = statements_of(Search(table=table, scores=scores, beta=0.05, joint=True, **how))
        for one in made:
            if isinstance(one, JointScores | Gain):
                assert said in one.words, one.kind
                assert Statement.from_dict(one.to_dict()) == one


EPISODES = {
    ErrorLimit: lambda: ErrorLimit.of(range(1, 21), beta=0.05, error="RMSE"),
    FailureRate: lambda: FailureRate.of([False] * 20, beta=0.05, criterion="fit>80"),
    ConformalBand: lambda: ConformalBand.of([[[0.1]]] * 20, beta=0.1, names=["pH"]),
    CoverageBand: lambda: CoverageBand.of([[[0.1]]] * 20, beta=0.1, names=["pH"]),
}


@pytest.mark.parametrize("kind", EPISODES, ids=lambda kind: kind.kind)
def test_statements_about_episodes_say_what_was_run_and_for_how_long(kind):
    from dataclasses import replace

    free = EPISODES[kind]()
    ahead = replace(free, horizon=1, samples=(80, 80))
    assert "ahead" not in free.words
    assert "as long as the tested ones" in free.words
    assert "predicted 1 sample ahead" in ahead.words
    assert "simulated" not in ahead.words
    assert "a new episode of 80 samples" in ahead.words
    assert "a new episode of 80 to 120 samples" in replace(free, samples=(80, 120)).words
    assert Statement.from_dict(ahead.to_dict()) == ahead
    blocks = replace(free, mixing=1e-4)
    assert "record is independent of everything the network was chosen by" in blocks.words


def test_the_optimism_of_blocks_does_not_compare_a_model_with_itself():
    of_blocks = Optimism.of(90.5, 88.25, score="fit", unit="%", blocks=5, horizon=2)
    assert "validation data" not in of_blocks.words
    assert "no data had scored before" in of_blocks.words
    assert "models that differ in their training" in of_blocks.words
    assert "predicted 2 samples ahead" in of_blocks.words
    assert Statement.from_dict(of_blocks.to_dict()) == of_blocks


def test_a_certificate_of_predictions_says_nothing_about_free_runs():
    kwargs = {"score": "fit", "direction": "max", "epsilon": 0.05, "beta": 0.05, "law": {}, "seed": 0, "digests": {}}
    assert any("free runs" in sentence for sentence in certify(SCORES, horizon=1, **kwargs).not_stated)
    assert not any("free runs" in sentence for sentence in certify(SCORES, **kwargs).not_stated)


def test_confidence_is_rounded_to_the_safe_side():
    assert confidence(0.05000004) == "0.0500001"
    assert confidence(0.05) == "0.05"
    limit = ErrorLimit(episodes=20, beta=0.05, mixing=2.1e-8, discarded=0, limit=1.0)
    assert "1 - 0.0500004" in limit.words, "0.050000399 is not 0.05"


@pytest.fixture(scope="module")
def predicted(tmp_path_factory):
    """A run scored by one-step prediction of a plant whose free runs go astray, and its second certificate."""
    training, validation, *test = ph_experiment(samples=(500, 300, *[120] * 20), period=30)
    run = tmp_path_factory.mktemp("predicted") / "run"
    how = {"law": "paper", "order": 8, "networks": 20, "beta": 1e-2, "washout": 40, "committee": 0}
    identify(training, validation, horizon=1, **how, run=run)
    return run, test


def test_a_second_certificate_of_predictions_speaks_of_predictions(predicted):
    """The band of one-step predictions was promised around the simulated output, where no free run stayed inside."""
    run, test = predicted
    second = generalise(run, test, criterion="rmse<1")
    for one in second.statements["model"]:
        assert one.horizon == 1
        assert "predicted 1 sample ahead" in one.claim
        assert "simulated" not in one.claim
    assert "predicted 1 sample ahead" in second.optimism.words
    assert any("Nothing is said about free runs" in sentence for sentence in second.not_stated)
