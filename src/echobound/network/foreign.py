"""Import of networks trained elsewhere, with their weights: they can be simulated, scored and saved like ours."""

from __future__ import annotations

from typing import Any

import numpy as np

from echobound.arrays import Columns, Matrix
from echobound.data.scaling import Scaling
from echobound.errors import InputError
from echobound.network.model import EchoStateNetwork
from echobound.network.reservoir import Hyperparameters, Reservoir


def from_reservoirpy(
    model: Any,
    *,
    sampling_time: float = 1.0,
    washout: int = 0,
    scaling: Scaling | None = None,
    input_names: tuple[str, ...] = (),
    output_names: tuple[str, ...] = (),
) -> EchoStateNetwork:
    """Import a trained echo state network of reservoirpy (0.4 and later): an `ESN`, or ``reservoir >> ridge``.

    The outputs are those of ``model.reset(); model.run(u)`` up to rounding. The readout of reservoirpy uses the state
    that u(k) has already entered, so the imported network has a late readout.

    Parameters
    ----------
    model
        One reservoir with tanh and one linear readout, trained; with or without feedback from the readout and a
        connection from input to readout.
    sampling_time, input_names, output_names
        What reservoirpy does not store.
    washout
        Samples with measured outputs fed back before a free run is scored.
    scaling
        How the data were scaled before they went to reservoirpy; unscaled if not given.

    Examples
    --------
    >>> from reservoirpy import ESN
    >>> u = np.sin(0.1 * np.arange(200.0))[:, None]
    >>> theirs = ESN(units=20, ridge=1e-6, seed=1).fit(u[:-1], u[1:])
    >>> ours = from_reservoirpy(theirs)
    >>> _ = theirs.reset()
    >>> bool(abs(ours.simulate(u).y - theirs.run(u)).max() < 1e-10)
    True
    """
    reservoir, readout = _node(model, "Reservoir", "W", "Win"), _node(model, "Ridge", "Wout")
    edges = {(parent, delay, child) for parent, delay, child in model.edges}
    feedback = (readout, 1, reservoir) in edges
    sources = [parent for parent, delay, _ in edges if parent not in (reservoir, readout) and delay == 0]
    inlets = [source for source in sources if type(source).__name__ == "Input"]
    known = {(reservoir, 0, readout), (readout, 1, reservoir)}
    known |= {(source, 0, node) for source in inlets for node in (reservoir, readout)}
    # Taps for looking at the states do not change the outputs.
    known |= {(reservoir, 0, child) for _, _, child in edges if type(child).__name__ == "Output"}
    if (reservoir, 0, readout) not in edges or not edges <= known or len(set(sources)) > 1:
        raise InputError(
            "only one reservoir and one readout can be imported, with feedback and input to readout: this model has"
            f" other connections ({len(model.nodes)} nodes)"
        )
    probe = np.linspace(-2.0, 2.0, 9)
    if not np.allclose(reservoir.activation(probe), np.tanh(probe), rtol=1e-12):
        raise InputError("the reservoir must have the activation tanh, as ours have: this one has another")

    W, W_in, W_out = _dense(reservoir.W), _dense(reservoir.Win), _dense(readout.Wout)
    n, outputs = len(W), W_out.shape[1]
    inputs = W_in.shape[1] - (outputs if feedback else 0)
    # The inputs of the readout are in the order of its parents.
    parents = {id(parent): parent for parent in model.parents[readout]}
    direct = len(parents) > 1
    state_first = next(iter(parents.values())) is reservoir
    weights = W_out if state_first or not direct else np.concatenate([W_out[inputs:], W_out[:inputs]])
    if scaling is None:
        scaling = Scaling("none", np.zeros(inputs), np.ones(inputs), np.zeros(outputs), np.ones(outputs))
    columns, values = _slots(W)
    constant, bias, leak = (
        np.broadcast_to(np.asarray(given, dtype=np.float64).reshape(-1), (size,)).copy()
        for given, size in ((readout.bias, outputs), (reservoir.bias, n), (reservoir.lr, n))
    )
    hyper = Hyperparameters(
        order=n,
        norm=float(np.linalg.norm(W, 2)),
        input_scale=float(np.abs(W_in[:, :inputs]).max(initial=0.0)),
        feedback_scale=float(np.abs(W_in[:, inputs:]).max(initial=0.0)),
        bias_scale=float(np.abs(bias).max()),
        leak=float(leak.max()),
        leak_spread=0.0,
        input_delays=1 if direct else 0,  # one sample late, the present input is the one before
        present_input=False,
        output_delays=0,
        constant=True,
        training_noise=0.0,
        scaling=scaling.kind,
    )
    W_u = np.ascontiguousarray(W_in[:, :inputs])
    W_y = np.ascontiguousarray(W_in[:, inputs:]) if feedback else np.zeros((n, outputs))
    return EchoStateNetwork(
        reservoir=Reservoir(hyper, columns, values, W_u, W_y, bias, leak),
        readout=np.concatenate([weights, constant[None]]).T.copy(),
        scaling=scaling,
        washout=washout,
        padding=0,
        sampling_time=sampling_time,
        input_names=tuple(input_names) or tuple(f"u{i}" for i in range(1, inputs + 1)),
        output_names=tuple(output_names) or tuple(f"y{i}" for i in range(1, outputs + 1)),
        input_units=("",) * inputs,
        output_units=("",) * outputs,
        training_mean=scaling.outputs_back(np.zeros(outputs)),
        origin={"imported from": "reservoirpy"},
        late_readout=True,
    )


def _node(model: Any, kind: str, *arrays: str) -> Any:
    """The only node of a kind, which must be trained."""
    found = [node for node in getattr(model, "nodes", ()) if type(node).__name__ == kind]
    if len(found) != 1 or not hasattr(model, "edges"):
        raise InputError(
            f"a reservoirpy model with one {kind} node was expected, got a {type(model).__name__} with {len(found)}:"
            " give an ESN, or reservoir >> ridge (reservoirpy 0.4 or later)"
        )
    [node] = found
    if not getattr(node, "initialized", False) or any(callable(getattr(node, name, None)) for name in arrays):
        raise InputError(f"the {kind} node of the model has no weights yet: fit the model first")
    return node


def _dense(matrix: Any) -> Matrix:
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=np.float64)


def _slots(W: Matrix) -> tuple[Columns, Matrix]:
    """A matrix as the non-zeros of each row; rows with fewer are padded with zeros."""
    rows = [np.flatnonzero(row) for row in W]
    slots = max(1, max(len(found) for found in rows))
    columns, values = np.zeros((slots, len(W)), dtype=np.int64), np.zeros((slots, len(W)))
    for i, found in enumerate(rows):
        columns[: len(found), i], values[: len(found), i] = found, W[i, found]
    return columns, values
