"""The contract of candidates, held against networks on two kernels: an index alone says what a draw is."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from campaigns import same
from hypothesis import given, settings
from hypothesis import strategies as st

from echobound.candidates import Candidates, Made, Networks
from echobound.draws import VERIFICATION
from echobound.errors import InputError
from echobound.kernels import Status, blocks_in_turn, get_kernel, hold_out
from echobound.network import broad, paper
from echobound.scores import Score, get_score

SCORES = [get_score("fit"), get_score("rmse")]
COUNT = 12


@pytest.fixture(scope="module", params=["reference", "cpu"])
def kernel(request):
    return get_kernel(request.param)


@pytest.fixture(scope="module", params=["hold-out", "blocks"])
def networks(request, kernel, ph_records):
    if request.param == "hold-out":
        return Networks(kernel, hold_out(*ph_records, law=broad(order=8), scores=SCORES, washout=60, seed=5))
    return Networks(kernel, blocks_in_turn(ph_records[0], 3, law=paper(6), scores=SCORES, washout=40, seed=5))


@pytest.fixture(scope="module")
def rows(networks):
    return networks.score(range(COUNT))


def test_who_they_are(networks, kernel):
    assert isinstance(networks, Candidates)
    assert (networks.seed, networks.stream, networks.family) == (5, 0, 0)
    assert networks.measures == tuple(SCORES)
    assert networks.code == kernel.name
    assert networks.describe() == networks.problem.law.to_dict()


def test_a_row_names_its_draw(networks, rows):
    assert rows["index"].tolist() == list(range(COUNT))
    assert set(rows["stream"]) == {networks.stream}
    assert set(rows["family"]) == {networks.family}
    assert rows["scores"].shape == (COUNT, 2)
    assert (np.isfinite(rows["scores"][:, 0]) == (rows["status"] != Status.DIVERGED)).all()


@given(cuts=st.lists(st.integers(1, COUNT - 1), max_size=4, unique=True), order=st.permutations(range(COUNT)))
@settings(max_examples=5, deadline=None)
def test_rows_do_not_depend_on_batches_or_their_order(networks, rows, cuts, order):
    ends = [0, *sorted(cuts), COUNT]
    parts = [networks.score(order[start:stop]) for start, stop in pairwise(ends)]
    together = np.concatenate(parts)
    assert same(together[np.argsort(together["index"])], rows)


def test_a_candidate_that_is_made_scores_what_its_row_says(networks, rows):
    for index in (0, COUNT - 1):
        made = networks.make(index)
        assert isinstance(made, Made)
        assert made.scores == pytest.approx(rows["scores"][index], rel=1e-12)
        assert (made.model.origin["seed"], made.model.origin["index"]) == (5, index)
        assert [len(y) for y in made.outputs] == [len(y) for y in networks.problem.measured]
        trial = networks.kernel.trial(networks.problem, index)
        simulated = trial.simulated(trial.pick(networks.problem)[0])
        for one, other in zip(made.outputs, simulated, strict=True):
            assert (one == other).all()


def test_another_stream_has_other_draws_of_the_same_law(networks, rows):
    fresh = networks.on(VERIFICATION)
    assert (fresh.stream, networks.stream) == (VERIFICATION, 0), "what was there stays as it is"
    assert (fresh.seed, fresh.family, fresh.describe()) == (networks.seed, networks.family, networks.describe())
    others = fresh.score(range(COUNT))
    assert set(others["stream"]) == {VERIFICATION}
    assert not set(others["scores"][:, 0]) & set(rows["scores"][:, 0])
    assert same(fresh.on(0).score(range(COUNT)), rows)


def test_agreement_tells_the_same_draw_from_another(networks, rows):
    assert networks.agreement(rows[0], rows[0].copy()) == "same"
    assert networks.agreement(rows[0], rows[1]) == "different"
    forged = rows[:1].copy()
    forged["scores"][0, 0] += 1e-3
    assert networks.agreement(rows[0], forged[0]) == "different"
    plain = Candidates.agreement
    assert (plain(networks, rows[0], rows[0]), plain(networks, rows[0], rows[1])) == ("same", "different")


def test_both_kernels_draw_the_same(ph_records):
    problem = hold_out(*ph_records, law=broad(order=8), scores=SCORES, washout=60, seed=5)
    fast, plain = Networks(get_kernel("cpu"), problem), Networks(get_kernel("reference"), problem)
    for one, other in zip(fast.score(range(COUNT)), plain.score(range(COUNT)), strict=True):
        assert fast.agreement(one, other) in ("same", "sensitive")


def test_they_travel(networks, rows):
    assert same(pickle.loads(networks.packed()).score(range(3)), rows[:3])


def test_what_cannot_travel_is_named(kernel, ph_records):
    own = Score("own", lambda y, yhat: 0.0, "min")
    with pytest.raises(InputError, match="score 'own' cannot be sent to other processes"):
        Networks(kernel, hold_out(*ph_records, law=paper(5), scores=[own], washout=60)).packed()


def test_a_kernel_that_fills_its_device_says_so(ph_records):
    class Device:
        name, batch, parallel = "device", 4096, False

    networks = Networks(Device(), hold_out(*ph_records, law=paper(5), scores=SCORES, washout=60))
    assert (networks.batch, networks.parallel, networks.code) == (4096, False, "device")
    ordinary = Networks(get_kernel("cpu"), networks.problem)
    assert (ordinary.batch, ordinary.parallel) == (None, True)
