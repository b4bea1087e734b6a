"""Committees as candidates: a function of their own draws alone, by a rule that is computed here once more."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from campaigns import same
from hypothesis import given, settings
from hypothesis import strategies as st

from echobound.candidates import Candidates, Committees, Networks
from echobound.draws import VERIFICATION
from echobound.errors import InputError
from echobound.kernels import Status, blocks_in_turn, get_kernel, hold_out
from echobound.kernels.base import Run
from echobound.network import Committee, broad, paper
from echobound.scores import Score, fit, get_score

SCORES = [get_score("fit"), get_score("rmse")]
COUNT, MEMBERS = 6, 3


@pytest.fixture(scope="module", params=["reference", "cpu"])
def kernel(request):
    return get_kernel(request.param)


@pytest.fixture(scope="module", params=["hold-out", "blocks"])
def committees(request, kernel, ph_records):
    if request.param == "hold-out":
        problem = hold_out(*ph_records, law=broad(order=8), scores=SCORES, washout=60, seed=5)
    else:
        problem = blocks_in_turn(ph_records[0], 3, law=paper(6), scores=SCORES, washout=40, seed=5)
    return Committees(Networks(kernel, problem), MEMBERS)


@pytest.fixture(scope="module")
def rows(committees):
    return committees.score(range(COUNT))


# What they are ----------------------------------------------------------------------------------------------------


def test_who_they_are(committees, kernel):
    assert isinstance(committees, Candidates)
    assert (committees.seed, committees.stream, committees.family, committees.members) == (5, 0, 0, MEMBERS)
    assert (committees.measures, committees.code) == (tuple(SCORES), kernel.name)
    assert committees.describe() == committees.problem.law.to_dict()


def test_no_draw_is_in_two_committees(committees):
    draws = [draw for index in range(50) for draw in committees.draws(index)]
    assert draws == list(range(50 * MEMBERS))


def test_a_row_is_the_median_of_the_better_half(committees, rows):
    """By hand: the rows of single networks say who is kept, and their own trials what comes out."""
    problem, kernel = committees.problem, committees.kernel
    for index, row in enumerate(rows):
        draws = range(MEMBERS * index, MEMBERS * (index + 1))
        single = kernel.evaluate(problem, draws)
        kept = sorted(range(MEMBERS), key=lambda j: -single["scores"][j, 0])[:2]
        trials = [kernel.trial(problem, draws[j]) for j in kept]
        outputs = [trial.simulated(trial.pick(problem)[0]) for trial in trials]
        medians = [np.median(np.stack(fold), axis=0) for fold in zip(*outputs, strict=True)]
        expected = np.mean([fit(y, m) for y, m in zip(problem.measured, medians, strict=True)])
        assert row["scores"][0] == pytest.approx(expected, rel=1e-12)
        assert (row["index"], row["status"], row["ridge"]) == (index, Status.OK, 0.0)
        assert row["order"] == single["order"][kept].sum()
        assert committees.formed([index])[0].kept == tuple(draws[j] for j in kept)
        assert row["seconds"] > 0


@given(cut=st.integers(0, COUNT), order=st.permutations(range(COUNT)))
@settings(max_examples=4, deadline=None)
def test_rows_do_not_depend_on_batches_or_their_order(committees, rows, cut, order):
    together = np.concatenate([committees.score(order[:cut]), committees.score(order[cut:])])
    assert same(together[np.argsort(together["index"])], rows)


def test_several_at_a_time_give_the_same_rows(committees, rows):
    several = Committees(committees.networks, MEMBERS)
    several.batch = 4
    assert same(several.score(range(COUNT)), rows)


def test_a_kernel_that_fills_its_device_gets_as_many_networks_as_before(ph_records):
    class Device:
        name, batch, parallel = "device", 1024, False

    networks = Networks(Device(), hold_out(*ph_records, law=paper(5), scores=SCORES, washout=60))
    committees = Committees(networks, 10)
    assert (committees.batch, committees.parallel, committees.code) == (102, False, "device")
    assert Committees(networks, 5000).batch == 1


def test_what_is_made_scores_what_its_row_says(committees, rows):
    made = committees.make(COUNT - 1)
    assert made.scores == pytest.approx(rows["scores"][COUNT - 1], rel=1e-12)
    assert isinstance(made.model, Committee)
    assert tuple(member.origin["index"] for member in made.model.members) == committees.formed([COUNT - 1])[0].kept
    assert [len(y) for y in made.outputs] == [len(y) for y in committees.problem.measured]
    for member in made.model.members:  # each is the network that a single pick would be
        assert member.digest == committees.networks.make(member.origin["index"]).model.digest


def test_one_member_is_a_network(committees):
    single, networks = Committees(committees.networks, 1), committees.networks
    ours, theirs = single.score(range(4)), networks.score(range(4))
    assert (ours["scores"] == theirs["scores"]).all()
    assert (ours["order"] == theirs["order"]).all()


def test_another_stream_has_other_committees(committees, rows):
    fresh = committees.on(VERIFICATION)
    assert (fresh.stream, fresh.members, committees.stream) == (VERIFICATION, MEMBERS, 0)
    others = fresh.score(range(COUNT))
    assert not set(others["scores"][:, 0]) & set(rows["scores"][:, 0])
    assert same(fresh.on(0).score(range(COUNT)), rows)


def test_they_travel(committees, rows):
    assert same(pickle.loads(committees.packed()).score(range(2)), rows[:2])


@pytest.mark.parametrize("members", [0, -1, 2.5, True])
def test_a_committee_needs_members(committees, members):
    with pytest.raises(InputError, match="members must be an integer of at least 1"):
        Committees(committees.networks, members)


# Rounding ---------------------------------------------------------------------------------------------------------


def test_agreement_tells_the_same_committee_from_another(committees, rows):
    assert committees.agreement(rows[0], rows[0].copy()) == "same"
    assert committees.agreement(rows[0], rows[1]) == "different"
    forged = rows[:1].copy()
    forged["scores"][0, 0] += 1e-3
    assert committees.agreement(rows[0], forged[0]) == "different"
    for name in ("status", "order", "ridge", "family", "stream"):
        forged = rows[:1].copy()
        forged[name] += 1
        assert committees.agreement(rows[0], forged[0]) == "different", name


def test_both_kernels_draw_the_same(ph_records):
    problem = hold_out(*ph_records, law=broad(order=8), scores=SCORES, washout=60, seed=5)
    fast, plain = (Committees(Networks(get_kernel(name), problem), 4) for name in ("cpu", "reference"))
    for one, other in zip(fast.score(range(COUNT)), plain.score(range(COUNT)), strict=True):
        assert fast.agreement(one, other) in ("same", "sensitive")


def test_a_committee_that_rounding_moves_is_sensitive(ph_records):
    """Where a free run amplifies the last bit, the median of such runs moves, and so may who is kept."""
    wild = replace(paper(60), norm=0.99, feedback_scale=5.0)
    problem = hold_out(*ph_records, law=wild, scores=SCORES, washout=60, seed=5)
    fast, plain = (Committees(Networks(get_kernel(name), problem), 3) for name in ("cpu", "reference"))
    rows = list(zip(fast.score(range(4)), plain.score(range(4)), strict=True))
    beyond = [abs(one["scores"][0] / other["scores"][0] - 1) > 1e-9 for one, other in rows]
    assert any(beyond)
    found = [fast.agreement(one, other) for one, other in rows]
    assert found == ["sensitive" if far else "same" for far in beyond]


# The rule, on outputs that are given --------------------------------------------------------------------------------


class Given:
    """A kernel whose draws have the outputs and the orders that a test gives them."""

    name = "given"

    def __init__(self, outputs, orders=None, clipped=False, wholes=None):
        self.outputs, self.clipped, self.wholes = outputs, clipped, wholes
        self.orders = orders or [7] * len(outputs)

    def runs(self, problem, indices):
        count = len(problem.measured[0])
        whole = {i: None if self.wholes is None else np.asarray(self.wholes[i]) for i in indices}
        outputs = {i: np.broadcast_to(np.reshape(self.outputs[i], (-1, 1)), (count, 1)) for i in indices}
        return [Run(self.orders[i], 1e-8, [outputs[i]], whole[i], self.clipped) for i in indices]


LEVEL = Score("level", lambda y, yhat: float(yhat.mean()), "max")


def formed(ph_records, kernel, members, score=LEVEL, index=0):
    problem = hold_out(*ph_records, law=paper(5), scores=[score], washout=60)
    committees = Committees(Networks(kernel, problem), members)
    return committees.formed([index])[0], committees.score([index])[0]


@pytest.mark.parametrize(
    ("outputs", "kept", "level"),
    [
        ([1.0, 3.0, 2.0], (1, 2), 2.5),
        ([1.0, 3.0, 2.0, 5.0, 4.0], (3, 4, 1), 4.0),
        ([2.0, 2.0, 2.0], (0, 1), 2.0),  # ties go to the lower index
        ([np.nan, 3.0, 2.0], (1, 2), 2.5),  # diverged ones are the worst
        ([np.nan, 3.0, np.inf], (1, 0), 3.0),  # one that must be kept is left out of the median
        ([4.0, 1.0], (0,), 4.0),
        ([4.0], (0,), 4.0),
    ],
)
def test_who_is_kept(ph_records, outputs, kept, level):
    found, row = formed(ph_records, Given(outputs), len(outputs))
    assert (found.kept, row["scores"][0], row["status"]) == (kept, level, Status.OK)


def test_smaller_may_be_better(ph_records):
    found, row = formed(ph_records, Given([1.0, 3.0, 2.0]), 3, Score("level", LEVEL.function, "min"))
    assert (found.kept, row["scores"][0]) == ((0, 2), 1.5)


def test_the_second_committee_has_the_next_draws(ph_records):
    found, row = formed(ph_records, Given([9.0, 9.0, 1.0, 2.0], orders=[1, 1, 30, 40]), 2, index=1)
    assert (found.kept, row["order"], row["index"]) == ((3,), 40, 1)


def test_a_committee_diverges_if_its_median_does(ph_records):
    _, row = formed(ph_records, Given([np.nan, np.inf, np.nan]), 3)
    assert (row["status"], row["scores"][0]) == (Status.DIVERGED, -np.inf)


def test_a_committee_that_sits_at_a_limit_is_held(ph_records):
    _, row = formed(ph_records, Given([1e9, 1e9, 0.0], clipped=True), 3)
    assert row["status"] == Status.HELD
    assert formed(ph_records, Given([1e9, 1e9, 0.0]), 3)[1]["status"] == Status.OK


def test_a_demanding_score_gets_the_median_over_the_training_data(ph_records):
    demand = Score("demand", LEVEL.function, "max", demand=lambda value, y, one, noisy: value + 100 * float(one.mean()))
    wholes = [np.full((1280, 1), level) for level in (5.0, 7.0, 1.0)]
    found, row = formed(ph_records, Given([1.0, 3.0, 2.0], wholes=wholes), 3, demand)
    # Kept are those with the best score, what they do over the training data included: 703, 501 and 102.
    assert found.kept == (1, 0)
    assert row["scores"][0] == 2.0 + 100 * 6.0


def test_a_demanding_score_of_real_networks(ph_records):
    demand = Score("demand", fit, "max", demand=lambda value, y, one, noisy: min(value, fit(y, one), fit(y, noisy)))
    problem = blocks_in_turn(ph_records[0], 3, law=paper(6), scores=[demand], washout=40, seed=5)
    committees = Committees(Networks(get_kernel("cpu"), problem), 3)
    [row], made = committees.score([1]), committees.make(1)
    assert made.scores[0] == pytest.approx(row["scores"][0], rel=1e-12)
