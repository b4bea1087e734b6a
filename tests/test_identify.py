import dataclasses
import hashlib
import itertools
import json
import sqlite3
import warnings

import numpy as np
import pytest

from echobound.data import Record
from echobound.data.scaling import Scaling
from echobound.errors import DamagedFile, DataError, InputError, RunError
from echobound.identify import identify
from echobound.kernels import get_kernel, hold_out
from echobound.network import Committee, EchoStateNetwork, ReservoirLaw, paper
from echobound.plants import ph_experiment
from echobound.runs.folder import RunFolder
from echobound.scores import Score, fit, get_score, register_score, rmse
from echobound.verify import verify

SMALL = {"law": "paper", "order": 15, "epsilon": 0.2, "beta": 1e-3, "washout": 60}


@pytest.fixture(scope="module")
def run(ph_records, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "ph"
    result = identify(*ph_records, **SMALL, run=folder)
    return folder, result


def test_the_best_network_is_picked_and_certified(run, ph_records):
    _, result = run
    scores = result.table["scores"][:, 0]
    assert len(result.table) == 31  # smallest N with 0.8**N <= 1e-3
    certificate = result.certificate
    assert certificate.winner == int(np.argmax(scores))
    assert certificate.threshold == scores.max() == result.network_scores["validation"]["fit"]
    assert certificate.worst.threshold == scores.min()
    assert certificate.networks == 31
    simulated = result.network.simulate(ph_records[1])
    assert fit(ph_records[1].y[60:], simulated.y) == pytest.approx(scores.max(), rel=1e-9)


def test_the_committee_is_delivered_and_scored(run, ph_records):
    _, result = run
    assert (result.delivered, result.model) == ("committee", result.committee)
    assert "median of 10 of the best networks" in result.reason
    simulated = result.model.simulate(ph_records[1])
    scored = result.scores["validation"]["fit"]
    assert scored == result.committee_scores["validation"]["fit"] != result.network_scores["validation"]["fit"]
    assert fit(ph_records[1].y[60:], simulated.y) == pytest.approx(scored, rel=1e-9)


def test_the_run_folder_is_complete(run):
    folder, result = run
    names = {path.name for path in folder.iterdir()}
    models = {"model.npz", "network.npz"}
    assert (
        names
        == {"plan.json", "data.npz", "ledger.sqlite", "certificate.json", "assessment.json", "report.html"} | models
    )
    opened = RunFolder(folder)
    assert opened.certificate == result.certificate
    assert opened.model.digest == result.model.digest
    assert opened.model.digest == opened.committee.digest == result.certificate.digests["committee"]
    assert opened.network.digest == result.network.digest == result.certificate.digests["model"]
    assert (opened.search["scores"] == result.table["scores"]).all()
    assert Committee.load(folder / "model.npz").digest == result.committee.digest
    assert EchoStateNetwork.load(folder / "network.npz").digest == result.network.digest


def test_the_same_plan_is_resumed_without_drawing_again(run, ph_records):
    folder, result = run
    before = RunFolder(folder).search
    seen = []
    again = identify(*ph_records, **SMALL, run=folder, on_progress=seen.append)
    assert again.certificate == result.certificate
    assert seen[-1].fresh == 0
    assert (RunFolder(folder).search == before).all(), "to the second each network took"


def test_another_plan_is_refused_and_nothing_is_changed(run, ph_records):
    folder, _ = run
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(RunError, match=r"another plan \(other seed\)"):
        identify(*ph_records, **SMALL, seed=1, run=folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_folder_with_something_else_in_it_is_refused(ph_records, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(RunError, match="not empty"):
        identify(*ph_records, **SMALL, run=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_an_interrupted_run_ends_as_one_never_interrupted(run, ph_records, tmp_path):
    class Stop(Exception):
        pass

    def stop(event):
        if event.fresh >= 4:
            raise Stop

    for _ in range(3):
        with pytest.raises(Stop):
            identify(*ph_records, **SMALL, run=tmp_path / "r", on_progress=stop)
    assert not (tmp_path / "r" / "certificate.json").exists()
    result = identify(*ph_records, **SMALL, run=tmp_path / "r")
    assert result.certificate == run[1].certificate


def test_workers_and_memory_make_no_difference(run, ph_records):
    for workers in (1, 2):
        result = identify(*ph_records, **SMALL, workers=workers)
        assert result.certificate == run[1].certificate
        assert result.run is None


def test_run_folder_named_by_its_plan(ph_records, tmp_path):
    result = identify(*ph_records, **SMALL, run=tmp_path / "ph-{plan}")
    assert result.run.name == f"ph-{result.certificate.digests['plan'][:8]}"


def test_with_no_blocks_the_last_quarter_is_held_out(ph_records):
    training = ph_records[0]
    result = identify(training, **SMALL, blocks=0)
    assert result.certificate.blocks is None
    cut = len(training) * 3 // 4
    by_hand = identify(training.part(0, cut), training.part(cut, len(training)), **SMALL)
    assert result.certificate.threshold == by_hand.certificate.threshold


def test_test_data_are_scored_at_the_end(ph_records):
    training, validation = ph_records
    with pytest.raises(DataError, match="50 samples in common"):  # the washout of test data was trained on, too
        identify(training.part(0, 500), validation, test=training.part(450, 700), **SMALL)
    result = identify(training.part(0, 500), validation, test=training.part(500, 700), **SMALL)
    simulated = result.model.simulate(training.part(500, 700))
    assert result.scores["test"]["fit"] == pytest.approx(fit(training.y[560:700], simulated.y), rel=1e-9)
    assert set(result.scores["test"]["per_output"]) == {"pH"}


def test_any_score_selects(ph_records):
    peak = Score("peak", lambda y, yhat: np.abs(y - yhat).max(), "min", "pH")
    result = identify(*ph_records, **SMALL, scores=[peak, "fit"])
    assert result.certificate.winner == int(np.argmin(result.table["scores"][:, 0]))
    assert result.certificate.direction == "min"


def test_all_networks_diverging_ends_with_a_statement(tmp_path):
    k = np.arange(400)
    record = Record(u=np.sin(0.1 * k), y=np.exp(0.05 * k))
    long = Record(u=np.sin(0.1 * np.arange(90_000)), y=np.exp(0.05 * (np.arange(90_000) % 400)))
    law = ReservoirLaw(order=3, output_delays=1, norm=0.1, feedback_scale=0.0, input_scale=0.01)
    result = identify(record, long, law=law, epsilon=0.3, beta=0.05, washout=100, run=tmp_path / "r")
    assert result.model is None
    assert result.certificate.status == "all diverged"
    assert "diverged" in result.certificate.statement
    assert not (tmp_path / "r" / "model.npz").exists()
    assert (tmp_path / "r" / "report.html").exists()
    assert json.loads((tmp_path / "r" / "certificate.json").read_text())["threshold"] is None


def test_few_samples_warn_and_are_solved(ph_records):
    training, validation = ph_records  # four networks, all of them chaotic: the plan says that nobody need confirm them
    with pytest.warns(UserWarning, match="40 training samples are fewer than the 51 columns"):
        result = identify(
            training.part(0, 100), validation, law=paper(50), epsilon=0.5, beta=0.1, washout=60, confirm=0
        )
    assert len(result.table) == 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        identify(training, validation, law=paper(50), epsilon=0.5, beta=0.1, washout=60, confirm=0)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"washout": 700}, "washout=700"),
        ({"washout": -1}, "washout"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"beta": 1.0}, "beta"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"order": 0}, "order"),
        ({"law": "narrow"}, "narrow"),
        ({"scores": ["mae"]}, "mae"),
        ({"kernel": "tpu"}, "tpu"),
        ({"seed": -1}, "seed"),
        ({"horizon": 0}, "horizon"),
        ({"workers": 0}, "workers"),
        ({"networks": 3}, "31 are needed"),
        ({"seed": 10**23}, "seed"),
        ({"order": 1_000_000}, "GiB"),
        ({"epsilon": 1e-9, "beta": 1e-7}, "32 bits"),
        ({"washout": 10.5}, "whole number"),
        ({"committee": -1}, "committee"),
        ({"blocks": 4}, "validation data and 4 blocks"),
        ({"order": 2.5}, "whole number"),
        ({"scores": [Score("peak", lambda y, yhat: 0.0, "min")]}, "peak"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_bad_arguments_leave_nothing_behind(ph_records, change, match, tmp_path):
    with pytest.raises(InputError, match=match):
        identify(*ph_records, **(SMALL | change), run=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_constant_validation_output(ph_records):
    training, validation = ph_records
    flat = Record(
        u=validation.u, y=np.full_like(validation.y, 7.0), sampling_time=10, input_names=("q3",), output_names=("pH",)
    )
    with pytest.raises(DataError, match=r"pH.*FIT is undefined"):
        identify(training, flat, **SMALL)


def test_records_that_do_not_fit_together(ph_records):
    training, validation = ph_records
    other = Record(u=validation.u, y=validation.y, sampling_time=10.0)
    with pytest.raises(DataError, match="same channels"):
        identify(training, other, **SMALL)


def tampered(folder, name, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in folder.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    path = copy / name
    if name.endswith(".json"):
        content = json.loads(path.read_text())
        content["epsilon"] = 0.01
        path.write_text(json.dumps(content))
    elif name.endswith(".sqlite"):
        with sqlite3.connect(path) as db:
            db.execute("UPDATE rows SET score_0 = score_0 + 0.1 WHERE number = 3")
        db.close()
    else:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 8
        path.write_bytes(content)
    return copy


@pytest.mark.parametrize(
    "name", ["plan.json", "data.npz", "ledger.sqlite", "model.npz", "network.npz", "certificate.json"]
)
def test_tampering_is_refused_and_named(run, name, tmp_path):
    copy = RunFolder(tampered(run[0], name, tmp_path))
    with pytest.raises(DamagedFile, match=name):
        _ = copy.certificate, copy.experiments, copy.model, copy.network


def test_a_model_of_another_run_is_refused(run, ph_records, tmp_path):
    folder, _ = run
    other = identify(*ph_records, **SMALL, seed=9)
    copy = tampered(folder, "report.html", tmp_path)
    honest = (copy / "network.npz").read_bytes()
    other.network.save(copy / "network.npz")
    with pytest.raises(DamagedFile, match=r"network\.npz.*not the picked model that was certified"):
        _ = RunFolder(copy).network
    (copy / "network.npz").write_bytes(honest)
    other.committee.save(copy / "model.npz")
    with pytest.raises(DamagedFile, match=r"model\.npz.*not the committee that was certified"):
        _ = RunFolder(copy).model


def test_running_again_does_not_launder_a_tampered_ledger(run, ph_records, tmp_path):
    copy = tampered(run[0], "report.html", tmp_path)
    with sqlite3.connect(copy / "ledger.sqlite") as db:
        db.execute("UPDATE rows SET score_0 = 99.5 WHERE number = 7")
    db.close()
    with pytest.raises(DamagedFile, match="ledger"):
        identify(*ph_records, **SMALL, run=copy)
    (copy / "certificate.json").unlink()  # as if the run had been interrupted before it
    with pytest.raises(DamagedFile, match="row of the best network"):
        identify(*ph_records, **SMALL, run=copy)


def test_a_certificate_that_contradicts_its_plan_is_refused(run, tmp_path):
    for name, value in {"seed": 77, "beta": 1e-4, "law": {"name": "other"}, "score": "rmse", "blocks": 4}.items():
        (tmp_path / name).mkdir()
        copy = tampered(run[0], "report.html", tmp_path / name)
        content = json.loads((copy / "certificate.json").read_text()) | {name: value}
        identity = {k: v for k, v in content.items() if k not in ("digest", "provenance")}
        text = json.dumps(identity, sort_keys=True, separators=(",", ":"))
        content["digest"] = hashlib.sha256(text.encode()).hexdigest()
        (copy / "certificate.json").write_text(json.dumps(content))
        with pytest.raises(DamagedFile, match=rf"{name}(, \w+)?: .* follows, .* is stated"):
            _ = RunFolder(copy).certificate


def test_changed_or_missing_data_are_refused_with_the_certificate(run, tmp_path):
    copy = tampered(run[0], "data.npz", tmp_path)
    with pytest.raises(DamagedFile, match=r"data\.npz"):
        _ = RunFolder(copy).certificate
    (copy / "data.npz").unlink()
    with pytest.raises(RunError, match=r"data\.npz is missing"):
        _ = RunFolder(copy).certificate


def test_bad_test_data_are_found_before_the_first_draw(ph_records, tmp_path):
    training, validation = ph_records
    flat = dataclasses.replace(training, y=np.full_like(training.y, 7.0))
    for test, match in ((training.part(0, 50), "washout"), (flat, "FIT is undefined")):
        with pytest.raises(DataError, match=match):
            identify(training, validation, test=test, **SMALL, run=tmp_path / "run")
        assert not (tmp_path / "run").exists()


def test_a_prediction_is_scored_and_shown_as_one(ph_records, tmp_path):
    training, validation = ph_records
    [test] = ph_experiment(samples=(300,), seed=9)
    result = identify(training, validation, test=test, **SMALL, horizon=1, run=tmp_path / "run")
    assert "predicted 1 sample ahead" in result.certificate.statement
    assert result.certificate.threshold == result.network_scores["validation"]["fit"]
    page = (tmp_path / "run" / "report.html").read_text()
    assert f"{result.certificate.threshold:.2f} %" in page
    predicted = result.model.predict(test, 1)
    assert result.scores["test"]["fit"] == pytest.approx(fit(test.y[60:], predicted.y))
    assert RunFolder(tmp_path / "run").certificate == result.certificate


def test_a_registered_score_can_be_verified_and_shown(ph_records, tmp_path):
    largest = register_score(Score("largest error", lambda y, yhat: np.abs(y - yhat).max(), "min", "pH"))
    identify(*ph_records, **SMALL, scores=[largest, "fit"], run=tmp_path / "run")
    assert verify(tmp_path / "run", fresh=3)["fresh"] == 3


def test_words_hold_where_the_number_does(run):
    said = float(run[1].certificate.statement.split("above ")[1].split(" %")[0])
    assert run[1].certificate.threshold <= said
    said = float(run[1].certificate.worst.statement.split("below ")[1].split(" %")[0])
    assert said <= run[1].certificate.worst.threshold


def test_names_that_a_figure_could_choke_on(ph_records, tmp_path):
    names = ("$\\frac$",)
    training, validation = (Record(u=r.u, y=r.y, output_names=names, input_names=("流量",)) for r in ph_records)
    identify(training, validation, **SMALL, run=tmp_path / "run")
    assert (tmp_path / "run" / "report.html").exists()


def test_washout_zero(ph_records, tmp_path):
    result = identify(*ph_records, **(SMALL | {"washout": 0}), run=tmp_path / "run")
    assert len(result.model.simulate(ph_records[1]).y) == len(ph_records[1])


# ---------------------------------------------------------------- blocks in turn, and the committee


@pytest.fixture(scope="module")
def in_blocks(ph_records, tmp_path_factory):
    training, test = ph_records
    folder = tmp_path_factory.mktemp("runs") / "blocks"
    return identify(training, test=test, **(SMALL | {"washout": 40}), blocks=3, run=folder)


def test_blocks_score_the_mean_and_the_model_is_trained_on_all(in_blocks, ph_records):
    """By hand: three hold-outs of two pieces each, and one training on everything."""
    training, _ = ph_records
    cuts = [0, 233, 466, 700]
    by_hand = []
    for a, b in itertools.pairwise(cuts):
        kept = [training.part(i, j) for i, j in ((0, a), (b, 700)) if j - i > 40]
        by_hand.append(identify(kept, training.part(a, b), **(SMALL | {"washout": 40})).table["scores"][:, 0])
    scores = in_blocks.table["scores"][:, 0]
    assert scores == pytest.approx(np.mean(by_hand, axis=0), rel=1e-9)
    assert in_blocks.certificate.threshold == in_blocks.network_scores["validation"]["fit"] == scores.max()
    whole = hold_out(training, training, law=paper(15), scores=[get_score("fit")], washout=40)
    trial = get_kernel("reference").trial(whole, in_blocks.certificate.winner)
    assert in_blocks.network.readout == pytest.approx(trial.trained[0][0].readout, rel=1e-5)
    assert in_blocks.network.scaling.to_arrays() == Scaling.fit("minmax", training).to_arrays()
    assert in_blocks.network.training_mean == pytest.approx(training.y.mean(axis=0))


def test_the_certificate_of_blocks_says_what_was_scored_and_that_the_model_was_not(in_blocks):
    certificate = in_blocks.certificate
    assert certificate.blocks == 3
    assert "a mean FIT above" in certificate.statement
    assert "over 3 blocks of these training data" in certificate.statement
    assert any("this refitted model itself was never scored on held-out data" in s for s in certificate.not_stated)
    assert any("committee" in s for s in certificate.not_stated)
    opened = RunFolder(in_blocks.run)
    assert opened.certificate == certificate
    assert opened.plan.to_dict()["validation"] == "3 blocks in turn, then refit on all"
    assert not opened.experiments.validation


def test_a_run_in_blocks_can_be_verified_and_resumed(in_blocks, ph_records):
    assert verify(in_blocks.run, fresh=4)["fresh"] == 4
    page = (in_blocks.run / "report.html").read_text()
    assert f"{in_blocks.certificate.threshold:.2f} %" in page
    assert "The 3 blocks one after the other" in page
    training, test = ph_records
    again = identify(training, test=test, **(SMALL | {"washout": 40}), blocks=3, run=in_blocks.run)
    assert again.certificate == in_blocks.certificate


def test_the_committee_is_the_median_of_the_best_networks(in_blocks, ph_records):
    _, test = ph_records
    scores = in_blocks.table["scores"][:, 0]
    best = sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:10]
    members = in_blocks.committee.members
    assert [member.origin["index"] for member in members] == best
    assert members[0].digest == in_blocks.network.digest
    outputs = [member.simulate(test).y for member in members]
    expected = fit(test.y[40:], np.median(outputs, axis=0))
    assert in_blocks.committee_scores["test"]["fit"] == pytest.approx(expected, rel=1e-9)
    assert in_blocks.generalisation.limit("committee").epsilon == pytest.approx(0.95), "one test record says little"


def test_twenty_test_records_say_something_about_new_ones(ph_records):
    training, validation = ph_records
    test = ph_experiment(samples=[90] * 20, seed=9)
    result = identify(training, validation, test=test, **SMALL)
    largest = max(float(rmse(r.y[60:], result.committee.simulate(r).y)) for r in test)
    episodes = result.generalisation.limit("committee")
    assert (episodes.episodes, episodes.limit) == (20, pytest.approx(largest, rel=1e-9))
    assert episodes.epsilon == pytest.approx(1 - 0.05 ** (1 / 20), rel=1e-9)
    fewer = identify(training, validation, test=test[1:], **SMALL).generalisation.limit("committee")
    assert fewer.epsilon == pytest.approx(1 - 0.05 ** (1 / 19), rel=1e-9)


def test_no_committee_if_none_is_wanted(ph_records, tmp_path):
    result = identify(*ph_records, **SMALL, committee=0, run=tmp_path / "run")
    assert result.committee is result.committee_scores is RunFolder(tmp_path / "run").committee is None
    assert not (tmp_path / "run" / "committee.npz").exists()
    assert (result.delivered, result.model) == ("network", result.network)
    assert EchoStateNetwork.load(tmp_path / "run" / "model.npz").digest == result.network.digest
    assert not (tmp_path / "run" / "network.npz").exists()
    assert not any("committee" in sentence for sentence in result.certificate.not_stated)
