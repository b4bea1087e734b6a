import dataclasses
import json

import numpy as np
import pytest

from echobound.errors import DamagedFile, DataError, InputError, RunError
from echobound.files import write_npz
from echobound.kernels import get_kernel, hold_out
from echobound.kernels.training import train_network
from echobound.network import EchoStateNetwork, broad, paper
from echobound.scores import fit, get_score

SCORES = [get_score("fit")]


def trained(records, law, index=0, washout=60):
    problem = hold_out(*records, law=law, scores=SCORES, washout=washout)
    model, [simulated] = train_network(get_kernel("reference"), problem, index)
    return model, simulated


@pytest.fixture(scope="module", params=["paper", "broad"])
def model(request, ph_records):
    return trained(ph_records, paper(20) if request.param == "paper" else broad(order=30), index=1)


def test_simulating_the_validation_record_gives_its_row(model, ph_records):
    network, simulated = model
    run = network.simulate(ph_records[1])
    assert run.first == 60
    assert np.allclose(run.y, simulated, rtol=1e-9)
    assert "60 samples with measured outputs" in run.start


def test_save_and_load_give_the_same_bits(model, ph_records, tmp_path):
    network, _ = model
    path = tmp_path / "model.npz"
    network.save(path)
    again = EchoStateNetwork.load(path)
    assert again.digest == network.digest
    assert (again.simulate(ph_records[1]).y == network.simulate(ph_records[1]).y).all()
    assert again.origin == json.loads(json.dumps(dict(network.origin)))
    assert list(tmp_path.iterdir()) == [path]


def test_given_initial_outputs(model, ph_records):
    network, _ = model
    validation = ph_records[1]
    given = network.simulate(validation.u, initial=validation.y[:60])
    assert (given.y == network.simulate(validation).y).all()
    assert "60 given initial outputs" in given.start
    few = network.simulate(validation.u, initial=validation.y[:3])
    assert (few.first, len(few.y)) == (3, len(validation) - 3)


def test_without_outputs_it_starts_from_the_training_mean(model, ph_records):
    network, _ = model
    run = network.simulate(ph_records[1].u)
    assert (run.first, len(run.y)) == (0, len(ph_records[1]))
    assert "training mean" in run.start
    assert network.training_mean == pytest.approx(ph_records[0].y.mean(axis=0))
    # The start is forgotten: later it is the same as after a washout.
    assert np.abs(run.y[-50:] - network.simulate(ph_records[1]).y[-50:]).max() < 0.05


def test_prediction_beats_or_equals_free_run_shortly_ahead(model, ph_records):
    network, _ = model
    validation = ph_records[1]
    near = network.predict(validation, horizon=1)
    assert fit(validation.y[60:], near.y) > 60
    assert near.start == "prediction 1 samples ahead"
    with pytest.raises(InputError, match="horizon"):
        network.predict(validation, horizon=0)


def test_stability_is_by_exact_svd(model):
    network, _ = model
    assert network.stability.norm == pytest.approx(np.linalg.svd(network.reservoir.W_x)[1][0], rel=1e-12)
    assert network.stability.contracts


def test_wrong_shapes_are_refused(model, ph_records):
    network, _ = model
    with pytest.raises(DataError, match=r"1 inputs \(q3\)"):
        network.simulate(np.zeros((10, 3)))
    with pytest.raises(DataError, match="sample 5"):
        network.simulate(np.array([1.0, 1, 1, 1, np.nan]))
    with pytest.raises(DataError, match="washout"):
        network.simulate(ph_records[1], washout=10_000)
    with pytest.raises(DataError, match="nothing to simulate"):
        network.simulate(ph_records[1].u[:5], initial=ph_records[1].y[:5])


def test_damaged_files_are_refused(model, tmp_path):
    network, _ = model
    path = tmp_path / "model.npz"
    network.save(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "flipped.npz").write_bytes(content)
    with pytest.raises(DamagedFile):
        EchoStateNetwork.load(tmp_path / "flipped.npz")
    (tmp_path / "cut.npz").write_bytes(path.read_bytes()[:-200])
    with pytest.raises(DamagedFile):
        EchoStateNetwork.load(tmp_path / "cut.npz")
    (tmp_path / "text.npz").write_text("not a model")
    with pytest.raises(DamagedFile):
        EchoStateNetwork.load(tmp_path / "text.npz")
    with pytest.raises(RunError, match="missing"):
        EchoStateNetwork.load(tmp_path / "none.npz")


def test_consistent_but_wrong_content_is_refused(model, tmp_path):
    # Whoever writes a file with a right digest must still write a network.
    network, _ = model
    header, arrays = network.content()
    path = tmp_path / "model.npz"
    for name, change in {
        "readout": arrays["readout"][:, :-1],
        "columns": arrays["columns"] + 10_000,
        "W_u": arrays["W_u"][:-1],
    }.items():
        write_npz(path, header, arrays | {name: change})
        with pytest.raises(DamagedFile, match=name):
            EchoStateNetwork.load(path)
    write_npz(path, header | {"format": 99}, arrays)
    with pytest.raises(DamagedFile, match="format 99"):
        EchoStateNetwork.load(path)
    write_npz(path, {k: v for k, v in header.items() if k != "hyper"}, arrays)
    with pytest.raises(DamagedFile, match="header"):
        EchoStateNetwork.load(path)


def test_every_part_counts_in_the_digest(model):
    network, _ = model
    for name in ("washout", "padding", "sampling_time"):
        other = dataclasses.replace(network, **{name: getattr(network, name) + 1})
        assert other.digest != network.digest
    assert dataclasses.replace(network, readout=network.readout * (1 + 1e-15)).digest != network.digest


# ---------------------------------------------------------------- limits


@pytest.fixture(scope="module")
def clipped(ph_records):
    law = dataclasses.replace(paper(12), clip=True, output_delays=1)
    problem = hold_out(*ph_records, law=law, scores=[get_score("fit")], washout=60)
    return train_network(get_kernel("reference"), problem, 0)[0]


def test_a_file_from_before_there_were_limits_is_read_and_runs_as_it_did(clipped, ph_records, tmp_path):
    law = dataclasses.replace(paper(12), output_delays=1)
    problem = hold_out(*ph_records, law=law, scores=[get_score("fit")], washout=60)
    model, _ = train_network(get_kernel("reference"), problem, 0)
    header, arrays = model.content()
    assert not [name for name in arrays if name.startswith("limits.")], "files without limits are as before"
    assert "clip" not in header["origin"]["law"]
    model.save(tmp_path / "old.npz")
    old = EchoStateNetwork.load(tmp_path / "old.npz")
    assert (old.limits, old.bound) == (None, None)
    record = ph_records[1]
    assert (old.simulate(record).y == model.simulate(record).y).all()
    assert (clipped.readout == old.readout).all(), "limits change the runs, not the training"
    assert (dataclasses.replace(clipped, limits=None).simulate(record).y == old.simulate(record).y).all()


def test_limits_are_saved_and_bound_the_outputs(clipped, ph_records, tmp_path):
    clipped.save(tmp_path / "model.npz")
    loaded = EchoStateNetwork.load(tmp_path / "model.npz")
    assert loaded.digest == clipped.digest
    for name in ("low", "high", "share"):
        assert (getattr(loaded.limits, name) == getattr(clipped.limits, name)).all()
    y = ph_records[0].y
    assert loaded.bound == pytest.approx(np.array([[y.min() - 0.25 * np.ptp(y), y.max() + 0.25 * np.ptp(y)]]))


@pytest.mark.parametrize("broken", [np.array([np.nan]), np.array([np.inf]), np.zeros(2)])
@pytest.mark.parametrize("name", ["limits.low", "limits.high", "limits.share"])
def test_damaged_limits_are_refused(clipped, name, broken, tmp_path):
    header, arrays = clipped.content()
    with pytest.raises(DamagedFile, match=f"array {name}"):
        EchoStateNetwork.from_content(header, {**arrays, name: broken}, tmp_path / "model.npz")
    without = {key: array for key, array in arrays.items() if key != name}
    with pytest.raises(DamagedFile, match="not a complete model"):
        EchoStateNetwork.from_content(header, without, tmp_path / "model.npz")


def test_limits_the_wrong_way_round_are_refused(clipped, tmp_path):
    header, arrays = clipped.content()
    swapped = {**arrays, "limits.low": arrays["limits.high"], "limits.high": arrays["limits.low"]}
    with pytest.raises(DamagedFile, match="below the upper"):
        EchoStateNetwork.from_content(header, swapped, tmp_path / "model.npz")
