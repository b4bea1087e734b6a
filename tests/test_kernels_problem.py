"""The problem a kernel solves: what is trained on, what is scored, how it is scaled, and the noise of training."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import Philox, SeedSequence

from echobound.data import Record
from echobound.draws import VERIFICATION, draw_key, unit, words
from echobound.errors import DataError, InputError
from echobound.kernels import Fold, Problem, Segment, blocks_in_turn, hold_out
from echobound.kernels.base import final_fit
from echobound.network import LeastSquares, ReservoirLaw, draw_reservoir, paper
from echobound.scores import get_score

SCORES = (get_score("fit"),)
NOISE_REGION = 7  # docs/DESIGN.md, contract 1


def record(length=50, level=0.0, **more):
    k = np.arange(length)
    return Record(u=np.sin(0.3 * k) + level, y=np.cos(0.2 * k) + level, **more)


def noisy(records, folds, amount, **more):
    return Problem(tuple(records), folds, ReservoirLaw(order=5, training_noise=amount), SCORES, **more)


def fed_back(problem, index, fold=0, kind="minmax"):
    data = problem.scaled(fold, kind)
    return problem.draw(index).fed_back([y for _, y in data.training], data.output_spread)


def documented_units(problem, index, count):
    """Numbers in [0, 1) from the words of region 7, written down from docs/DESIGN.md without echobound.draws."""
    key = SeedSequence(problem.seed, spawn_key=(problem.stream, problem.family, index)).generate_state(2, np.uint64)
    raw = Philox(key=key, counter=[0, NOISE_REGION, 0, 0]).random_raw(count)
    return np.array([(int(word) >> 11) / 2**53 for word in raw])


# ---------------------------------------------------------------- training noise


@pytest.mark.parametrize("kind", ["minmax", "standard", "none"])
def test_training_noise_of_several_segments_and_outputs_by_hand(mimo_records, kind):
    records = [*mimo_records[0], *mimo_records[1]]
    training = (Segment(0, 10, 111, 5), Segment(1, 0, 47, 5), Segment(0, 150, 203, 0))
    problem = noisy(records, (Fold(training, (Segment(2, 0, 240, 5),)),), 0.3, seed=11, stream=1, family=4)
    result = fed_back(problem, 6, kind=kind)

    data = problem.scaled(0, kind)
    clean = np.concatenate([y for _, y in data.training])
    levels = documented_units(problem, 6, clean.size).reshape(clean.shape)
    deviation = 0.3 * clean.std(axis=0)
    expected = clean + np.sqrt(3) * deviation * (2 * levels - 1)  # uniform: half width = sqrt(3) deviations
    assert [len(part) for part in result] == [101, 47, 53]
    assert np.allclose(np.concatenate(result), expected, rtol=0, atol=1e-14)


def test_training_noise_has_the_standard_deviation_asked_for():
    k = np.arange(20_000)
    long = Record(u=np.sin(0.3 * k), y=np.stack([np.sin(0.1 * k), 40 * np.cos(0.07 * k) ** 3], axis=1))
    problem = noisy([long], (Fold((Segment(0, 0, 20_000, 10),), (Segment(0, 0, 20_000, 10),)),), 0.1)
    y = problem.scaled(0, "none").training[0][1]
    noise = fed_back(problem, 0, kind="none")[0] - y
    assert noise.std(axis=0) == pytest.approx(0.1 * y.std(axis=0), rel=0.02)
    assert np.abs(noise).max(axis=0) == pytest.approx(np.sqrt(3) * 0.1 * y.std(axis=0), rel=0.001), "uniform"
    assert abs(np.corrcoef(noise.T)[0, 1]) < 0.03, "each output has words of its own"


def test_the_words_of_the_noise_run_on_from_segment_to_segment():
    one = record(60)
    whole = noisy([one], (Fold((Segment(0, 0, 60, 5),), (Segment(0, 0, 60, 5),)),), 0.2)
    cut = noisy([one], (Fold((Segment(0, 0, 23, 5), Segment(0, 23, 60, 5)), (Segment(0, 0, 60, 5),)),), 0.2)
    assert (np.concatenate(fed_back(cut, 3)) == fed_back(whole, 3)[0]).all()
    halves = noisy([one, one], (Fold((Segment(0, 0, 60, 5), Segment(1, 0, 60, 5)), (Segment(0, 0, 60, 5),)),), 0.2)
    first, second = fed_back(halves, 3)
    assert not (first == second).any(), "the same data twice get different noise"


def test_every_draw_has_noise_of_its_own():
    problem = noisy([record()], (Fold((Segment(0, 0, 50, 5),), (Segment(0, 0, 50, 5),)),), 0.2)
    others = problem.on(stream=VERIFICATION), problem.of_family(1, problem.law)
    seen = [fed_back(p, i)[0] for p in (problem, *others) for i in (0, 1)]
    assert len({array.tobytes() for array in seen}) == 6


def test_without_training_noise_the_measured_outputs_are_fed_back(mimo_records):
    problem = hold_out(*mimo_records, law=paper(5), scores=SCORES)
    data = problem.scaled(0, "minmax")
    for fed, (_, y) in zip(fed_back(problem, 0), data.training, strict=True):
        assert (fed == y).all()


def test_noise_is_for_training_only(mimo_records):
    quiet, loud = (
        hold_out(*mimo_records, law=ReservoirLaw(order=5, training_noise=noise), scores=SCORES) for noise in (0.0, 0.5)
    )
    for one, other in zip(quiet.scaled(0, "minmax").scored, loud.scaled(0, "minmax").scored, strict=True):
        assert (one[1] == other[1]).all()
    assert (quiet.measured[0] == loud.measured[0]).all()


# ---------------------------------------------------------------- segments and folds


@settings(deadline=None)
@given(st.integers(-5, 30), st.integers(-5, 30), st.integers(-5, 30))
def test_a_segment_has_samples_left_after_its_washout(start, stop, washout):
    if 0 <= start < stop and 0 <= washout < stop - start:
        assert Segment(0, start, stop, washout).counted == len(range(start + washout, stop))
    else:
        with pytest.raises(DataError, match="must be shorter than the record"):
            Segment(0, start, stop, washout)


def test_segments_and_folds_are_settled_once_made():
    segment = Segment(0, 0, 10, 2)
    for thing, name in ((segment, "washout"), (Fold((segment,), (segment,)), "training")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(thing, name, 3)
    assert Fold((segment,), (segment,)) == Fold((Segment(0, 0, 10, 2),), (Segment(0, 0, 10, 2),))


def test_a_problem_needs_a_fold_and_a_score_and_a_horizon_of_at_least_one():
    fold = Fold((Segment(0, 0, 50, 5),), (Segment(0, 0, 50, 5),))
    with pytest.raises(InputError, match="needs a score and at least one fold"):
        Problem((record(),), (), paper(5), SCORES)
    with pytest.raises(InputError, match="needs a score and at least one fold"):
        Problem((record(),), (fold,), paper(5), ())
    with pytest.raises(InputError, match="at least 1 sample, got 0"):
        Problem((record(),), (fold,), paper(5), SCORES, horizon=0)
    assert Problem((record(),), (fold,), paper(5), SCORES, horizon=1).horizon == 1


def test_a_fold_without_training_or_scored_data_is_refused():
    segment = Segment(0, 0, 50, 5)
    for fold in (Fold(training=(), scored=(segment,)), Fold(training=(segment,), scored=())):
        with pytest.raises(InputError, match="segments to train on and to score"):
            Problem((record(50),), (fold,), paper(5), SCORES)


@pytest.mark.parametrize("segment", [Segment(-1, 0, 40, 5), Segment(1, 0, 40, 5), Segment(0, 0, 51, 5)])
def test_a_segment_outside_the_records_is_refused(segment):
    inside = Segment(0, 0, 50, 5)
    for fold in (Fold((segment,), (inside,)), Fold((inside,), (segment,))):
        with pytest.raises(InputError, match="not within the 1 records"):
            Problem((record(50),), (fold,), paper(5), SCORES)


# ---------------------------------------------------------------- hold-out


def test_hold_out_trains_on_the_first_and_scores_the_second(mimo_records):
    problem = hold_out(*mimo_records, law=paper(5), scores=SCORES, washout=30, seed=8, horizon=3)
    [fold] = problem.folds
    assert fold.training == (Segment(0, 0, 300, 30), Segment(1, 0, 260, 30))
    assert fold.scored == (Segment(2, 0, 240, 30), Segment(3, 0, 200, 30))
    assert [r.name for r in problem.records] == ["phase 0.0", "phase 1.0", "phase 2.0", "phase 3.0"]
    assert (problem.seed, problem.stream, problem.family, problem.horizon) == (8, 0, 0, 3)
    assert (problem.inputs, problem.outputs) == (2, 2)


def test_hold_out_leaves_100_samples_for_the_washout_by_default():
    problem = hold_out(record(150), record(120), law=paper(5), scores=SCORES)
    assert [s.washout for s in (*problem.folds[0].training, *problem.folds[0].scored)] == [100, 100]


@pytest.mark.parametrize(
    ("training", "validation", "options", "error", "match"),
    [
        (record(20), record(50), {"washout": 20}, DataError, "shorter than every training record"),
        ([record(50), record(20)], record(50), {"washout": 20}, DataError, "shorter than every training record"),
        (record(50), record(20), {"washout": 20}, DataError, "shorter than every validation record"),
        (record(50), record(50), {"washout": -1}, InputError, "washout"),
        (record(50), Record(u=np.arange(50.0), y=np.ones(50)), {"washout": 5}, DataError, "FIT is undefined"),
        (record(50), record(50, output_names=("z",)), {"washout": 5}, DataError, "same channels"),
        (record(50), record(50, sampling_time=2.0), {"washout": 5}, DataError, "the same sampling time"),
        ([], record(50), {"washout": 5}, DataError, "training data must be a Record"),
        (record(50), [], {"washout": 5}, DataError, "validation data must be a Record"),
        (record(50), record(50), {"washout": 5, "scores": ()}, InputError, "needs a score"),
        (record(50), record(50), {"washout": 5, "horizon": 0}, InputError, "horizon"),
    ],
)
def test_hold_out_refuses(training, validation, options, error, match):
    with pytest.raises(error, match=match):
        hold_out(training, validation, **({"law": paper(5), "scores": SCORES} | options))


def test_a_validation_output_constant_only_in_the_washout_is_welcome():
    y = np.r_[np.ones(20), np.arange(30.0)]
    assert len(hold_out(record(), Record(u=y, y=y), law=paper(5), scores=SCORES, washout=20).measured[0]) == 30
    with pytest.raises(DataError, match="FIT is undefined"):
        hold_out(record(), Record(u=y[::-1], y=y[::-1]), law=paper(5), scores=SCORES, washout=30)


# ---------------------------------------------------------------- signals, measured, on


def test_measured_are_the_scored_outputs_without_washout_in_their_own_units(mimo_records):
    records = [*mimo_records[0], *mimo_records[1]]
    folds = (
        Fold((Segment(0, 0, 300, 9),), (Segment(2, 20, 90, 7), Segment(3, 0, 40, 0))),
        Fold((Segment(1, 0, 260, 9),), (Segment(0, 100, 130, 29),)),
    )
    problem = Problem(tuple(records), folds, paper(5), SCORES)
    assert len(problem.measured) == 2
    assert (problem.measured[0] == np.concatenate([records[2].y[27:90], records[3].y[:40]])).all()
    assert (problem.measured[1] == records[0].y[129:130]).all()


def test_signals_of_a_segment_are_a_part_of_its_record(mimo_records):
    problem = hold_out(*mimo_records, law=paper(5), scores=SCORES)
    u, y = problem.signals(Segment(1, 30, 50, 4))
    assert (u == mimo_records[0][1].u[30:50]).all()
    assert (y == mimo_records[0][1].y[30:50]).all()


def test_on_changes_stream_and_family_and_nothing_else(mimo_records):
    problem = hold_out(*mimo_records, law=paper(5), scores=SCORES, seed=3, horizon=2).of_family(9, paper(5))
    assert (problem.stream, problem.family) == (0, 9)
    other = problem.on(stream=VERIFICATION)
    assert (other.stream, other.family) == (VERIFICATION, 9)
    assert (other.on(stream=0).stream, other.of_family(0, paper(5)).family) == (0, 0), "0 is a value, not 'unchanged'"
    for name in ("records", "folds", "law", "scores", "seed", "horizon"):
        assert getattr(other, name) is getattr(problem, name)
    assert (problem.stream, problem.family) == (0, 9)


def test_the_key_names_the_draw(mimo_records):
    problem = hold_out(*mimo_records, law=paper(5), scores=SCORES, seed=3).on(1).of_family(9, paper(5))
    expected = SeedSequence(3, spawn_key=(1, 9, 7)).generate_state(2, np.uint64)
    assert (problem.key(7) == expected).all()
    drawn = draw_reservoir(paper(5), 2, 2, seed=3, stream=1, family=9, index=7)
    levels = Philox(key=problem.key(7), counter=[0, 3, 0, 0]).random_raw(10) >> np.uint64(11)
    assert (drawn.W_u.ravel() == 2.0 * (levels * 2.0**-53) - 1.0).all()


# ---------------------------------------------------------------- scaling


def test_each_fold_is_scaled_by_its_own_training_segments_only():
    low, high = record(80, level=0.0), record(80, level=100.0)
    folds = (
        Fold((Segment(0, 10, 40, 5),), (Segment(1, 0, 80, 5),)),
        Fold((Segment(0, 10, 40, 5), Segment(1, 20, 80, 5)), (Segment(0, 40, 80, 5),)),
    )
    problem = Problem((low, high), folds, paper(5), SCORES)
    seen = ([low.y[10:40]], [low.y[10:40], high.y[20:80]])
    for fold, parts in enumerate(seen):
        y = np.concatenate(parts)
        minmax, standard, none = (problem.scaled(fold, kind) for kind in ("minmax", "standard", "none"))
        assert minmax.scaling.output_offset == pytest.approx(y.min(axis=0))
        assert minmax.scaling.output_span == pytest.approx(np.ptp(y, axis=0))
        assert standard.scaling.output_offset == pytest.approx(y.mean(axis=0))
        assert standard.scaling.output_span == pytest.approx(y.std(axis=0))
        assert (none.scaling.output_offset, none.scaling.output_span) == (0.0, 1.0)
        assert minmax.output_spread == pytest.approx(y.std(axis=0) / np.ptp(y, axis=0))
        assert standard.output_spread == pytest.approx([1.0])
        assert none.output_spread == pytest.approx(y.std(axis=0))
    assert problem.scaled(0, "minmax").scored[0][1].max() > 10, "scored data leave the range"


def test_inputs_are_scaled_likewise_and_the_washout_counts():
    # The washout is fed to the network, so its samples belong to the data that the scaling is fitted on.
    spike = Record(u=np.r_[9.0, np.linspace(0, 1, 49)], y=np.r_[-7.0, np.linspace(0, 1, 49)])
    problem = hold_out(spike, record(60), law=paper(5), scores=SCORES, washout=5)
    scaling = problem.scaled(0, "minmax").scaling
    assert (scaling.input_offset, scaling.input_span) == (0.0, 9.0)
    assert (scaling.output_offset, scaling.output_span) == (-7.0, 8.0)


@settings(deadline=None)
@given(st.integers(0, 3), st.sampled_from(["minmax", "standard", "none"]))
def test_scaled_signals_are_those_of_the_segments(cut, kind):
    one, other = record(40), record(30, level=3.0)
    fold = Fold((Segment(0, cut, 35, 2), Segment(1, 0, 30 - cut, 2)), (Segment(1, cut, 20, 2),))
    data = Problem((one, other), (fold,), paper(5), SCORES).scaled(0, kind)
    expected = [(one, cut, 35), (other, 0, 30 - cut), (other, cut, 20)]
    for (u, y), (source, start, stop) in zip((*data.training, *data.scored), expected, strict=True):
        assert (u == data.scaling.inputs(source.u[start:stop])).all()
        assert (y == data.scaling.outputs(source.y[start:stop])).all()


def test_folds_and_kinds_are_kept_apart():
    problem = hold_out(record(level=2.0), record(60), law=paper(5), scores=SCORES, washout=5)
    assert problem.scaled(0, "minmax") is problem.scaled(0, "minmax")
    assert problem.scaled(0, "minmax").scaling.kind == "minmax"
    assert problem.scaled(0, "none").scaling.kind == "none"


# ---------------------------------------------------------------- blocks in turn


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(40, 200), min_size=1, max_size=7), st.integers(2, 5), st.integers(0, 6))
def test_every_sample_is_scored_once_and_never_trained_on_in_its_own_fold(lengths, blocks, washout):
    problem = blocks_in_turn([record(n) for n in lengths], blocks, law=paper(5), scores=SCORES, washout=washout)
    assert len(problem.folds) == blocks
    seen = [np.zeros(n, dtype=int) for n in lengths]
    for fold in problem.folds:
        used = [np.zeros(n, dtype=int) for n in lengths]
        for segment in fold.scored:
            seen[segment.record][segment.start : segment.stop] += 1
            used[segment.record][segment.start : segment.stop] += 1
        for segment in fold.training:
            used[segment.record][segment.start : segment.stop] += 1
        assert all(u.max() == 1 for u in used), "nothing twice"
        left_out = [int((u == 0).sum()) for u in used]
        assert sum(left_out) <= 2 * washout * len(lengths), "only pieces that are not longer than the washout"
        assert {s.washout for s in (*fold.training, *fold.scored)} == {washout}, "a washout at each start"
    assert all((one == 1).all() for one in seen)


def test_whole_experiments_are_blocks_where_there_are_enough():
    problem = blocks_in_turn([record(50)] * 5, 3, law=paper(5), scores=SCORES, washout=5)
    assert [[s.record for s in fold.scored] for fold in problem.folds] == [[0, 3], [1, 4], [2]]
    assert all((s.start, s.stop) == (0, 50) for fold in problem.folds for s in (*fold.scored, *fold.training))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"blocks": 1}, "at least 2 blocks"),
        ({"blocks": 2.0}, "whole number"),
        ({"washout": 12}, "washout=12 must be shorter than every block-1 record, but block 1 of record has 12"),
        ({"washout": 50}, "washout=50"),
        ({"washout": -1}, "washout"),
        ({"horizon": 0}, "horizon"),
    ],
)
def test_blocks_that_cannot_be(change, match):
    options = {"blocks": 4, "washout": 5, "law": paper(5), "scores": SCORES} | change
    with pytest.raises(InputError, match=match):
        blocks_in_turn(record(50), **options)


def test_a_refit_is_on_everything_with_one_ridge():
    law = dataclasses.replace(paper(5), training=LeastSquares((1e-8, 1e-6)))
    problem = blocks_in_turn([record(50), record(70)], 2, law=law, scores=SCORES, washout=5, seed=4)
    whole = final_fit(problem, 1)
    assert whole.law == dataclasses.replace(paper(5), training=LeastSquares((1e-6,)))
    [fold] = whole.folds
    assert fold.training == (Segment(0, 0, 50, 5), Segment(1, 0, 70, 5))
    assert (whole.seed, whole.stream, whole.family) == (4, problem.stream, problem.family)
    assert (whole.key(3) == problem.key(3)).all()


# ---------------------------------------------------------------- demanding scores

ROBUST = (get_score("robust"), get_score("rmse"))


def test_only_demanding_scores_make_a_demanding_problem():
    first = record(80)
    assert not hold_out(first, record(60), law=paper(5), scores=SCORES, washout=5).demanding
    assert hold_out(first, record(60), law=paper(5), scores=ROBUST, washout=5).demanding


def test_the_whole_of_a_hold_out_is_its_training_data_twice_once_with_noise():
    records = [record(80), record(70, level=2.0)]
    problem = hold_out(records, record(60), law=paper(5), scores=ROBUST, washout=5, seed=3)
    whole = problem.whole
    [fold] = whole.folds
    assert fold.training == problem.folds[0].training
    assert fold.scored == (Segment(0, 0, 80, 5), Segment(1, 0, 70, 5), Segment(3, 0, 80, 5), Segment(4, 0, 70, 5))
    half = len(whole.measured[0]) // 2
    assert (whole.measured[0][:half] == whole.measured[0][half:]).all()
    assert (whole.measured[0][:half] == np.concatenate([records[0].y[5:], records[1].y[5:]])).all()
    assert (whole.seed, whole.law, whole.scores) == (problem.seed, problem.law, problem.scores)


@pytest.mark.parametrize("blocks", [2, 3])
def test_the_whole_of_blocks_is_all_records(blocks):
    problem = blocks_in_turn([record(80), record(70)], blocks, law=paper(5), scores=ROBUST, washout=5)
    [fold] = problem.whole.folds
    assert fold.training == (Segment(0, 0, 80, 5), Segment(1, 0, 70, 5))
    assert [segment.record for segment in fold.scored] == [0, 1, 2, 3]


def test_the_noise_follows_from_the_seed_and_is_two_per_cent_of_all_training_inputs():
    k = np.arange(6000)
    u = np.stack([np.sin(0.3 * k), 40.0 * np.cos(0.07 * k) ** 3 + 7.0], axis=1)
    one, two = Record(u=u[:4000], y=np.cos(0.2 * k[:4000])), Record(u=u[4000:], y=np.cos(0.2 * k[4000:]))
    problem = hold_out([one, two], two, law=paper(5), scores=ROBUST, washout=5, seed=8)
    noise = [problem.whole.records[3 + i].u - original.u for i, original in enumerate((one, two))]
    for number, original in enumerate((one, two)):
        levels = unit(words(draw_key(8, 3, 0, number), 0, original.u.size)).reshape(original.u.shape)
        expected = np.sqrt(3.0) * 0.02 * u.std(axis=0) * (2.0 * levels - 1.0)
        assert noise[number] == pytest.approx(expected, abs=1e-12)
    together = np.concatenate(noise)
    assert together.std(axis=0) == pytest.approx(0.02 * u.std(axis=0), rel=0.05)
    assert abs(np.corrcoef(together.T)[0, 1]) < 0.05
    again, other = dataclasses.replace(problem), dataclasses.replace(problem, seed=9)
    assert (again.whole.records[3].u == problem.whole.records[3].u).all()
    assert (again.on(VERIFICATION).of_family(5, paper(5)).whole.records[3].u == problem.whole.records[3].u).all()
    assert not (other.whole.records[3].u == problem.whole.records[3].u).any()


def test_of_long_records_the_end_is_run_over_and_all_is_trained_on():
    k = np.arange(11_000)
    long = Record(u=np.sin(0.3 * k), y=np.cos(0.2 * k))
    for washout, start in ((50, 950), (10_500, 0)):
        [fold] = hold_out(long, long, law=paper(5), scores=ROBUST, washout=washout).whole.folds
        assert fold.training == (Segment(0, 0, 11_000, washout),)
        assert {(s.start, s.stop) for s in fold.scored} == {(start, 11_000)}


def test_without_demands_the_whole_is_the_training_data_once():
    problem = blocks_in_turn([record(80)], 2, law=paper(5), scores=SCORES, washout=5)
    assert problem.whole.folds == (Fold((Segment(0, 0, 80, 5),), (Segment(0, 0, 80, 5),)),)
    assert problem.whole.records == problem.records


def test_demanded_scores_by_hand():
    problem = hold_out(record(80), record(60), law=paper(5), scores=ROBUST, washout=5)
    [measured], whole = problem.measured, problem.whole.measured[0]
    half = len(whole) // 2
    outputs = measured + 0.01
    over = np.concatenate([whole[:half] + 0.2, whole[:half] + 0.2 + 0.05])
    deviation = whole[:half].std()
    expected = 100 * (1 - 0.2 / deviation) - 100 * 0.05 / deviation
    assert problem.scores_of([outputs], over) == pytest.approx([expected, 0.01])
    close = np.concatenate([whole[:half], whole[:half]])
    assert problem.scores_of([outputs], close)[0] == pytest.approx(100 * (1 - 0.01 / measured.std()))


def test_a_problem_of_another_law_shares_the_data_and_not_the_draws():
    problem = blocks_in_turn([record(80)], 2, law=paper(5), scores=ROBUST, washout=5)
    whole = problem.whole
    other = problem.of_law(ReservoirLaw(order=7, scaling="standard"))
    assert other.scaled(0, "minmax") is problem.scaled(0, "minmax")
    assert other.whole.records is whole.records, "noise is made once"
    assert other.whole.law is other.law
    assert final_fit(problem, 0).scaled(0, "minmax") is final_fit(problem, 0).scaled(0, "minmax"), "scaled once"
    assert other.draw(0).hyper.order == 7


# ---------------------------------------------------------------- limits


@pytest.mark.parametrize("kind", ["minmax", "standard", "none"])
def test_limits_of_a_fold_are_scaled_with_its_data(kind):
    folds = (Fold((Segment(0, 10, 40, 5),), (Segment(1, 0, 80, 5),)),)
    problem = Problem((record(80), record(80, level=100.0)), folds, ReservoirLaw(order=5, clip=True), SCORES)
    y = problem.records[0].y[10:40]
    limits, data = problem.limits[0], problem.scaled(0, kind)
    assert limits.low == pytest.approx(y.min() - 0.25 * np.ptp(y))
    assert data.scaling.outputs_back(data.limits.low) == pytest.approx(limits.low)
    assert data.scaling.outputs_back(data.limits.high) == pytest.approx(limits.high)
    draw = problem.on_fold(0, problem.draw(3))
    assert draw.limits is problem.scaled(0, draw.hyper.scaling).limits
    assert draw.reservoir is problem.on_fold(0, draw).reservoir, "what was drawn is not drawn again"
    unclipped = dataclasses.replace(problem, law=paper(5))
    assert unclipped.on_fold(0, unclipped.draw(3)).limits is None
