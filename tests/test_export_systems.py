"""Exports as their tools use them: the step graph in onnxruntime and do-mpc, CasADi's derivatives, python-control."""

import sys

import model_zoo
import numpy as np
import pytest

from echobound.errors import InputError, MissingExtra
from echobound.export import TARGETS, export_model
from echobound.export.st_translation import FunctionBlock
from echobound.network import Stepper, linearise, operating_point

ZOO = model_zoo.zoo()
NAMES = ("all features", "late readout", "even committee", "cascade, clipped")


def states_of(stepper, state):
    names = ["state"] if len(stepper.parts) == 1 else [f"state_{i + 1}" for i in range(len(stepper.parts))]
    return {name: state[part][None] for name, part in zip(names, stepper.parts, strict=True)}


def reached(stepper, model):
    """A state on the way, and the next input."""
    u = model_zoo.excitation(model, 30)
    state = stepper.start(u[0])
    for now in u:
        state = stepper.advance(state, now)
    return state, u[-1] + 0.1


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", NAMES)
def test_the_step_graph_in_onnxruntime_and_do_mpc(name, tmp_path):
    onnx, onnxruntime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    sysid = pytest.importorskip("do_mpc.sysid")
    model, stepper = ZOO[name], Stepper(ZOO[name])
    export_model(model, tmp_path / "m.onnx", "onnx")
    state, u = reached(stepper, model)
    measured = stepper.output(state, u) + 0.1
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    graph = onnx.load(tmp_path / "m.onnx")
    onnx.checker.check_model(graph, full_check=True)
    for follow in (0.0, 1.0):
        after, y = stepper.step(state, u, measured if follow else None)
        feeds = states_of(stepper, state) | {"u": u[None], "measured": measured[None], "follow": np.array([[follow]])}
        *nexts, out = session.run(None, feeds)
        np.testing.assert_allclose(np.concatenate(nexts, axis=1)[0], after, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(out[0], y, rtol=1e-12)
        converter = sysid.ONNXConversion(graph)
        converter.convert(**feeds)
        np.testing.assert_allclose(np.asarray(converter["y"]).ravel(), y, rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_casadi_derivatives_are_those_of_the_step(name):
    casadi = pytest.importorskip("casadi")
    from echobound.export.casadi import casadi_functions

    model, stepper = ZOO[name], Stepper(ZOO[name])
    step = casadi_functions(stepper)["step"]
    s, u = casadi.MX.sym("s", stepper.states), casadi.MX.sym("u", stepper.inputs)
    after, y = step(s, u)
    slopes = casadi.Function("d", [s, u], [casadi.jacobian(a, b) for a in (after, y) for b in (s, u)])
    state, now = reached(stepper, model)
    want = stepper.jacobians(state, now)
    for found, known in zip(slopes(state, now), (want.A, want.B, want.C, want.D), strict=True):
        np.testing.assert_allclose(found.full(), known, atol=1e-12)
    if name == "late readout":
        assert step.sparsity_in(0).nnz() == stepper.states
        assert slopes.sparsity_out(0).nnz() < stepper.states**2


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_do_mpc_model_simulates_as_the_model():
    do_mpc = pytest.importorskip("do_mpc")
    from echobound.export.casadi import do_mpc_model

    model = ZOO["even committee"]
    plant = do_mpc_model(model)
    simulator = do_mpc.simulator.Simulator(plant)
    simulator.set_param(t_step=model.sampling_time)
    simulator.setup()
    u = model_zoo.excitation(model, 20)
    simulator.x0 = Stepper(model).start(u[0])
    simulator.set_initial_guess()
    for now in u:
        simulator.make_step(now[:, None])
    got = simulator.data["_aux", "y_1"].ravel()
    np.testing.assert_allclose(got, model.simulate(u).y.ravel(), rtol=1e-12)


def test_python_control_simulates_and_linearises_as_we_do():
    control = pytest.importorskip("control")
    from echobound.export.control import control_linear, control_system

    model = ZOO["leak spread"]
    system, u = control_system(model), model_zoo.excitation(model, 50)
    times = model.sampling_time * np.arange(50)
    response = control.input_output_response(system, times, u.T, Stepper(model).start(u[0]))
    np.testing.assert_allclose(response.outputs, model.simulate(u).y.ravel(), rtol=1e-9)
    point = operating_point(model, u=u[0])
    ours, theirs = control_linear(linearise(model, point)), system.linearize(point.state, point.u)
    np.testing.assert_allclose(ours.A, theirs.A, atol=1e-5)
    np.testing.assert_allclose(ours.B, theirs.B, atol=1e-5)
    np.testing.assert_allclose(np.sort(abs(ours.poles())), np.sort(abs(linearise(model, point).poles)), atol=1e-10)
    assert ours.dt == 0.5


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("FUNCTION_BLOCK m\nEND_FUNCTION_BLOCK", "declarations and a body"),
        ("FUNCTION_BLOCK m\nVAR\nx : LREAL;\nEND_VAR\nimport os\nEND_FUNCTION_BLOCK", "not a statement"),
        ("FUNCTION_BLOCK m\nVAR\nx : LREAL;\nEND_VAR\nx := 'a';\nEND_FUNCTION_BLOCK", "not an expression"),
        ("FUNCTION_BLOCK m\nVAR\nx : ARRAY[0..1] OF LREAL := [1.0];\nEND_VAR\nEND_FUNCTION_BLOCK", "1 numbers, not 2"),
        ("FUNCTION_BLOCK m\nVAR\nx : ARRAY[0..0] OF LREAL := [a];\nEND_VAR\nEND_FUNCTION_BLOCK", "'a' where a number"),
    ],
)
def test_a_function_block_that_is_not_ours_is_refused(text, why):
    with pytest.raises(InputError, match=why):
        FunctionBlock(text)


def test_structured_text_with_a_changed_number_differs(tmp_path):
    exported = export_model(ZOO["plain"], tmp_path / "m.st", "st")
    text = (tmp_path / "m.st").read_text()
    assert exported.check(samples=40).largest_difference < 1e-12
    (tmp_path / "m.st").write_text(text.replace("acc := acc + M0_CV[j]", "acc := acc - M0_CV[j]"))
    assert exported.check(samples=40).largest_difference > 0.1


def test_structured_text_is_read_by_somebody_elses_parser(tmp_path):
    """No compiler can be had; blark has a grammar of its own, after TwinCAT. A small model, since it takes its time."""
    parse = pytest.importorskip("blark.parse").parse_source_code
    export_model(model_zoo.network(order=1, nonzeros=1, clip=True), tmp_path / "m.st", "st")
    text = (tmp_path / "m.st").read_text()
    read = parse(text)
    assert read.exception is None
    [block] = read.transform().items
    assert (type(block).__name__, str(block.name)) == ("FunctionBlock", "m")
    assert parse(text.replace("END_FOR;", "END_WHILE;", 1)).exception is not None


@pytest.mark.parametrize("target", ["onnx", "casadi"])
def test_a_missing_package_is_said_with_its_remedy(target, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, target, None)
    with pytest.raises(MissingExtra, match="pip install 'echobound\\[export\\]'"):
        export_model(ZOO["plain"], tmp_path / "deeper" / f"m{TARGETS[target].suffix}", target)
    assert not list(tmp_path.iterdir())


def test_python_control_is_needed_to_run_a_script_and_not_to_write_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "control", None)
    exported = export_model(ZOO["plain"], tmp_path / "m.py", "control")
    for needs in (exported.check, exported.target.require_runner):
        with pytest.raises(MissingExtra, match="pip install 'echobound\\[export\\]'"):
            needs()


def test_a_do_mpc_model_needs_do_mpc(monkeypatch):
    from echobound.export.casadi import do_mpc_model

    monkeypatch.setitem(sys.modules, "do_mpc", None)
    with pytest.raises(MissingExtra, match="pip install 'echobound\\[mpc\\]'"):
        do_mpc_model(ZOO["plain"])
