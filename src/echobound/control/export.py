"""The controller in C99: observer and planned inputs of one model, without allocation or global state.

What is written plans as `MPC` does with ``Effort(newton=False)``: Gauss-Newton alone, which needs more iterations where
a set point has just moved. The C sources are in the folder ``c`` beside this file; what differs from model to model are
sizes and tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ctypes import sizeof
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from echobound.arrays import Signal, Vector
from echobound.control.compiled import CController, structures
from echobound.control.mpc import MPC
from echobound.control.observer import FEWEST, WINDOW
from echobound.control.planning import DECREASE, HALVINGS
from echobound.control.problem import CURVED
from echobound.control.quadratic import FEASIBLE
from echobound.errors import InputError
from echobound.export.c_code import Writer
from echobound.export.card import Card, card_of, identifier
from echobound.export.templates import wrapped
from echobound.files import write_all
from echobound.network import Stepper
from echobound.scenario import Certificate
from echobound.scenario.words import upward

LARGEST = 120  # variables of a quadratic program: planned inputs, and a slack for each bounded output and sample
GOLDEN = 60  # samples of the self-test
RESTING = 400  # samples that the model is left alone before it


@dataclass(frozen=True, eq=False)
class ExportedController:
    """What was written, and ways to check it and to run it from Python."""

    controller: MPC  # what it does, in Python
    card: Card
    files: tuple[Path, ...]

    def check(self) -> float:
        """The largest difference from the Python controller, relative to the range of an input; needs a C compiler.

        The loop is that of the self-test: set points, an output disturbance, a lost sample, an outlier.
        """
        span = self.controller.bounds.high - self.controller.bounds.low
        gap = _golden(self.controller, self.compiled()).inputs - _golden(self.controller).inputs
        return float(np.abs(gap / span).max())

    def words(self, difference: float) -> str:
        """What `check` found, as a sentence."""
        return (
            f"The controller in C plans by Gauss-Newton alone; over the {GOLDEN} samples of its self-test it is at most"
            f" {upward(difference, 2)} of the range of an input from the same in Python."
        )

    def compiled(self) -> CController:
        """The C controller, compiled by this machine's compiler: for `simulate_closed_loop`, or one's own loop."""
        return CController(self.controller, self.card.name, self.files[0].parent)


def export_controller(
    controller: MPC,
    folder: str | Path,
    *,
    name: str | None = None,
    certificate: Certificate | Mapping[str, Any] | None = None,
) -> ExportedController:
    """Write a controller as C99: ``NAME.h``, ``NAME.c`` and a self-test, ``NAME_test.c``.

    Parameters
    ----------
    controller
        A controller with one model, and no more planned inputs and bounded outputs than a small processor can plan:
        together at most 120.
    folder
        Where to write it.
    name
        The prefix of its functions; made from the folder's name if not given.
    certificate
        The certificate of the search, whose digest and statement the source then carries.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from echobound import identify, ph_experiment
    >>> from echobound.control import MPC
    >>> result = identify(*ph_experiment(samples=(400, 300)), law="paper", order=10, networks=20)
    >>> controller = MPC(result.network, horizon=10, rate=0.5)
    >>> with TemporaryDirectory() as folder:
    ...     exported = export_controller(controller, folder, name="ph", certificate=result.certificate)
    ...     [file.name for file in exported.files], exported.check() < 1e-6
    (['ph.h', 'ph.c', 'ph_test.c'], True)
    """
    require_exportable(controller)
    path = Path(folder)
    card = card_of(controller.model, identifier(path.resolve().name if name is None else name), certificate)
    plain = controller.with_effort(replace(controller.effort, newton=False))
    sizes, tables = _sizes(plain), _tables(plain)
    golden = _golden(plain)
    kept = [line for line in card.lines if not line.startswith(("warm-up:", "bound:"))]  # those of a free run
    lines = "\n".join(f" * {line}" for line in wrapped([_about(plain), *kept])).removeprefix(" * ")
    writer = Writer("golden", "double", False)
    for table in ("rest", "inputs", "y", "reference", "disturbance"):
        writer.table(table, getattr(golden, table))
    writer.table("span", plain.bounds.high - plain.bounds.low)
    numbers = re.sub(r"\bnan\b", "NAN", "\n\n".join(writer.tables))
    defines = "\n".join(f"#define CTL_{key} {value}" for key, value in sizes.items())
    header = _source("controller.h", {"card": lines, "/* @sizes */": defines})
    texts = {
        f"{card.name}.h": header.replace("@memory", _memory(plain, header, tables)),
        f"{card.name}.c": _source("controller.c", {"title": _title(card), "/* @tables */": _statements(plain, tables)}),
        f"{card.name}_test.c": _source("controller_test.c", {"title": _title(card), "/* @golden */": numbers}),
    }
    contents = {path / file: _named(text, card.name).encode() for file, text in texts.items()}
    write_all(contents)
    return ExportedController(plain, card, tuple(contents))


def require_exportable(controller: MPC) -> None:
    """Refuse in one sentence what the C controller cannot do."""
    several = len(controller.observer.predictors)
    if several > 1:
        raise InputError(
            f"a controller in C has one model, and this one follows {several}: give it a network instead of a committee"
            " (--model network), and no scenarios"
        )
    if controller.effort.seconds is not None:
        raise InputError("a controller in C has no clock: limit its effort by iterations, not by seconds")
    planned, slacks = _variables(controller)
    if planned + slacks > LARGEST:
        why = f"{planned} planned inputs and {slacks} bounded outputs" if slacks else f"{planned} planned inputs"
        raise InputError(
            f"a controller in C solves quadratic programs of at most {LARGEST} variables, and this one has"
            f" {planned + slacks} ({why}): give a shorter horizon, or plan fewer inputs by control_horizon"
        )


@dataclass(frozen=True, eq=False)
class _Golden:
    """The loop of the self-test, sample by sample."""

    rest: Vector  # the output that it starts from
    inputs: Signal  # one row more: the first is where it starts
    y: Signal
    reference: Signal
    disturbance: Signal


def _golden(controller: MPC, other: CController | None = None) -> _Golden:
    """Set points, an output disturbance, an outlier, and samples without a measurement or a reference.

    The plant is the model. Another controller sees the same measurements, and its inputs are returned.
    """
    model, bounds = controller.model, controller.bounds
    stepper, u = Stepper(model), _middle(controller)
    free = stepper.run(np.repeat(u[None], RESTING, axis=0))
    if not np.isfinite(free).all():
        raise InputError("the model diverges when its input is held: there is no controller to export")
    rest, scale, known = free[-1], bounds.output_scale, u[bounds.known]
    state, plain = stepper.start(u, rest), controller.with_effort(controller.effort)
    judged = plain if other is None else other
    for one in {id(plain): plain, id(judged): judged}.values():
        one.start(u[bounds.manipulated], rest, disturbance=known if len(known) else None)
    rows: list[tuple[Vector, Vector, Vector]] = []
    inputs = [u[bounds.manipulated]]
    for k in range(GOLDEN):
        y = stepper.output(state, u) + (0.02 * scale if k >= 10 else 0.0)
        y += 3.0 * scale if k == 40 else np.nan if k == 30 else 0.0
        level = rest + 0.2 * scale * (-1.0) ** (k // 15 + np.arange(len(rest)))
        level += np.nan if k == 50 else 0.0
        told = known * (1.0 + 0.01 * (k // 20))
        step = plain.step(level, y, disturbance=told if len(told) else None)
        same = step if judged is plain else judged.step(level, y, disturbance=told if len(told) else None)
        inputs.append(same.u)
        rows.append((y, level, told if len(told) else np.zeros(1)))
        u[bounds.manipulated], u[bounds.known] = step.u, told
        state = stepper.advance(state, u)
    return _Golden(rest, np.array(inputs), *(np.array(signal) for signal in zip(*rows, strict=True)))


def _middle(controller: MPC) -> Vector:
    """The middle of the bounds of each input that is moved, and of the training data of the others."""
    scaling, bounds = controller.observer.predictors[0].scaling, controller.bounds
    u = scaling.input_offset + (0.5 * scaling.input_span if scaling.kind == "minmax" else 0.0)
    u[bounds.manipulated] = 0.5 * (bounds.low + bounds.high)
    return np.asarray(u)


def _variables(controller: MPC) -> tuple[int, int]:
    """Planned inputs, and slacks at most."""
    bounded = np.isfinite([controller.bounds.output_low, controller.bounds.output_high]).any()
    outputs = len(controller.model.output_names)
    return controller.control_horizon * len(controller.manipulated), controller.horizon * outputs * int(bounded)


def _sizes(controller: MPC) -> dict[str, str]:
    """The macros of the header."""
    one, bounds, observer = controller.observer.predictors[0].equations, controller.bounds, controller.observer
    planned, slacks = _variables(controller)
    rates = controller.control_horizon * int(np.isfinite(bounds.rate).sum())
    sides = int(np.isfinite([bounds.output_low, bounds.output_high]).sum()) * controller.horizon
    counts = {
        "INPUTS": one.inputs,
        "MOVED": len(bounds.manipulated),
        "KNOWN": len(bounds.known),
        "KNOWN_ROOM": max(len(bounds.known), 1),
        "OUTPUTS": one.outputs,
        "HORIZON": controller.horizon,
        "BLOCKS": controller.control_horizon,
        "ITERATIONS": controller.effort.iterations,
        "STARTS": controller.starts,
        "STATES": one.states,
        "UNITS": one.units,
        "WIDTH": one.width,
        "PLANNED": planned,
        "VARIABLES": planned + slacks,
        "CONSTRAINTS": planned + slacks + rates + sides,
        "TURNS": 100 + 10 * (planned + slacks + rates + sides),
        "HALVINGS": HALVINGS,
        "WINDOW": WINDOW,
        "FEWEST": FEWEST,
        "PATIENCE": observer.patience,
    }
    switches = {
        "UNITS_FIRST": one.units_first,
        "CLIPS": one.limits is not None,
        "FROM_MEAN": one.starts_from_mean,
        "BOUNDED": slacks > 0,
    }
    number = Writer("ctl", "double", False).number
    linear, square = controller.slack_weight
    reals = {
        "TOLERANCE": controller.effort.tolerance,
        "GAIN": observer.gain,
        "GATE": min(observer.gate, np.finfo(float).max),
        "SLACK_LINEAR": linear,
        "SLACK_SQUARE": square,
        "SLACK_FACTOR": np.sqrt(2.0 * square),
        "DECREASE": DECREASE,
        "CURVED": CURVED,
        "FEASIBLE": FEASIBLE,
        "DUAL": 1e-12,
        "SINGULAR": 1e-11,
    }
    return (
        {key: f"{value}U" for key, value in counts.items()}
        | {key: str(int(value)) for key, value in switches.items()}
        | {key: number(float(value)) for key, value in reals.items()}
    )


def _tables(controller: MPC) -> Writer:
    """The tables of the source."""
    one, bounds = controller.observer.predictors[0].equations, controller.bounds
    writer = Writer("ctl", "double", False)
    matrices = {"activation": one.activation, "readout": one.readout, "next": one.next_state}
    for name, matrix in (matrices | {"rest": one.at_rest, "settled": one.settled}).items():
        writer.index_table(f"{name}_ends", matrix.indptr.tolist())
        writer.index_table(f"{name}_columns", matrix.indices.tolist() or [0])
        writer.table(f"{name}_values", matrix.data if matrix.nnz else np.zeros(1))
    infinite = np.full(one.outputs, np.inf)
    clip = (-infinite, infinite) if one.limits is None else (one.limits.low, one.limits.high)
    vectors = {
        "bias": one.bias,
        "constant": one.constant,
        "mean": one.mean,
        "clip_low": clip[0],
        "clip_high": clip[1],
        "input_offset": one.scaling.input_offset,
        "input_span": one.scaling.input_span,
        "output_offset": one.scaling.output_offset,
        "output_span": one.scaling.output_span,
        "input_low": bounds.low,
        "input_high": bounds.high,
        "input_rate": bounds.rate,
        "rate": bounds.rate / (bounds.high - bounds.low),
        "output_low": bounds.output_low,
        "output_high": bounds.output_high,
        "output_scale": bounds.output_scale,
        "output_weight": controller.output_weight / bounds.output_scale**2,
        "output_price": controller.output_price,
        "move_weight": controller.move_weight,
        "input_price": np.outer(_samples(controller), controller.input_price * (bounds.high - bounds.low)).ravel(),
        "floor": controller.observer.floor,
        "believable": controller.observer.believable,
        "middle": _middle(controller)[[*bounds.manipulated, *bounds.known]],
    }
    for name, values in vectors.items():
        writer.table(name, np.nan_to_num(np.asarray(values, dtype=np.float64)))  # infinity is the largest number
    source = np.empty(one.inputs, dtype=np.int64)
    source[bounds.manipulated] = np.arange(len(bounds.manipulated))
    source[bounds.known] = len(bounds.manipulated) + np.arange(len(bounds.known))
    writer.index_table("source", source.tolist())
    limited = np.flatnonzero(np.tile(np.isfinite(bounds.rate), controller.control_horizon))
    writer.index_table("rated", limited.tolist() or [0])
    return writer


def _statements(controller: MPC, writer: Writer) -> str:
    """The tables as the source has them, and numbers beside them."""
    one, bounds = controller.observer.predictors[0].equations, controller.bounds
    rates = int(np.isfinite(bounds.rate).sum()) * controller.control_horizon
    constants = {"rates": rates, "known": len(bounds.known)}
    constants["padding"] = max(one.padding, one.padding_without_outputs)
    lines = [f"static const size_t ctl_{name} = {value}U;" for name, value in constants.items()]
    return "\n\n".join([*writer.tables, *lines])


def _memory(controller: MPC, header: str, tables: Writer) -> str:
    """What a controller takes: the words of the header's comment."""
    one = controller.observer.predictors[0].equations
    planned, slacks = _variables(controller)
    stack = one.states + one.width + (one.outputs + 3) * planned + 2 * (planned + slacks) + WINDOW
    return (
        f"{sizeof(structures(header)['ctl_controller'])} bytes a controller where size_t has 8, {tables.size} bytes of"
        f" constant tables,\n * about {8 * stack} bytes of stack in a step"
    )


def _samples(controller: MPC) -> Vector:
    """For how many samples each block of planned inputs is held."""
    samples = np.ones(controller.control_horizon)
    samples[-1] += controller.horizon - controller.control_horizon
    return samples


def _about(controller: MPC) -> str:
    """The controller in a line of the header's comment."""
    planned, slacks = _variables(controller)
    return (
        f"Observer and model predictive control: moves {', '.join(controller.manipulated)}"
        + (f", is told {', '.join(controller.disturbances)}" if controller.disturbances else "")
        + f", looks {controller.horizon} samples ahead, plans {planned} inputs"
        + (f" with at most {slacks} slacks of output bounds." if slacks else ".")
    )


def _title(card: Card) -> str:
    return f"{card.name}: a controller by a model, SHA-256 {card.model}"


def _source(file: str, places: dict[str, str]) -> str:
    """A C source of this room with its places filled in."""
    text = files(__package__).joinpath("c", file).read_text(encoding="utf-8")
    for place, value in places.items():
        text = text.replace(place if place.startswith("/*") else f"@{place}", value)
    return text


def _named(text: str, name: str) -> str:
    """The source with its own prefix."""
    return re.sub(r"\bctl(?=[_.])", name, re.sub(r"\bCTL(?=_)", name.upper(), text))
