"""ONNX, in double precision: the step with its state in and out, its start, and a run over a whole record by Scan.

All three have the inputs ``u``, ``measured`` and ``follow`` (1 feeds back the measured outputs, 0 the model's own), and
a state for each member: ``state``, or ``state_1``, ``state_2``, ... The step is made of few operators, those that
do-mpc can convert: a limit is a Relu, and a median is made of them, too.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echobound.arrays import Signal
from echobound.errors import MissingExtra
from echobound.export.base import Job, Target
from echobound.network.equations import Equations

OPSET = 17
VERSION = 8  # of the format: the one that came with this operator set


class OnnxTarget(Target):
    """Graphs for onnxruntime and everything that reads ONNX."""

    name = "onnx"
    title = "ONNX in double precision: step, start, and a run by Scan"
    suffix = ".onnx"
    leaves_out_diverged = False

    def make(self, job: Job, path: Path) -> dict[Path, bytes]:
        """The step, and beside it ``NAME_start.onnx`` and ``NAME_run.onnx``."""
        graphs = {path: step_graph(job), _beside(path, "start"): start_graph(job), _beside(path, "run"): run_graph(job)}
        return {file: model.SerializeToString(deterministic=True) for file, model in graphs.items()}

    def run(self, job: Job, path: Path, u: Signal, initial: Signal | None) -> Signal:
        """Run the start and the whole record by onnxruntime or, without it, by ONNX's own evaluator."""
        outputs, warm = job.stepper.outputs, 0 if initial is None else len(initial)
        measured, follow = np.zeros((len(u), outputs)), np.zeros((len(u), 1))
        if initial is not None:
            measured[:warm], follow[:warm] = initial, 1.0
        first = {"u": u[:1], "measured": measured[:1], "follow": follow[:1]}
        states = _evaluate(_beside(path, "start"), first)
        names = _states(job)
        feeds = {"u": np.ascontiguousarray(u), "measured": measured, "follow": follow}
        result = _evaluate(_beside(path, "run"), feeds | dict(zip(names, states, strict=True)))
        return np.asarray(result[0])[warm:]


def _onnx() -> Any:
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        raise MissingExtra("the export to ONNX", extra="export") from None
    return onnx


def _evaluate(path: Path, feeds: dict[str, NDArray[np.float64]]) -> list[Any]:
    try:
        import onnxruntime
    except ImportError:
        onnx = _onnx()
        from onnx.reference import ReferenceEvaluator

        return list(ReferenceEvaluator(onnx.load(str(path))).run(None, feeds))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return list(onnxruntime.InferenceSession(path.read_bytes(), options).run(None, feeds))


def _beside(path: Path, what: str) -> Path:
    return path.with_name(f"{path.name.removesuffix('.onnx')}_{what}.onnx")


def _states(job: Job, prefix: str = "") -> list[str]:
    count = len(job.stepper.equations)
    return [f"{prefix}state"] if count == 1 else [f"{prefix}state_{number + 1}" for number in range(count)]


class _Graph:
    """Nodes and constants of a graph; vectors are rows ``(1, n)``."""

    def __init__(self, prefix: str = "") -> None:
        self.onnx = _onnx()
        self.prefix = prefix  # of names: the body of a loop sees those of the graph around it
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, values: Any, dtype: type = np.float64) -> str:
        """A constant, and its name."""
        name = f"{self.prefix}c{len(self.constants)}"
        array: NDArray[Any] = np.array(values, dtype=dtype, order="C")
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def op(self, kind: str, *inputs: str, outputs: tuple[str, ...] = (), **attributes: Any) -> str:
        """A node, and the name of its first output."""
        names = outputs or (f"{self.prefix}n{len(self.nodes)}",)
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), list(names), **attributes))
        return names[0]

    def sum(self, *terms: str) -> str:
        """The sum of some terms."""
        total = terms[0]
        for term in terms[1:]:
            total = self.op("Add", total, term)
        return total

    def product(self, matrix: Any, vectors: dict[str, slice]) -> list[str]:
        """Terms of a matrix times the parts of w that are there."""
        return [
            self.op("MatMul", name, self.constant(matrix[:, part].toarray().T))
            for name, part in vectors.items()
            if matrix[:, part].nnz
        ]

    def row(self, values: Any) -> str:
        """A constant row."""
        return self.constant(np.asarray(values, dtype=np.float64).reshape(1, -1))

    def scaled(self, name: str, offset: Any, span: Any) -> str:
        """(x - offset) / span.

        By a matrix, never by a single constant: onnxruntime moves such a factor into a neighbouring MatMul, where it
        is in single precision.
        """
        return self.op("MatMul", self.op("Sub", name, self.row(offset)), self.constant(np.diag(1.0 / span)))

    def finish(self, job: Job, name: str, inputs: list[Any], outputs: list[Any]) -> Any:
        """The whole model, with the card in its metadata, checked."""
        helper = self.onnx.helper
        graph = helper.make_graph(self.nodes, name, inputs, outputs, self.constants)
        made = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=VERSION, producer_name="echobound"
        )
        made.doc_string = "\n".join(job.card.lines)
        helper.set_model_props(made, {"card": json.dumps(job.card.to_dict(), ensure_ascii=False)})
        self.onnx.checker.check_model(made, full_check=True)
        return made

    def value(self, name: str, *shape: int | str) -> Any:
        """A double input or output."""
        return self.onnx.helper.make_tensor_value_info(name, self.onnx.TensorProto.DOUBLE, list(shape))


def _units(g: _Graph, one: Equations, vectors: dict[str, slice]) -> str:
    return g.op("Tanh", g.sum(g.row(one.bias), *g.product(one.activation, vectors)))


def _next(g: _Graph, one: Equations, vectors: dict[str, slice], units: str) -> str:
    """The next state: the states of units, whose own part is a diagonal, and beside them the rest."""
    h, lead = one.parts[3], one.units
    own = one.next_state[:lead, h] if one.states >= lead > 1 else None
    if own is None or own.nnz != (own.diagonal() != 0).sum():
        return g.sum(*g.product(one.next_state, vectors | {units: h}))
    parts = [g.sum(g.op("Mul", units, g.row(own.diagonal())), *g.product(one.next_state[:lead], vectors))]
    if one.states > lead:
        parts.append(g.sum(*g.product(one.next_state[lead:], vectors | {units: h})))
    return parts[0] if len(parts) == 1 else g.op("Concat", *parts, axis=1)


def _member(g: _Graph, one: Equations, state: str, u: str, measured: str, follow: str) -> tuple[str, str]:
    """The next state and the own output, in the data's units."""
    s, inputs, outputs, h = one.parts
    scaled = g.scaled(u, one.scaling.input_offset, one.scaling.input_span)
    vectors = {state: s, scaled: inputs}
    units = _units(g, one, vectors) if one.units_first else ""
    own = g.sum(g.row(one.constant), *g.product(one.readout, vectors | ({units: h} if units else {})))
    if one.limits is not None:
        low, high = g.row(one.limits.low), g.row(one.limits.high)
        raised = g.op("Add", low, g.op("Relu", g.op("Sub", own, low)))
        own = g.op("Sub", high, g.op("Relu", g.op("Sub", high, raised)))
    given = g.scaled(measured, one.scaling.output_offset, one.scaling.output_span)
    free = g.op("Sub", g.row([1.0]), follow)
    vectors[g.op("Add", g.op("Mul", follow, given), g.op("Mul", free, own))] = outputs
    units = units or _units(g, one, vectors)
    spread = g.op("MatMul", own, g.constant(np.diag(one.scaling.output_span)))
    back = g.op("Add", spread, g.row(one.scaling.output_offset))
    return _next(g, one, vectors, units), back


def _median(g: _Graph, values: list[str], sort: bool) -> str:
    """The median of rows: sorted by TopK or, where only few operators are known, by comparing neighbours."""
    count = len(values)
    if count == 1:
        return values[0]
    middle = sorted({(count - 1) // 2, count // 2})
    if sort:
        stacked = g.op("Concat", *values, axis=0)
        largest = g.constant([count], np.int64)
        g.op("TopK", stacked, largest, outputs=("sorted", "order"), axis=0, largest=0)
        chosen = [g.op("Gather", "sorted", g.constant([at], np.int64), axis=0) for at in middle]
    else:
        rows = list(values)
        for turn in range(count):
            for at in range(turn % 2, count - 1, 2):
                above = g.op("Relu", g.op("Sub", rows[at], rows[at + 1]))  # by how much the first is the larger one
                rows[at], rows[at + 1] = g.op("Sub", rows[at], above), g.op("Add", rows[at + 1], above)
        chosen = [rows[at] for at in middle]
    return chosen[0] if len(chosen) == 1 else g.op("Mul", g.op("Add", *chosen), g.row([0.5]))


def _steps(g: _Graph, job: Job, sort: bool) -> None:
    """All members and the median: from ``state*``, u, measured, follow to ``next_state*`` and y."""
    outs = []
    for one, state, after in zip(job.stepper.equations, _states(job), _states(job, "next_"), strict=True):
        new, own = _member(g, one, state, "u", "measured", "follow")
        g.op("Add", new, g.row([0.0]), outputs=(after,))  # gives it its name
        outs.append(own)
    g.op("Add", _median(g, outs, sort), g.row([0.0]), outputs=("y",))


def step_graph(job: Job) -> Any:
    """One sample: states, u, measured, follow to the next states and y."""
    g = _Graph()
    _steps(g, job, sort=False)
    return g.finish(
        job, f"{job.card.name}_step", _arguments(g, job), [*_after(g, job), g.value("y", 1, job.stepper.outputs)]
    )


def run_graph(job: Job) -> Any:
    """A whole record: states, u ``(time, input)``, measured, follow to y ``(time, output)`` and the last states."""
    body, g, sizes = _Graph("sample_"), _Graph(), (job.stepper.inputs, job.stepper.outputs, 1)
    _steps(body, job, sort=True)
    inside = body.onnx.helper.make_graph(
        body.nodes,
        "sample",
        _arguments(body, job),
        [*_after(body, job), body.value("y", 1, job.stepper.outputs)],
        body.constants,
    )
    axis = g.constant([1], np.int64)
    rows = [g.op("Unsqueeze", name, axis) for name in ("u", "measured", "follow")]
    after = _states(job, "last_")
    g.op("Scan", *_states(job), *rows, outputs=(*after, "outputs"), num_scan_inputs=3, body=inside)
    g.op("Squeeze", "outputs", axis, outputs=("y",))
    records = [g.value(name, "time", size) for name, size in zip(("u", "measured", "follow"), sizes, strict=True)]
    states = [g.value(name, 1, one.states) for name, one in zip(_states(job), job.stepper.equations, strict=True)]
    last = [g.value(name, 1, one.states) for name, one in zip(after, job.stepper.equations, strict=True)]
    return g.finish(job, f"{job.card.name}_run", [*states, *records], [g.value("y", "time", sizes[1]), *last])


def start_graph(job: Job) -> Any:
    """The states before the first sample, from its u and, where follow is 1, its measured output."""
    g, helper = _Graph(), _onnx().helper
    whole = g.op("Cast", g.op("Reshape", "follow", g.constant([], np.int64)), to=g.onnx.TensorProto.INT64)
    free = g.op("Sub", g.row([1.0]), "follow")
    for number, (one, name) in enumerate(zip(job.stepper.equations, _states(job), strict=True)):
        u = g.scaled("u", one.scaling.input_offset, one.scaling.input_span)
        given = g.scaled("measured", one.scaling.output_offset, one.scaling.output_span)
        mean, inputs, span = g.row(one.mean), one.inputs, one.inputs + one.outputs
        y = mean if one.starts_from_mean else g.op("Add", g.op("Mul", "follow", given), g.op("Mul", free, mean))
        rest = g.product(one.at_rest, {u: slice(0, inputs), y: slice(inputs, span)})
        state = g.sum(g.row(np.zeros(one.states)), *rest)
        if one.settled.nnz:
            units = _units(g, one, {state: one.parts[0], u: one.parts[1], y: one.parts[2]})
            state = g.op("Add", state, g.op("MatMul", units, g.constant(one.settled.toarray().T)))
        less = g.constant(one.padding - one.padding_without_outputs, np.int64)
        steps = g.op("Add", g.constant(one.padding_without_outputs, np.int64), g.op("Mul", whole, less))
        body, held = _Graph(f"hold_{number}_"), {f"before_{number}": one.parts[0], u: one.parts[1], y: one.parts[2]}
        body.nodes = [helper.make_node("Identity", ["going"], ["goes_on"])]
        units = _units(body, one, held)
        body.op("Identity", _next(body, one, held, units), outputs=(f"after_{number}",))
        flag = [helper.make_tensor_value_info(n, g.onnx.TensorProto.BOOL, []) for n in ("going", "goes_on")]
        turn = helper.make_tensor_value_info("turn", g.onnx.TensorProto.INT64, [])
        ends = [body.value(f"{side}_{number}", 1, one.states) for side in ("before", "after")]
        inside = helper.make_graph(body.nodes, "hold", [turn, flag[0], ends[0]], [flag[1], ends[1]], body.constants)
        g.op("Loop", steps, g.constant(np.array(True), np.bool_), state, outputs=(name,), body=inside)
    sizes = {"u": job.stepper.inputs, "measured": job.stepper.outputs, "follow": 1}
    states = [g.value(name, 1, one.states) for name, one in zip(_states(job), job.stepper.equations, strict=True)]
    return g.finish(job, f"{job.card.name}_start", [g.value(n, 1, size) for n, size in sizes.items()], states)


def _arguments(g: _Graph, job: Job) -> list[Any]:
    states = [g.value(name, 1, one.states) for name, one in zip(_states(job), job.stepper.equations, strict=True)]
    sizes = {"u": job.stepper.inputs, "measured": job.stepper.outputs, "follow": 1}
    return [*states, *(g.value(name, 1, size) for name, size in sizes.items())]


def _after(g: _Graph, job: Job) -> list[Any]:
    names = _states(job, "next_")
    return [g.value(name, 1, one.states) for name, one in zip(names, job.stepper.equations, strict=True)]
