"""Certificates: what they say, what they are checked for, and that nothing in them can be changed unseen."""

import dataclasses
import json
import math

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from echobound.errors import DamagedFile, InputError
from echobound.scenario import Certificate, certify, epsilon_exact, schema, select

DIGESTS = {"data": "d" * 64, "plan": "e" * 64, "ledger": "f" * 64, "model": "0" * 64}


def make(scores, *, direction="max", epsilon=0.05, beta=0.05, **more):
    given_ = {"score": "fit" if direction == "max" else "rmse", "unit": "%" if direction == "max" else ""} | more
    return certify(
        scores,
        direction=direction,
        epsilon=epsilon,
        beta=beta,
        law={"name": "paper", "order": 200, "norm": 0.99},
        seed=7,
        digests=DIGESTS,
        provenance={"host": "here", "seconds": 1.5},
        **given_,
    )


def draw(count=59, seed=0):
    return np.random.default_rng(seed).normal(80, 5, count)


CASES = {
    "max": make(draw()),
    "min": make(abs(draw()) / 100, direction="min"),
    "ties": make(np.round(draw() / 5) * 5),
    "some diverged": make(np.where(np.arange(59) % 20 == 3, -np.inf, draw())),
    "all diverged": make(np.full(59, np.nan)),
    "explicit": make(draw(645), beta=1e-7, bound="explicit"),
    "tiny beta": make(draw(14000), beta=1e-300),
    "underflow": make(draw(20000), beta=1e-7),
}


def test_the_papers_numbers():
    certificate = CASES["explicit"]
    assert certificate.networks == certificate.networks_required == 645
    assert certificate.epsilon_exact == pytest.approx(0.0246796477917, abs=1e-13)
    assert certificate.beta_exact == pytest.approx(4.28277650308e-15, rel=1e-11)
    assert certificate.log10_beta_exact == pytest.approx(math.log10(4.28277650308e-15), rel=1e-11)
    assert make(draw(315), beta=1e-7).networks_required == 315


def test_the_words():
    scores = np.full(315, 60.0)
    scores[[4, 9]] = 89.97, 41.5
    best = make(scores, beta=1e-7)
    assert best.statement == (
        "With confidence 1 - 1e-07, a new network drawn and trained in the same way scores a FIT above 89.97 %"
        " on these validation data with probability at most 0.05."
    )
    assert "a FIT below 41.5 %" in best.worst.statement
    smallest = make(scores, beta=1e-7, direction="min")
    assert "an RMSE below 41.5 on these validation data" in smallest.statement
    assert "above 89.97" in smallest.worst.statement
    for said in ("not about new data", "tie", "all 2 promises hold together with confidence 1 - 2e-07"):
        assert any(said in sentence for sentence in best.not_stated)


@pytest.mark.parametrize("direction", ["max", "min"])
def test_lowest_index_wins_ties(direction):
    scores = np.array([2.0, 1.0, 3.0, 3.0, 1.0] * 12)
    certificate = make(scores, direction=direction)
    assert (certificate.winner, certificate.worst.index) == ((2, 1) if direction == "max" else (1, 2))


@given(st.permutations(range(59)))
def test_order_of_the_scores_does_not_matter(order):
    scores = draw()
    certificate, permuted = make(scores), make(scores[order])
    assert permuted.threshold == certificate.threshold
    assert permuted.worst.threshold == certificate.worst.threshold
    assert order[permuted.winner] == certificate.winner
    assert permuted.statement == certificate.statement


def test_failures_are_counted_and_score_worst():
    scores = draw()
    scores[[3, 5]] = -np.inf, np.nan
    certificate = make(scores)
    assert (certificate.networks, certificate.failures, certificate.status) == (59, 2, "certified")
    assert certificate.threshold == np.nanmax(scores)
    worst = certificate.worst
    assert (worst.index, worst.threshold, worst.diverged) == (3, None, True)
    assert worst.divergence_bound == epsilon_exact(59, 0.05, d=3)
    assert "diverges" in worst.statement
    assert "2 of 59" in worst.statement


def test_minimised_scores_diverge_upwards():
    scores = abs(draw())
    scores[8] = np.inf
    certificate = make(scores, direction="min")
    assert certificate.failures == 1
    assert certificate.worst.index == 8
    assert certificate.threshold == scores[np.isfinite(scores)].min()


def test_all_diverged():
    certificate = CASES["all diverged"]
    assert (certificate.status, certificate.winner, certificate.threshold) == ("all diverged", None, None)
    assert certificate.failures == 59
    assert certificate.worst.divergence_bound == 1.0
    assert "All 59 networks diverged" in certificate.statement
    assert "finite score" in certificate.statement
    assert select([np.nan, -np.inf], "max") is None


@pytest.mark.parametrize(("count", "bound"), [(58, "exact"), (119, "explicit")])
def test_too_few_networks(count, bound):
    with pytest.raises(InputError, match=f"{count} networks .* {count + 1} are needed"):
        make(draw(count), bound=bound)


@pytest.mark.parametrize(
    "more", [{"epsilon": 0.0}, {"beta": 1.0}, {"bound": "loose"}, {"direction": "up"}, {"epsilon": math.nan}]
)
def test_bad_arguments(more):
    with pytest.raises(InputError):
        make(draw(), **{"direction": "max"} | more)


@pytest.mark.parametrize("scores", [[], np.ones((59, 2))])
def test_scores_are_one_for_each_network(scores):
    with pytest.raises(InputError, match="one score for each network"):
        make(scores)


@pytest.mark.parametrize("name", CASES)
def test_round_trip_and_schema(name):
    certificate = CASES[name]
    content = json.loads(json.dumps(certificate.to_dict(), allow_nan=False))
    jsonschema.validate(content, schema(), cls=Draft202012Validator)
    again = Certificate.from_dict(content)
    assert again == certificate
    assert again.to_dict() == certificate.to_dict()
    again.check()


def test_schema_itself():
    Draft202012Validator.check_schema(schema())
    assert set(schema()["required"]) == set(schema()["properties"]) - {"members"} == set(CASES["max"].to_dict())


@pytest.mark.parametrize(
    "change",
    [
        {"threshold": None},
        {"winner": None},
        {"epsilon": 1.0},
        {"schema_version": 2},
        {"extra": 1},
        {"digest": "abc"},
        {"status": "all diverged"},
        {"networks": 0},
    ],
)
def test_schema_refuses(change):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(CASES["max"].to_dict() | change, schema(), cls=Draft202012Validator)


def test_scores_confirm_their_certificate():
    scores = draw()
    make(scores).check(scores)
    scores = np.where(np.arange(59) % 7 == 0, np.nan, scores)
    make(scores).check(scores)


def test_other_scores_do_not():
    scores = draw()
    certificate = make(scores)
    higher, lower, failed = scores.copy(), scores.copy(), scores.copy()
    higher[10], lower[10], failed[10] = 200.0, -200.0, np.nan
    for other, part in (
        (higher, "winner"),
        (lower, "worst"),
        (failed, "failures"),
        (np.append(scores, 1.0), "networks"),
    ):
        with pytest.raises(DamagedFile) as caught:
            certificate.check(other)
        assert caught.value.part in (part, "threshold", "statement", "worst", "epsilon_exact")


def altered(value):
    """Another value of the same JSON type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * 0.99
    if isinstance(value, str):
        return value + " "
    if isinstance(value, list):
        return value[:-1] if value else [0]
    if isinstance(value, dict):
        return value | {"added": 1}
    return 1.0


@pytest.mark.parametrize("case", ["max", "min", "some diverged", "all diverged"])
@pytest.mark.parametrize("name", sorted(set(CASES["max"].to_dict()) - {"provenance"}))
def test_a_changed_field_is_found(case, name):
    content = CASES[case].to_dict()
    content[name] = altered(content[name])
    with pytest.raises(DamagedFile, match=r"certificate\.json is damaged or was changed"):
        Certificate.from_dict(content).check()


@pytest.mark.parametrize("name", sorted(CASES["some diverged"].to_dict()["worst"]))
def test_a_changed_worst_case_is_found(name):
    content = CASES["some diverged"].to_dict()
    content["worst"] = content["worst"] | {name: altered(content["worst"][name])}
    with pytest.raises(DamagedFile):
        Certificate.from_dict(content).check()


def test_provenance_stands_apart():
    content = CASES["max"].to_dict() | {"provenance": {"host": "elsewhere"}}
    again = Certificate.from_dict(content)
    again.check()
    assert again == CASES["max"]
    assert again.to_dict()["digest"] == CASES["max"].to_dict()["digest"]


@pytest.mark.parametrize("name", sorted(CASES["max"].to_dict()))
def test_missing_and_unknown_fields(name):
    content = CASES["max"].to_dict()
    del content[name]
    with pytest.raises(DamagedFile) as caught:
        Certificate.from_dict(content, path="run/certificate.json")
    assert caught.value.part == name
    assert "run/certificate.json" in str(caught.value)
    with pytest.raises(DamagedFile, match="surprise"):
        Certificate.from_dict(CASES["max"].to_dict() | {"surprise": 1})


@pytest.mark.parametrize("name", sorted(set(CASES["max"].to_dict()) - {"digest", "schema_version"}))
@pytest.mark.parametrize("value", [True, [[]], {"a": 1}, "text"])
def test_wrong_types(name, value):
    content = CASES["max"].to_dict()
    if type(value) is type(content[name]):
        return
    with pytest.raises(DamagedFile):
        Certificate.from_dict(content | {name: value}).check()


def test_numbers_that_do_not_follow_are_named():
    """Also when the digest was made again to fit."""
    certificate = CASES["max"]
    for change, part in (
        ({"epsilon": 0.06}, "networks_required"),
        ({"epsilon_exact": 0.01}, "epsilon_exact"),
        ({"beta_exact": 0.01}, "beta_exact"),
        ({"networks_required": 58}, "networks_required"),
        ({"statement": "It is good."}, "statement"),
        ({"threshold": 99.0}, "statement"),
        ({"status": "all diverged"}, "status"),
        ({"not_stated": ()}, "not_stated"),
    ):
        with pytest.raises(DamagedFile) as caught:
            dataclasses.replace(certificate, **change).check()
        assert caught.value.part == part


def remade(content):
    """The content with a digest that fits: tampering by somebody who knows how digests are made."""
    import hashlib
    import json

    identity = {k: v for k, v in content.items() if k not in ("provenance", "digest")}
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"))
    return content | {"digest": hashlib.sha256(text.encode()).hexdigest()}


@pytest.mark.parametrize(
    "change",
    [
        {"rank": 7},
        {"kind": "quantile"},
        {"rule": "anytime"},
        {"failures": 1000},
        {"winner": 1000},
        {"seed": -1},
        {"families": []},
        {"epsilon": 0.001},
        {"networks_required": 3},
        {"status": "all diverged"},
        {"not_stated": []},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_digest_that_fits_does_not_help(change):
    scores = draw()
    forged = Certificate.from_dict(remade(make(scores).to_dict() | change))
    with pytest.raises(DamagedFile):
        forged.check()
    with pytest.raises(DamagedFile):
        forged.check(scores)


def test_an_infinite_score_is_a_failure_whatever_its_sign():
    for direction in ("max", "min"):
        certificate = certify(
            [1.0, np.inf, -np.inf, 2.0],
            score="s",
            direction=direction,
            epsilon=0.9,
            beta=0.1,
            law={},
            seed=0,
            digests={},
        )
        assert certificate.failures == 2
        assert certificate.winner == (3 if direction == "max" else 0)
        assert Certificate.from_dict(certificate.to_dict()) == certificate


def test_words_never_promise_more_than_the_numbers():
    certificate = make(draw(645), epsilon=0.0246796477918)
    assert "at most 0.0246797" in certificate.statement


def test_content_that_is_not_json_is_refused():
    content = make(draw()).to_dict()
    for change in ({"epsilon": float("nan")}, {"schema_version": True}):
        with pytest.raises(DamagedFile):
            Certificate.from_dict(content | change)
