"""The second certificate: what follows from what was seen, what is refused, and how often it is wrong."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from echobound.errors import DamagedFile, InputError
from echobound.scenario import Criterion, EpisodeErrors, ErrorLimit, FailureRate, Generalisation, Optimism, Questions
from echobound.typed import digest_of

OPTIMISM = Optimism.of(90.0, 88.0, score="fit", unit="%")


def seen_of(errors, scores=None):
    errors = [float(error) for error in errors]
    return EpisodeErrors(
        rmse=tuple(error if math.isfinite(error) else None for error in errors),
        peaks=tuple((3 * error,) if math.isfinite(error) else None for error in errors),
        scores=None if scores is None else tuple(float(score) for score in scores),
    )


def made(errors, scores=None, committee=None, **settled):
    seen = {"model": seen_of(errors, scores)}
    if committee is not None:
        seen["committee"] = seen_of(committee, scores)
    return Generalisation(
        settled=Questions(**settled), outputs=("pH",), scales=(1.0,), digests={}, seen=seen, optimism=OPTIMISM
    )


def test_statements_are_those_of_independent_formulas():
    errors = np.random.default_rng(0).permutation(np.arange(1.0, 51.0))
    second = made(errors, scores=100 - errors, criterion=Criterion.of("fit>52"), discarded=4)
    limit, rate, band = second.statements["model"]
    assert limit.limit == 46.0
    assert limit.epsilon == pytest.approx(stats.beta(5, 46).ppf(0.95), rel=1e-9)
    assert rate.failures == 3
    assert rate.epsilon == pytest.approx(stats.beta(4, 47).ppf(0.95), rel=1e-9)
    assert band.widths == (3 * 49.0,), "ceil(51 x 0.95) = 49"
    assert second.confident == 2
    assert second.together == 0.1


@pytest.mark.parametrize(("episodes", "golden"), [(1, 0.95), (19, 0.14587), (59, 0.0495076)])
def test_few_episodes_say_what_they_can(episodes, golden):
    second = made(range(1, episodes + 1))
    limit, band = second.statements["model"]
    assert limit.epsilon == pytest.approx(golden, abs=5e-6)
    assert band.widths == (3.0 * min(episodes, math.ceil(0.95 * (episodes + 1))),)
    assert band.total_beta == pytest.approx(max(0.05, 1 / (episodes + 1)), rel=1e-5)
    assert band.total_beta >= 1 / (episodes + 1), "never more than so many can say"
    about = dict(second.words)
    assert ("59 episodes would" in about.get("more episodes", "")) == (episodes < 59)
    assert f"(largest of {episodes} test episode{'s' * (episodes > 1)})" in limit.claim


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=60), st.floats(1e-6, 0.5))
def test_what_is_stored_is_read_back_and_says_the_same(errors, beta):
    second = made(errors, beta=beta)
    content = json.loads(json.dumps(second.to_dict(), allow_nan=False))
    assert Generalisation.from_dict(content) == second
    band = second.band()
    assert band.widths[0] is not None, "so many episodes always give a band, of whatever probability"
    covered = sum(3 * error <= band.widths[0] for error in errors) / (len(errors) + 1)
    assert covered >= 1 - band.beta - 1e-12


def test_two_models_each_have_their_statements_and_hold_together():
    second = made([1, 2, 3], [9, 9, 1], committee=[2, 2, 2], criterion=Criterion.of("fit>5"), beta=0.01)
    assert [one.kind for one in second.statements["committee"]] == ["error limit", "failure rate", "conformal band"]
    assert (second.limit("committee").limit, second.limit("nobody")) == (2.0, None)
    assert (second.confident, second.together) == (4, 0.04)
    assert "All 4 limits hold together with confidence 1 - 0.04." in dict(second.words)["together"]
    assert [about for about, _ in second.words].count("committee") == 3


def test_a_diverged_episode_counts():
    seen = EpisodeErrors(rmse=(1.0, None, 2.0), peaks=((1.0,), None, (2.0,)), scores=(9.0, None, 9.0))
    second = Generalisation(
        settled=Questions(criterion=Criterion.of("fit>5")),
        outputs=("pH",),
        scales=(1.0,),
        digests={},
        seen={"model": seen},
        optimism=Optimism.of(90.0, -math.inf),
    )
    limit, rate, band = second.statements["model"]
    assert (limit.limit, rate.failures, band.widths) == (None, 1, (None,))
    assert "diverged" in limit.claim
    assert Generalisation.from_dict(json.loads(json.dumps(second.to_dict()))) == second


def test_blocks_spell_out_what_is_assumed_and_pay_for_it_once():
    second = made([1, 2, 3, 4], committee=[1, 1, 1, 1], blocks=4, gap=100, mixing=0.01)
    assert second.limit().total_beta == pytest.approx(0.08)
    assert second.together == pytest.approx(0.13), "2 x 0.05, and 3 x 0.01 once"
    assert "assumptions, which are not tested" in dict(second.words)["assumption"]
    assert any("Blocks of one record are not independent" in sentence for sentence in second.not_stated)
    for partly in ({"blocks": 4}, {"blocks": 4, "gap": 100}, {"mixing": 0.1}, {"gap": 3, "mixing": 0.1}):
        with pytest.raises(InputError, match="three numbers"):
            Questions(**partly)
    with pytest.raises(InputError, match="no confidence"):
        made([1, 2, 3], blocks=3, gap=1, mixing=0.6)
    with pytest.raises(InputError, match="3 blocks were settled, 2 were seen"):
        made([1, 2], blocks=3, gap=1, mixing=0.0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fit>80", ("fit", ">", 80.0)),
        (" rmse <= 1e-2 ", ("rmse", "<=", 0.01)),
        ("fit >= 80 %", ("fit", ">=", 80.0)),
        ("peak error<0.5", ("peak error", "<", 0.5)),
    ],
)
def test_a_criterion_is_read_and_written(text, expected):
    criterion = Criterion.of(text)
    assert (criterion.score, criterion.relation, criterion.limit) == expected
    assert Criterion.of(str(criterion)) == criterion


@pytest.mark.parametrize("text", ["", "fit", "fit=80", "fit>", ">80", "fit>high", "fit>nan", "fit>inf", "fit>80>70"])
def test_what_is_no_criterion_is_refused(text):
    with pytest.raises(InputError, match="criterion is"):
        Criterion.of(text)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_limits_of_criteria_survive_writing(limit):
    criterion = Criterion("fit", ">", limit)
    assert Criterion.of(str(criterion)) == criterion


def test_a_criterion_the_wrong_way_round_is_refused():
    with pytest.raises(InputError, match="write fit>80"):
        Criterion.of("fit<80").require_sense("max")
    Criterion.of("rmse<0.1").require_sense("min")
    assert Criterion.of("fit>=80").met([80.0, 79.0, None]).tolist() == [True, False, False]


@pytest.mark.parametrize(
    "bad",
    [
        {"seen": {}},
        {"seen": {"somebody": seen_of([1])}},
        {"seen": {"model": seen_of([1]), "committee": seen_of([1, 2])}},
        {"seen": {"model": seen_of([1], [2])}},
        {"late": True},
        {"settled": Questions(discarded=2)},
    ],
)
def test_what_does_not_fit_together_is_refused(bad):
    good = {"settled": Questions(), "outputs": ("y",), "scales": (1.0,), "digests": {}, "optimism": OPTIMISM}
    with pytest.raises(InputError):
        Generalisation(**{**good, "seen": {"model": seen_of([1, 2])}, **bad})


def changes(value, path=()):
    """Every place of a JSON value with something else in it."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from changes(item, (*path, name))
    elif isinstance(value, list) and value:
        yield path, value[:-1]
        for number, item in enumerate(value):
            yield from changes(item, (*path, number))
    elif isinstance(value, bool):
        yield path, not value
    elif isinstance(value, int | float):
        yield path, value * 1.01 + 1
    elif isinstance(value, str):
        yield path, value + "!"
    else:
        yield path, 3


def put(content, path, value):
    content = json.loads(json.dumps(content))
    inside = content
    for name in path[:-1]:
        inside = inside[name]
    inside[path[-1]] = value
    return content


def test_every_change_is_refused_and_what_follows_even_if_it_is_signed():
    content = made([1, 2], [3, 1], committee=[2, 2], criterion=Criterion.of("fit>2")).to_dict()
    held = {"settled", "seen", "outputs", "scales", "digests", "late", "earlier", "horizon", "optimism"}
    tried = 0
    for path, value in changes(content):
        forged = put(content, path, value)
        with pytest.raises(DamagedFile):
            Generalisation.from_dict(forged)
        signed = {**forged, "digest": digest_of({k: v for k, v in forged.items() if k != "digest"})}
        if path[0] not in held and path[0] != "digest":
            with pytest.raises(DamagedFile):
                Generalisation.from_dict(signed)
        tried += 1
    assert tried > 60
    for name in content:
        with pytest.raises(DamagedFile):
            Generalisation.from_dict({k: v for k, v in content.items() if k != name})
    with pytest.raises(DamagedFile, match="more"):
        Generalisation.from_dict({**content, "more": 1})


# How often it is wrong --------------------------------------------------------------------------------------------

REPETITIONS, EPISODES = 400, 20


def misses(errors, failed, rng):
    """How often limit and rate are beaten by the truth; `errors(n)` draws n errors, uniform on (0, 1) each."""
    beaten = rated = 0
    for _ in range(REPETITIONS):
        drawn = errors(rng)
        limit = ErrorLimit.of(drawn, beta=0.05)
        beaten += 1 - limit.limit > limit.epsilon
        rated += failed > FailureRate.of(drawn > 1 - failed, beta=0.05).epsilon
    return beaten, rated


def improbable(count):
    return stats.binom(REPETITIONS, 0.05).sf(count - 1) < 1e-3


def test_it_is_wrong_no_more_often_than_promised():
    beaten, rated = misses(lambda rng: rng.random(EPISODES), 0.2, np.random.default_rng(1))
    assert not improbable(beaten)
    assert not improbable(rated)
    assert beaten > 0, "the limit is exact, so it is wrong now and then"


def test_the_harness_rejects_dependent_blocks_taken_for_independent():
    def blocks(rng):  # four stretches of five blocks that share their error
        return np.repeat(rng.random(EPISODES // 5), 5)

    beaten, rated = misses(blocks, 0.2, np.random.default_rng(2))
    assert improbable(beaten)
    assert improbable(rated)
