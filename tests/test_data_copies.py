"""Copies of records: shifted, rounded, resampled ones are found, and independent experiments are not accused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echobound import Record, generalise, identify, renew
from echobound.data.copies import common, require_independent_records
from echobound.data.overlap import require_untouched
from echobound.errors import DataError, InputError
from echobound.plants import ph_experiment

WHOLE = ph_experiment(samples=(800, 400), period=30)
TRAINING, VALIDATION = WHOLE


def windows(record, count, length, shift):
    return [record.part(i * shift, i * shift + length, f"window {i}") for i in range(count)]


def test_windows_shifted_by_one_sample_are_one_episode():
    """59 of them counted as 59 episodes: 0.0495 was promised where 0.44 was true."""
    with pytest.raises(DataError, match=r"records 1 .* and 2 .* 119 samples in common"):
        require_independent_records(windows(TRAINING, 59, 120, 1))


@pytest.mark.parametrize("shift", [-60, -1, 1, 37, 100])
@pytest.mark.parametrize("jitter", [0.0, 1e-9, 1e-5])
def test_shift_and_jitter_at_rounding_size(shift, jitter):
    rng = np.random.default_rng(0)
    one, two = TRAINING.part(200, 320), TRAINING.part(200 + shift, 320 + shift)
    noisy = replace(two, y=two.y + jitter * two.y.std() * rng.normal(size=two.y.shape))
    assert common(one, noisy).samples == 120 - abs(shift)
    assert common(noisy, one).samples == 120 - abs(shift)


def test_digits_rounded_anew():
    rounded = replace(TRAINING, y=np.round(TRAINING.y, 4), u=np.round(TRAINING.u, 3))
    assert common(TRAINING, rounded).samples == 800


@pytest.mark.parametrize("factor", [2, 3, 5])
def test_every_other_sample_of_the_same_record(factor):
    thin = Record(u=TRAINING.u[1::factor], y=TRAINING.y[1::factor])
    found = common(thin, TRAINING)
    assert found.rates == (1, factor)
    assert found.samples >= 800 // factor - 1
    assert (
        f"taking every {'2nd' if factor == 2 else '3rd' if factor == 3 else '5th'} sample of the second" in found.words
    )


def resampled(record, samples):
    at = np.linspace(0, len(record) - 1, samples)
    u, y = (
        np.column_stack([np.interp(at, np.arange(len(record)), x) for x in side.T]) for side in (record.u, record.y)
    )
    return replace(record, u=u, y=y)


@pytest.mark.parametrize("samples", [113, 533, 571, 793, 1142, 1600])
def test_resampling_by_any_factor(samples):
    """0.7, 1.01, 7, ...: only every second to fifth sample of the same record was found."""
    other = resampled(TRAINING, samples)
    assert common(TRAINING, other) is not None
    with pytest.raises(DataError, match="samples in common"):
        require_independent_records([other, VALIDATION, TRAINING])


@pytest.mark.parametrize("factor", [1.5, 2.5, 4 / 3, 0.75])
def test_a_window_at_another_rate(factor):
    at = np.arange(100, 700, factor)
    u, y = (np.interp(at, np.arange(800), x[:, 0]) for x in (TRAINING.u, TRAINING.y))
    assert common(Record(u=u, y=y), TRAINING) is not None


@pytest.mark.parametrize(
    "change",
    [
        lambda r: replace(r, y=-r.y),
        lambda r: replace(r, y=1000 * r.y, u=r.u / 3.6 + 273.15),
        lambda r: replace(r.part(100, 700), y=-5 * r.y[100:700]),
        lambda r: Record(u=r.y, y=r.u),
        lambda r: Record(u=-2 * r.y, y=r.u),
    ],
    ids=["sign", "units", "a window in other units", "channels swapped", "swapped in other units"],
)
def test_other_units_and_orders_of_channels(change):
    assert "scale, sign and order" in common(change(TRAINING), TRAINING).words
    assert common(change(VALIDATION), TRAINING) is None


@pytest.mark.parametrize(
    "change",
    [lambda y, i: y + 0.1 * i, lambda y, i: y * (1 + 0.01 * i), lambda y, i: -y],
    ids=["offset", "gain", "sign"],
)
def test_an_output_moved_above_an_input_of_few_levels(change):
    """Windows of one record, a sample apart, with another offset each: 20 of them counted as 20 episodes."""
    whole = ph_experiment(samples=(800, 400), period=40)[0]
    one, *others = windows(whole, 4, 120, 1)
    for i, other in enumerate(others, start=1):
        assert len(np.unique(other.u)) < 8, "steps, which are no sign of a copy if they stand alone"
        assert common(one, replace(other, y=change(other.y, i))) is not None
    later = whole.part(400, 520)
    assert common(one, replace(later, y=change(later.y, 1))) is None


def test_a_stretch_in_long_records_and_records_one_after_the_other():
    rng = np.random.default_rng(0)
    one, two = (Record(u=rng.normal(size=2000), y=rng.normal(size=2000)) for _ in range(2))
    joined = Record(u=np.concatenate([two.u[:1930], one.u[300:370]]), y=np.concatenate([two.y[:1930], one.y[300:370]]))
    assert common(joined, one).samples == 70
    assert common(joined, two).samples == 1930
    inside = one.part(1000, 1040)
    assert common(inside, one).samples == 40


PLANTS = {
    "steps": lambda rng: np.where(np.arange(300) < 30, 0.0, rng.normal()),
    "ramps": lambda rng: np.arange(300) * rng.random(),
    "two levels": lambda rng: np.repeat(rng.choice([-1.0, 1.0], 60), 5),
    "three levels": lambda rng: np.repeat(rng.choice([-1.0, 0.0, 1.0], 60), 5),
    "many levels": lambda rng: np.repeat(rng.normal(size=15), 20),
    "one frequency": lambda rng: np.sin(0.1 * np.arange(300) + 6 * rng.random()) * rng.random(),
    "several frequencies": lambda rng: sum(np.sin(w * np.arange(300) + 6 * rng.random()) for w in rng.random(4)),
}


@pytest.mark.parametrize("excitation", PLANTS)
def test_experiments_without_any_noise_are_not_accused(excitation):
    """A linear plant from rest, simulated: with an input of few values much of it looks alike."""
    for seed in range(4):
        made = []
        for number in range(2):
            rng = np.random.default_rng([seed, number])
            u, length = PLANTS[excitation](rng), (300, 250)[number]
            made.append(Record(u=u, y=np.convolve(np.append(0.0, u), 0.9 ** np.arange(60))[:300]).part(0, length))
        assert common(*made) is None, seed


def test_less_than_a_tenth_in_common_is_not_counted():
    assert common(TRAINING.part(0, 300), TRAINING.part(290, 590)) is None


@given(st.integers(0, 10_000), st.floats(1e-3, 1))
@settings(max_examples=20, deadline=None)
def test_independent_experiments_are_not_accused(seed, noise):
    """Even with the same excitation: the noise of the outputs, a thousandth of their movement, tells them apart."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=200)
    y = np.convolve(u, 0.8 ** np.arange(30))[:200]
    one, two = (Record(u=u, y=y + noise * y.std() * rng.normal(size=200)) for _ in range(2))
    other = Record(u=rng.normal(size=200), y=y)
    assert common(one, two) is None
    assert common(one, other) is None


def test_a_plant_at_rest_is_not_a_copy_of_itself():
    rng = np.random.default_rng(0)
    still = np.concatenate([np.zeros(100), rng.normal(size=100)]), np.concatenate([np.zeros(100), rng.normal(size=100)])
    one, two = (Record(u=x, y=x) for x in still)
    assert common(one, two) is None


def test_other_channels_cannot_be_compared():
    assert common(TRAINING, Record(u=np.zeros((50, 2)), y=np.zeros(50))) is None


def test_test_data_next_to_validation_data_are_refused():
    moved = VALIDATION.part(7, 207, "moved")
    noisy = replace(moved, y=moved.y + 1e-9)
    with pytest.raises(DataError, match=r"moved and the validation data .* 200 samples in common"):
        require_untouched([noisy], [("training", TRAINING), ("validation", VALIDATION)])


SMALL = {"law": "paper", "order": 6, "networks": 12, "beta": 0.05, "washout": 40, "committee": 0}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return identify(TRAINING, VALIDATION, **SMALL, run=tmp_path_factory.mktemp("run") / "run").run


def test_generalise_refuses_near_duplicates(run):
    [later] = ph_experiment(seed=9, samples=(400,), period=30)
    with pytest.raises(DataError, match="samples in common"):
        generalise(run, windows(later, 5, 120, 1))
    assert not (run / "generalisation.json").exists()


def test_renew_refuses_old_data_in_another_guise(run, tmp_path):
    new = ph_experiment(seed=5, samples=(800, 400), period=30)
    for training, validation in (
        (TRAINING.part(0, 799), VALIDATION),  # less one sample
        (VALIDATION, TRAINING),  # roles swapped
        (new[0], replace(VALIDATION, y=VALIDATION.y + 1e-10)),
    ):
        with pytest.raises(InputError, match=r"samples in common.*not a renewal"):
            renew(run, training, validation, closed_loop=False, into=tmp_path / "renewed")
    assert not (tmp_path / "renewed").exists()
    assert renew(run, *new, closed_loop=False, into=tmp_path / "renewed").certificate.networks == 12


def test_long_independent_records_are_not_compared_at_every_rate(monkeypatch):
    """That took five seconds of a search on a card that takes a third of one."""
    from echobound.data import copies

    calls, usual = [], copies._shared
    monkeypatch.setattr(copies, "_shared", lambda a, b: calls.append(len(a)) or usual(a, b))

    def one(seed, length):
        u = np.random.default_rng(seed).normal(size=length)
        y = np.convolve(u, 0.8 ** np.arange(30))[:length]
        return Record(u=u, y=np.tanh(y))

    assert copies.common(one(0, 20_000), one(1, 30_000)) is None
    assert len(calls) == 1
