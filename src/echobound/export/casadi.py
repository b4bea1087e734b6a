"""CasADi: sparse, differentiable functions of a step and of its start; and a ready model for do-mpc."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from echobound.arrays import Signal
from echobound.errors import MissingExtra
from echobound.export.base import Job, Target
from echobound.export.card import identifier
from echobound.network import Stepper
from echobound.network.equations import Equations

FUNCTIONS = ("step", "follow", "start", "start_measured")


class CasadiTarget(Target):
    """Functions for optimal control, to be loaded by ``casadi.Function.load`` in any language that CasADi has."""

    name = "casadi"
    title = "CasADi functions: step, follow, start"
    suffix = ".casadi"
    leaves_out_diverged = False

    def make(self, job: Job, path: Path) -> dict[Path, bytes]:
        """The step, beside it ``NAME_follow``, ``NAME_start`` and ``NAME_start_measured``, and the card."""
        functions = casadi_functions(job.stepper, job.card.name)
        card = json.dumps({"lines": job.card.lines, **job.card.to_dict()}, indent=2, ensure_ascii=False)
        files = {_file(path, name): functions[name].serialize().encode() for name in FUNCTIONS}
        return files | {path.with_name(f"{path.stem}_card.json"): f"{card}\n".encode()}

    def run(self, job: Job, path: Path, u: Signal, initial: Signal | None) -> Signal:
        """Run the functions as they were written."""
        casadi = _casadi()
        step, follow, start, measured = (casadi.Function.deserialize(_file(path, n).read_text()) for n in FUNCTIONS)
        warm = 0 if initial is None else len(initial)
        state = start(u[0]) if initial is None else measured(u[0], initial[0])
        for k in range(warm):
            state, _ = follow(state, u[k], np.asarray(initial)[k])
        rows = []
        for now in u[warm:]:
            state, y = step(state, now)
            rows.append(y.full().ravel())
        return np.array(rows)


def _file(path: Path, function: str) -> Path:
    return path if function == "step" else path.with_name(f"{path.stem}_{function}{path.suffix}")


def _casadi() -> Any:
    try:
        import casadi
    except ImportError:
        raise MissingExtra("the export to CasADi", extra="export") from None
    return casadi


def casadi_functions(stepper: Stepper, name: str = "model") -> dict[str, Any]:
    """The step of a model as CasADi functions, in the data's units; the state is that of `Stepper`.

    ``step(state, u)`` and ``follow(state, u, measured)`` return the next state and y; ``start(u)`` and
    ``start_measured(u, measured)`` return the state before the first sample. An output at its limit has no derivative,
    and a median that of the member in the middle.

    Examples
    --------
    >>> from echobound import identify, ph_experiment
    >>> model = identify(*ph_experiment(samples=(400, 300)), law="paper", order=10, networks=20).model
    >>> functions = casadi_functions(Stepper(model))
    >>> state, y = functions["step"](functions["start"](15.0), 15.0)
    >>> bool(abs(float(y) - model.simulate([15.0]).y[0, 0]) < 1e-12)
    True
    """
    casadi = _casadi()
    u, measured = casadi.MX.sym("u", stepper.inputs), casadi.MX.sym("measured", stepper.outputs)
    state = casadi.MX.sym("state", stepper.states)
    result: dict[str, Any] = {}
    arguments: tuple[Any, ...]
    for fed, arguments in (("step", (state, u)), ("follow", (state, u, measured))):
        after, outputs = [], []
        for one, part in zip(stepper.equations, stepper.parts, strict=True):
            given = None if fed == "step" else _scaled_outputs(one, measured)
            new, own = _member(casadi, one, state[part], _scaled_inputs(one, u), given)
            after.append(new)
            outputs.append(own * one.scaling.output_span + one.scaling.output_offset)
        names = ["state", "u", "measured"][: len(arguments)], ["next_state", "y"]
        body = [casadi.vertcat(*after), _median(casadi, outputs)]
        result[fed] = casadi.Function(f"{name}_{fed}", list(arguments), body, *names)
    for given, arguments in ((False, (u,)), (True, (u, measured))):
        starts = [_start(casadi, one, u, measured if given else None) for one in stepper.equations]
        kind = "start_measured" if given else "start"
        names = ["u", "measured"][: len(arguments)], ["state"]
        result[kind] = casadi.Function(f"{name}_{kind}", list(arguments), [casadi.vertcat(*starts)], *names)
    return result


def do_mpc_model(model: Any) -> Any:
    """A discrete do-mpc model that is set up: ``_x["state"]``, an input for each of the model's, and the outputs.

    Examples
    --------
    >>> from echobound import identify, ph_experiment
    >>> model = identify(*ph_experiment(samples=(400, 300)), law="paper", order=10, networks=20).model
    >>> plant = do_mpc_model(model)
    >>> plant.u.keys(), plant.aux.keys()
    (['default', 'q3'], ['default', 'pH'])
    """
    try:
        import do_mpc
    except ImportError:
        raise MissingExtra("a do-mpc model", extra="mpc") from None
    casadi, stepper = _casadi(), Stepper(model)
    step = casadi_functions(stepper)["step"]
    made = do_mpc.model.Model("discrete", "MX")
    state = made.set_variable("_x", "state", shape=(stepper.states, 1))
    inputs = [made.set_variable("_u", identifier(name)) for name in model.input_names]
    after, y = step(state, casadi.vertcat(*inputs))
    for number, name in enumerate(model.output_names):
        made.set_expression(identifier(name), y[number])
    made.set_rhs("state", after)
    made.setup()
    return made


def _scaled_inputs(one: Equations, u: Any) -> Any:
    return (u - one.scaling.input_offset) / one.scaling.input_span


def _scaled_outputs(one: Equations, y: Any) -> Any:
    return (y - one.scaling.output_offset) / one.scaling.output_span


def _matrix(casadi: Any, matrix: Any) -> Any:
    """A sparse constant matrix; CasADi stores columns."""
    columns = matrix.tocsc()
    pattern = casadi.Sparsity(*columns.shape, columns.indptr.tolist(), columns.indices.tolist())
    return casadi.MX(casadi.DM(pattern, columns.data))


def _member(casadi: Any, one: Equations, state: Any, u: Any, fed: Any) -> tuple[Any, Any]:
    """The next state and the own output, scaled."""
    nothing = casadi.MX.zeros(one.outputs), casadi.MX.zeros(one.units)

    def units(y: Any) -> Any:
        w = casadi.vertcat(state, u, y, nothing[1])
        return casadi.tanh(casadi.mtimes(_matrix(casadi, one.activation), w) + one.bias)

    early = units(nothing[0]) if one.units_first else nothing[1]
    w = casadi.vertcat(state, u, nothing[0], early)
    own = casadi.mtimes(_matrix(casadi, one.readout), w) + one.constant
    if one.limits is not None:
        own = casadi.fmin(casadi.fmax(own, one.limits.low), one.limits.high)
    y = own if fed is None else fed
    h = early if one.units_first else units(y)
    return casadi.mtimes(_matrix(casadi, one.next_state), casadi.vertcat(state, u, y, h)), own


def _start(casadi: Any, one: Equations, u: Any, measured: Any) -> Any:
    """The state of a member before the first sample."""
    steps = one.padding if measured is not None else one.padding_without_outputs
    now = _scaled_inputs(one, u)
    y = casadi.MX(one.mean) if measured is None or one.starts_from_mean else _scaled_outputs(one, measured)
    state = casadi.mtimes(_matrix(casadi, one.at_rest), casadi.vertcat(now, y))
    if one.settled.nnz:
        w = casadi.vertcat(state, now, y, casadi.MX.zeros(one.units))
        h = casadi.tanh(casadi.mtimes(_matrix(casadi, one.activation), w) + one.bias)
        state = state + casadi.mtimes(_matrix(casadi, one.settled), h)
    if not steps:
        return casadi.densify(state)
    s, held, fed = (casadi.MX.sym(n, size) for n, size in (("s", one.states), ("u", one.inputs), ("y", one.outputs)))
    hold = casadi.Function("hold", [s, held, fed], [casadi.densify(_member(casadi, one, s, held, fed)[0])])
    many = hold.mapaccum(steps)
    return many(casadi.densify(state), casadi.repmat(now, 1, steps), casadi.repmat(y, 1, steps))[:, -1]


def _median(casadi: Any, values: list[Any]) -> Any:
    """The median, by comparing neighbours: its derivative is that of the value in the middle."""
    rows, count = list(values), len(values)
    for turn in range(count):
        for at in range(turn % 2, count - 1, 2):
            pair = rows[at], rows[at + 1]
            rows[at], rows[at + 1] = casadi.fmin(*pair), casadi.fmax(*pair)
    return rows[count // 2] if count % 2 else (rows[count // 2 - 1] + rows[count // 2]) / 2
