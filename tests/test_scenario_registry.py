"""The list of statements: what a search states, the draws it rests on, and that a new one is a file and a line."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from echobound.errors import DamagedFile, InputError
from echobound.scenario import (
    Anytime,
    Certificate,
    Gain,
    Patience,
    Removal,
    ScoreName,
    Search,
    Statement,
    certify,
    claims_of,
    schema,
    statements_of,
    title_of,
)
from echobound.scenario.statements import registry
from echobound.scenario.statements.base import ScoreStatement

FIT, RMSE = ScoreName("fit", "max", "%"), ScoreName("rmse", "min")
SCORES = np.random.default_rng(3).normal(85, 3, size=120)
SCORES[[7, 70]] = np.nan
TABLE = np.stack([SCORES, np.exp(-SCORES / 50) * np.random.default_rng(4).random(120)], axis=1)


def search(table=TABLE[:, :1], scores=(FIT,), **settled):
    return Search(table=table, scores=scores, beta=0.05, **settled)


# What was settled, and which statements are made of it.
SEARCHES = {
    "plain": (search(), ["both ends", "gain"]),
    "renewed": (search(updates=3), ["renewal", "both ends", "gain"]),
    "patience": (search(stop=Patience(beta=0.05, draws=20, least=120)), ["stopped", "both ends", "gain"]),
    "at will": (search(stop=Anytime(beta=0.05, first=50)), ["stopped", "gain"]),
    "set aside": (search(discarded=4), ["removal", "both ends", "gain"]),
    "two scores": (search(TABLE, (FIT, RMSE), joint=True), ["both ends", "joint scores", "gain"]),
    "families": (search(families=(("a", 50), ("b", 70))), ["families", "gain"]),
    "blocks": (search(blocks=3, horizon=5, discarded=1), ["removal", "both ends", "gain"]),
    "one network": (search(TABLE[:1, :1]), ["gain"]),
}


def certificate_of(one):
    families = [{"family": i, "name": name, "networks": n, "law": {}} for i, (name, n) in enumerate(one.families)]
    return certify(
        one.first,
        **one.scoring,
        epsilon=0.99,
        beta=0.05,
        law={},
        seed=0,
        digests={},
        families=families,
        statements=statements_of(one),
    )


@pytest.mark.parametrize("name", SEARCHES)
class TestEverySearch:
    def test_its_statements_in_their_order(self, name):
        one, kinds = SEARCHES[name]
        assert [statement.kind for statement in statements_of(one)] == kinds
        assert all(title_of(kind) for kind in kinds)

    def test_certificates_hold_them_and_are_checked_against_the_scores(self, name):
        one, kinds = SEARCHES[name]
        certificate = Certificate.from_dict(certificate_of(one).to_dict())
        Draft202012Validator(schema()).validate(certificate.to_dict())
        certificate.check(one.table)
        certificate.check(one.first)
        for other in range(len(one.table) if len(kinds) > 1 else 0):
            moved = one.table.copy()
            moved[other] = 1000.0, *([-1.0] * (one.table.shape[1] - 1))
            with pytest.raises(DamagedFile):
                certificate.check(moved)

    def test_the_draws_that_it_rests_on(self, name):
        one, _ = SEARCHES[name]
        claimed = claims_of(one)
        assert claimed == sorted(set(claimed))
        certificate = certificate_of(one)
        assert {certificate.winner, certificate.worst.index} <= set(claimed)


def test_claims_by_hand():
    order = np.argsort(-np.nan_to_num(SCORES, nan=-np.inf), kind="stable")
    assert claims_of(SEARCHES["plain"][0]) == sorted([int(order[0]), 7])
    assert claims_of(SEARCHES["set aside"][0]) == sorted([*order[:5].tolist(), 7])
    assert claims_of(SEARCHES["two scores"][0]) == sorted({int(order[0]), 7, int(np.nanargmin(TABLE[:, 1]))})
    own = [int(np.nanargmax(SCORES[:50])), 50 + int(np.nanargmax(SCORES[50:]))]
    assert claims_of(SEARCHES["families"][0]) == sorted({*own, 7})
    assert claims_of(search(np.full((3, 1), np.nan), discarded=2)) == [0], "nothing but the first is left to claim"
    assert claims_of(search(np.empty((0, 1)), discarded=2, families=(("a", 0), ("b", 0)))) == []


def test_a_statement_that_a_search_does_not_make_is_refused():
    at_will, _ = SEARCHES["at will"]
    [both, _] = statements_of(SEARCHES["plain"][0])
    forged = replace(certificate_of(at_will), statements=(*statements_of(at_will), both))
    with pytest.raises(DamagedFile, match="nothing of this kind is stated"):
        forged.check(SCORES)


def test_only_statements_about_searches_may_stand_in_a_certificate():
    band = registry.RankBand.of(SCORES, beta=0.05)
    with pytest.raises(InputError, match=r"statements may be renewal, stopped, .* got rank band"):
        certify(
            SCORES, score="s", direction="max", epsilon=0.5, beta=0.05, law={}, seed=0, digests={}, statements=[band]
        )


def test_every_listed_statement_is_registered_with_a_title():
    listed = (*registry.OF_SEARCH, *registry.OF_SCORES, *registry.OF_EPISODES)
    assert all(Statement.kinds[kind.kind] is kind and kind.title for kind in listed)
    assert len({kind.title for kind in registry.OF_SEARCH}) == len(registry.OF_SEARCH)


@pytest.fixture
def median(monkeypatch):
    """A new statement: its class, and a line in the list."""
    monkeypatch.setattr(Statement, "kinds", dict(Statement.kinds))

    @dataclass(frozen=True, kw_only=True)
    class Median(ScoreStatement):
        kind = "median"
        title = "middle"
        derived = ("twice",)

        networks: int
        middle: float

        @property
        def twice(self) -> float:
            return 2 * self.middle

        @property
        def words(self):
            return f"The middle of {self.networks} scores is {self.middle:g}."

        @classmethod
        def of_search(cls, search):
            middle = float(np.nanmedian(search.first))
            return cls(networks=len(search.table), middle=middle, beta=search.beta, **search.scoring)

        @classmethod
        def claims(cls, search):
            return [int(np.nanargmin(abs(search.first - np.nanmedian(search.first))))]

    monkeypatch.setattr(registry, "OF_SEARCH", (*registry.OF_SEARCH, Median))
    return Median


def test_a_new_statement_is_found_by_all(median):
    one = search()
    certificate = certificate_of(one)
    assert [statement.kind for statement in certificate.statements] == ["both ends", "gain", "median"]
    assert Certificate.from_dict(certificate.to_dict()) == certificate
    Draft202012Validator(schema()).validate(certificate.to_dict())
    certificate.check(SCORES)
    assert title_of("median") == "middle"
    assert median.claims(one)[0] in claims_of(one)
    stated = certificate.to_dict()["statements"][-1]
    assert not Draft202012Validator(schema()).is_valid(
        certificate.to_dict() | {"statements": [{**stated, "twice": "much"}]}
    )


def test_statements_made_by_hand_are_those_of_the_search():
    assert statements_of(search(discarded=4))[0] == Removal.of(SCORES, discarded=4, beta=0.05, score="fit", unit="%")
    assert statements_of(search())[-1] == Gain.of(SCORES, score="fit", unit="%")
