"""Which networks are kept: the best, and of several kinds no more than half of one while others come near."""

import numpy as np
import pytest

from echobound.draws import draw_key
from echobound.kernels import row_dtype
from echobound.network import MixedLaw, paper
from echobound.plan import Plan, settle_validation
from echobound.runs.keeping import kept_of
from echobound.scores import Score

LAW = MixedLaw((paper(3), paper(4)), name="two kinds")
KINDS = np.array([LAW.component(draw_key(0, 0, 0, index)).order for index in range(60)])


def settled(records, **settings):
    return Plan(**{"law": LAW, "networks": 60, "scores": ("fit",)} | settings).settle(settle_validation(*records))


def table(scores):
    rows = np.zeros(len(scores), dtype=row_dtype(1))
    rows["index"], rows["scores"][:, 0] = np.arange(len(scores)), scores
    return rows


def test_at_most_half_are_of_one_kind_while_others_come_near(ph_records):
    scores = np.where(KINDS == 3, 90.0, 88.0) - 0.01 * np.arange(60)
    kept = kept_of(settled(ph_records), table(scores))
    assert kept[0] == int(scores.argmax())
    assert (len(kept), (KINDS[kept] == 3).sum()) == (10, 5)
    assert list(scores[kept]) == sorted(scores[kept], reverse=True), "the best first"
    by_kind = [np.flatnonzero(kind == KINDS)[:5] for kind in (3, 4)]
    assert sorted(kept) == sorted(np.concatenate(by_kind)), "and the best of each kind"


@pytest.mark.parametrize(("other", "of_it"), [(85.1, 5), (84.5, 0)])
def test_near_is_one_and_a_half_times_the_error_of_the_best(ph_records, other, of_it):
    scores = np.where(KINDS == 3, 90.0, other) - 1e-4 * np.arange(60)
    kept = kept_of(settled(ph_records), table(scores))
    assert ((KINDS[kept] == 4).sum(), len(kept)) == (of_it, 10)


def test_where_too_few_come_near_the_best_fill_up(ph_records):
    scores = np.where(KINDS == 3, 90.0, 20.0) - 1e-3 * np.arange(60)
    scores[np.flatnonzero(KINDS == 4)[:2]] = 89.0
    kept = kept_of(settled(ph_records), table(scores))
    assert sorted(KINDS[kept].tolist()) == [3] * 8 + [4] * 2


def test_errors_of_a_score_to_be_minimised(ph_records):
    scores = np.where(KINDS == 3, 1.0, 1.2) + 1e-4 * np.arange(60)
    kept = kept_of(settled(ph_records, scores=("rmse",)), table(scores))
    assert (KINDS[kept] == 4).sum() == 5


def test_a_score_without_a_best_value_and_one_kind_are_ranked(ph_records):
    scores = np.where(KINDS == 3, 9.0, 8.8) - 1e-4 * np.arange(60)
    own = settled(ph_records, scores=(Score("own", lambda y, simulated: 0.0, "max"),))
    alone = settled(ph_records, law=paper(3))
    best = list(np.argsort(-scores, kind="stable")[:10])
    assert kept_of(own, table(scores)) == kept_of(alone, table(scores)) == best


def test_the_pick_alone_and_none_where_all_diverged(ph_records):
    scores = np.arange(60.0)
    assert kept_of(settled(ph_records, committee=0), table(scores)) == [59]
    assert kept_of(settled(ph_records), table(np.full(60, -np.inf))) == []
