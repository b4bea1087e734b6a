"""The second certificate of a run folder: what is stated, that test data are opened once, and how often it is wrong."""

import json
import shutil
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from echobound import Record, Score, audit, generalise, identify, ph_experiment
from echobound.data.experiments import Experiments
from echobound.errors import DamagedFile, DataError, EchoboundError, InputError, RunError
from echobound.files import write_json
from echobound.plan import settle_questions
from echobound.runs.folder import RunFolder
from echobound.runs.opening import episodes_of, generalisation_of
from echobound.scenario import Questions
from echobound.scores import fit, rmse

SMALL = {"law": "paper", "order": 8, "networks": 20, "beta": 1e-2, "washout": 40, "committee": 3}


@pytest.fixture(scope="module")
def records():
    """Training, validation and 24 episodes, each an experiment of its own."""
    return ph_experiment(samples=(500, 300, *[120] * 24), period=30)


@pytest.fixture(scope="module")
def bare(records, tmp_path_factory):
    """A run without test data."""
    return identify(*records[:2], **SMALL, run=tmp_path_factory.mktemp("bare") / "run").run


@pytest.fixture(scope="module")
def tested(records, tmp_path_factory):
    """A run with test data of its own."""
    return identify(*records[:2], test=records[2:12], **SMALL, run=tmp_path_factory.mktemp("tested") / "run").run


@pytest.fixture
def copied(tmp_path, monkeypatch, request):
    """A copy of a run; pages are looked at elsewhere, and take longer than all else here."""
    monkeypatch.setattr(sys.modules["echobound.generalise"], "write_page", lambda folder: None)
    monkeypatch.setattr(sys.modules["echobound.identify"], "write_page", lambda folder: None)

    def copy(run):
        return shutil.copytree(run, tmp_path / "run")

    return copy


def files_of(run):
    return {path.name: path.read_bytes() for path in run.iterdir() if path.suffix in (".json", ".npz")}


def test_statements_come_from_free_runs_over_the_test_records(bare, copied, records):
    run, test = copied(bare), records[2:]
    second = generalise(run, test, criterion="fit>60", discarded=1, beta=0.1)
    folder = RunFolder(run)
    for who, model in (("model", folder.network), ("committee", folder.committee)):
        outputs = [model.simulate(record).y for record in test]
        errors = [float(rmse(r.y[40:], y)) for r, y in zip(test, outputs, strict=True)]
        failures = sum(float(fit(r.y[40:], y)) <= 60 for r, y in zip(test, outputs, strict=True))
        peaks = sorted(float(np.abs(r.y[40:] - y).max()) for r, y in zip(test, outputs, strict=True))
        limit, rate, band = second.statements[who]
        assert limit.limit == pytest.approx(sorted(errors)[-2], rel=1e-9)
        assert limit.epsilon == pytest.approx(stats.beta(2, 23).ppf(0.9), rel=1e-9)
        assert rate.failures == failures
        assert rate.epsilon == pytest.approx(stats.beta(failures + 1, 24 - failures).ppf(0.9), rel=1e-9)
        assert band.widths == (pytest.approx(peaks[22], rel=1e-9),), "ceil(25 x 0.9) = 23"
    assert second.optimism.validation == folder.certificate.threshold
    pooled = fit(np.concatenate([r.y[40:] for r in test]), np.concatenate([folder.network.simulate(r).y for r in test]))
    assert second.optimism.test == pytest.approx(float(pooled), rel=1e-9)
    assert folder.generalisation == second
    assert len(folder.tested(second)) == 24


def test_the_same_call_again_gives_the_same_and_changes_nothing(bare, copied, records):
    run = copied(bare)
    first = generalise(run, records[2:12], criterion="rmse<1")
    before = files_of(run)
    assert generalise(run, records[2:12], criterion="rmse<1") == first
    assert generalise(run) == generalise(run, criterion="rmse<1.0") == first
    assert files_of(run) == before


@pytest.mark.parametrize(
    "other", [{"criterion": "rmse<2"}, {"beta": 0.01}, {"discarded": 1}, {"criterion": "fit>60"}, {"beta": 0.5}]
)
def test_test_data_that_were_opened_are_spent(bare, copied, records, other):
    run = copied(bare)
    generalise(run, records[2:12], criterion="rmse<1")
    before = files_of(run)
    with pytest.raises(InputError, match=r"opened for another list .* spent"):
        generalise(run, **{"criterion": "rmse<1", **other})
    assert files_of(run) == before


def test_a_criterion_may_come_later_once_and_the_certificate_says_so(tested, copied, records):
    run = copied(tested)
    known = RunFolder(run).generalisation
    assert (known.settled, known.late, known.episodes) == (Questions(), False, 10)
    second = generalise(run, criterion="rmse<1")
    assert second.late
    assert any("named when the test data had been opened" in sentence for sentence in second.not_stated)
    assert second.limit() == known.limit()
    assert generalise(run, criterion="rmse<1") == generalise(run) == second
    with pytest.raises(InputError, match="spent"):
        generalise(run, criterion="rmse<0.9")
    with pytest.raises(RunError, match=r"another plan \(other criterion\)"):
        identify(*records[:2], test=records[2:12], criterion="rmse<2", **SMALL, run=run)
    again = identify(*records[:2], test=records[2:12], **SMALL, run=run)
    assert again.generalisation == second, "what is there stays"


def test_a_certificate_that_is_gone_does_not_make_a_criterion_early(tested, copied):
    run = copied(tested)
    (run / "generalisation.json").unlink()
    assert generalise(run, criterion="rmse<1").late


def test_that_a_criterion_came_late_cannot_be_hidden(tested, copied):
    run = copied(tested)
    honest = generalise(run, criterion="rmse<1")
    write_json(run / "generalisation.json", replace(honest, late=False).to_dict())
    with pytest.raises(DamagedFile, match=r"late: a criterion that is not in plan\.json was named when"):
        _ = RunFolder(run).generalisation
    assert "generalisation.json, late" in [finding.part for finding in audit(run, sample=0).findings]


def test_a_criterion_settled_in_identify_is_not_late(records, tmp_path):
    run = tmp_path / "run"
    result = identify(*records[:2], test=records[2:6], criterion="fit>50", **SMALL, run=run)
    assert str(result.generalisation.settled.criterion) == "fit>50"
    assert not result.generalisation.late
    assert RunFolder(run).generalisation == result.generalisation
    assert result.episodes == result.generalisation.limit("committee"), "of the delivered model"
    assert result.optimism is result.generalisation.optimism
    assert generalise(run) == result.generalisation
    (run / "generalisation.json").unlink()
    assert generalise(run, criterion="fit>50") == result.generalisation, "the plan knows it"


def test_new_data_are_taken_once(tested, copied, records):
    run = copied(tested)
    second = generalise(run, records[12:], criterion="fit>50")
    assert (second.episodes, second.earlier, second.late) == (14, 10, False)
    assert any("10 other test records" in sentence for sentence in second.not_stated)
    assert RunFolder(run).generalisation == generalise(run, criterion="fit>50") == second
    for other in (records[2:12], records[13:]):
        with pytest.raises(InputError, match="until the outcome is pleasing"):
            generalise(run, other)
    result = identify(*records[:2], test=records[2:12], **SMALL, run=run)
    assert result.generalisation.episodes == 10, "that of the data given here"
    assert RunFolder(run).generalisation == second, "and the folder keeps its own"


@pytest.mark.parametrize(
    "used", [lambda r: [r[0]], lambda r: [r[1].part(50, 250)], lambda r: [r[12], r[0].part(0, 100)]]
)
def test_data_that_something_was_chosen_by_are_refused(tested, copied, records, used):
    run = copied(tested)
    with pytest.raises(DataError, match=r"is among the (training|validation) data"):
        generalise(run, used(records))


def test_blocks_of_one_record(bare, copied, records):
    run = copied(bare)
    [long] = ph_experiment(samples=(2000,), seed=5, period=30)
    second = generalise(run, long, blocks=10, gap=50, mixing=1e-3)
    length = (2000 - 9 * 50) // 10
    model = RunFolder(run).network
    parts = [long.part(i * (length + 50), i * (length + 50) + length) for i in range(10)]
    errors = [float(rmse(part.y[40:], model.simulate(part).y)) for part in parts]
    assert second.seen["model"].rmse == pytest.approx(errors, rel=1e-9)
    assert second.limit().total_beta == pytest.approx(0.05 + 9e-3)
    assert "mixing coefficient over the gaps is at most 0.001" in dict(second.words)["assumption"]


def test_bands_for_sure(bare, copied, records):
    run, test = copied(bare), records[2:]
    second = generalise(run, test, sure_band=True, window=25)
    kinds = [one.kind for one in second.statements["model"]]
    assert kinds == ["error limit", "conformal band", "coverage band", "coverage band"]
    *_, whole, window = second.statements["model"]
    model = RunFolder(run).network
    errors = [np.abs(record.y[40:] - model.simulate(record).y)[:, 0] for record in test]
    assert whole.widths == pytest.approx((max(map(max, errors)),), rel=1e-9)
    assert window.widths == pytest.approx((max(max(each[-25:]) for each in errors),), rel=1e-9)
    assert window.epsilon == whole.epsilon == second.limit().epsilon
    assert second.confident == 6, "each is one more promise"
    assert second.together == 0.3
    assert "stationary after their start" in dict(second.words)["assumption"]
    assert any(sentence.startswith("A band without a confidence holds on average") for sentence in second.not_stated)
    assert RunFolder(run).generalisation == second
    assert audit(run, sample=0, seed=0).passed
    with pytest.raises(InputError, match="so they are spent"):
        generalise(run, test, sure_band=True)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"window": 0}, "window"),
        ({"window": 2000}, "does not fit into the shortest test episode"),
        ({"blocks": 10}, "three numbers"),
        ({"blocks": 10, "gap": 50}, "mixing coefficient"),
        ({"blocks": 10, "gap": 10, "mixing": 0.0}, "at least the washout of 40"),
        ({"blocks": 100, "gap": 50, "mixing": 0.0}, "take fewer blocks"),
        ({"blocks": 1, "gap": 50, "mixing": 0.0}, "blocks"),
        ({"blocks": 10, "gap": 50, "mixing": 0.2}, "no confidence"),
        ({"blocks": 10, "gap": 50, "mixing": 2.0}, "between 0 and 1"),
        ({"criterion": "fit<80"}, "write fit>80"),
        ({"criterion": "speed>3"}, "unknown score 'speed'"),
        ({"criterion": "good"}, "criterion is a score"),
        ({"beta": 0.0}, "beta"),
        ({"discarded": -1}, "discarded"),
        ({"discarded": 1}, "keep at least one"),
    ],
)
def test_bad_arguments_leave_nothing_behind(bare, copied, options, expected):
    run = copied(bare)
    before = files_of(run)
    [long] = ph_experiment(samples=(2000,), seed=5, period=30)
    with pytest.raises(InputError, match=expected):
        generalise(run, long, **options)
    assert files_of(run) == before
    assert len(generalise(run, long).words) > 3, "the data are not spent"


def test_bad_data(bare, copied, records, tmp_path):
    run = copied(bare)
    with pytest.raises(InputError, match="has no test data"):
        generalise(run)
    with pytest.raises(InputError, match="blocks are cut from one long record"):
        generalise(run, records[2:4], blocks=2, gap=50, mixing=0.0)
    with pytest.raises(DataError, match="must have the same channels"):
        generalise(run, Record(u=np.zeros(90), y=np.arange(90.0), sampling_time=10.0))
    with pytest.raises(DataError, match="the same sampling time"):
        generalise(run, replace(records[2], sampling_time=5.0))
    with pytest.raises(DataError, match="washout=40 must be shorter"):
        generalise(run, records[2].part(0, 40))
    for again in ([records[2], records[3], records[2]], [records[2], replace(records[2], name="another")]):
        with pytest.raises(DataError, match="the same data: give each episode once"):
            generalise(run, again)
        with pytest.raises(DataError, match="the same data"):
            identify(*records[:2], test=again, **SMALL)
    with pytest.raises(DataError, match="in which it varies"):
        generalise(run, replace(records[2], y=np.ones((120, 1))))
    with pytest.raises(RunError, match="not a run folder"):
        generalise(tmp_path / "nothing", records[2])
    with pytest.raises(InputError, match="give test data, or leave it out"):
        identify(*records[:2], criterion="fit>50", **SMALL)
    assert not (run / "generalisation.json").exists()
    assert not (run / "test.npz").exists()


def test_a_score_that_nobody_registered_can_pick_without_a_folder(records):
    peak = Score("greatest", lambda y, yhat: abs(y - yhat).max(), "min")
    result = identify(*records[:2], test=records[2:4], scores=[peak], **SMALL)
    assert result.optimism.score == "greatest"


def test_what_was_changed_is_refused_when_the_folder_is_opened(bare, copied, records):
    run = copied(bare)
    generalise(run, records[2:12])
    content = json.loads((run / "generalisation.json").read_text())
    write_json(run / "generalisation.json", {**content, "together": 0.01})
    with pytest.raises(DamagedFile, match="together"):
        _ = RunFolder(run).generalisation
    write_json(run / "generalisation.json", content)
    Experiments((), (), records[3:13]).save(run / "test.npz")
    with pytest.raises(DamagedFile, match=r"test\.npz"):
        _ = RunFolder(run).generalisation
    (run / "test.npz").unlink()
    with pytest.raises(EchoboundError, match=r"test\.npz is missing"):
        generalise(run)


def test_a_certificate_of_another_run_is_refused(bare, tested, copied):
    run = copied(bare)
    shutil.copy(tested / "generalisation.json", run)
    with pytest.raises(EchoboundError, match=r"test\.npz is missing"):
        _ = RunFolder(run).generalisation


def test_a_killed_writer_leaves_test_data_that_nothing_speaks_of(bare, copied, records):
    run = copied(bare)
    Experiments((), (), records[3:5]).save(run / "test.npz")
    assert RunFolder(run).generalisation is None
    assert generalise(run, records[2:12]).episodes == 10
    assert len(RunFolder(run).tested(RunFolder(run).generalisation)) == 10


def test_several_outputs_share_a_band_by_how_much_they_move(mimo_records, tmp_path):
    training, validation = mimo_records
    result = identify(training, validation[0], test=validation[1], **SMALL)
    second = result.generalisation
    deviation = np.concatenate([record.y for record in training]).std(axis=0)
    assert second.scales == pytest.approx(deviation.tolist())
    peaks = np.array(second.seen["model"].peaks[0])
    widths = np.array(second.band().widths)
    assert widths == pytest.approx(deviation * (peaks / deviation).max())
    assert (widths >= peaks * (1 - 1e-12)).all()


# How often it is wrong, with a real model -------------------------------------------------------------------------

REPETITIONS, EPISODES, FRESH = 200, 20, 3000


def plant(rng, gain, samples=24):
    """A cheap plant whose gain changes from one experiment to the next."""
    u, y = rng.choice([-1.0, 1.0], samples), np.zeros(samples)
    for k in range(1, samples):
        y[k] = 0.6 * y[k - 1] + gain * u[k - 1]
    return Record(u=u, y=y + 0.01 * rng.normal(size=samples))


@pytest.fixture(scope="module")
def linear():
    """A model of the plant at one gain, and its errors in many fresh episodes."""
    rng = np.random.default_rng(0)
    training, validation = plant(rng, 0.4, 400), plant(rng, 0.4, 200)
    law = {"law": "paper", "order": 4, "networks": 20, "beta": 1e-2, "washout": 8, "committee": 0}
    model = identify(training, validation, **law).network
    fresh = errors_of(model, training, [plant(rng, rng.uniform(0.2, 0.6)) for _ in range(FRESH)])
    return model, training, np.array(fresh.seen["model"].rmse)


def errors_of(model, training, test):
    return generalisation_of({"model": model}, [training], test, settle_questions(), score="fit", picked=90.0)


def missed(linear, draw, seed):
    """In how many of the repetitions a new episode exceeds the limit more often than stated."""
    model, training, fresh = linear
    rng, count = np.random.default_rng(seed), 0
    for _ in range(REPETITIONS):
        limit = errors_of(model, training, draw(rng)).limit()
        count += (fresh > limit.limit).mean() > limit.epsilon
    return count


def improbable(count):
    return stats.binom(REPETITIONS, 0.05).sf(count - 1) < 1e-3


def test_limits_from_independent_episodes_miss_no_more_often_than_promised(linear):
    assert not improbable(missed(linear, lambda rng: [plant(rng, rng.uniform(0.2, 0.6)) for _ in range(EPISODES)], 1))


def test_blocks_of_one_experiment_taken_for_independent_are_rejected(linear):
    def blocks(rng):  # all at the gain of the one experiment they are cut from
        record = plant(rng, rng.uniform(0.2, 0.6), 24 * EPISODES)
        return [record.part(24 * i, 24 * (i + 1)) for i in range(EPISODES)]

    assert improbable(missed(linear, blocks, 2))


def test_validation_data_taken_for_test_data_are_rejected(linear):
    assert improbable(missed(linear, lambda rng: [plant(rng, 0.4) for _ in range(EPISODES)], 3))


def test_blocks_of_a_record_that_repeats_itself_are_no_episodes():
    """A gap does not help there: they counted as independent of each other."""
    rng = np.random.default_rng(0)
    cut = Questions(blocks=3, gap=50, mixing=1e-3)
    u, y = rng.normal(size=(2, 1050))
    assert len(episodes_of([Record(u=u, y=y)], cut, washout=20)) == 3
    again = np.resize(np.stack([u[:350], y[:350]]).T, (1050, 2))
    with pytest.raises(DataError, match="they are not independent episodes"):
        episodes_of([Record(u=again[:, 0], y=again[:, 1])], cut, washout=20)
