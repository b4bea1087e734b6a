"""Models of every structure and with every feature of a law, made without training: small, and quick to make."""

from dataclasses import replace

import numpy as np

from echobound.data.scaling import Scaling
from echobound.draws import draw_key
from echobound.network import Cascade, CascadeModel, Committee, EchoStateNetwork, Limits, ReservoirLaw, draw_reservoir
from echobound.network.cascade import energy_factors
from echobound.network.reservoir import symmetric

CHANNELS = {"washout": 20, "padding": 7, "sampling_time": 0.5}


def _common(inputs, outputs, kind, seed):
    words = np.random.default_rng(seed)
    offsets = {"minmax": (2.0, 5.0), "standard": (0.3, 1.7), "none": (0.0, 1.0)}[kind]
    scaling = Scaling(
        kind,
        np.full(inputs, offsets[0]) + np.arange(inputs),
        np.full(inputs, offsets[1]),
        np.full(outputs, 2 * offsets[0]) - np.arange(outputs),
        np.full(outputs, 0.7 * offsets[1]),
    )
    return {
        **CHANNELS,
        "scaling": scaling,
        "input_names": tuple(f"u {i + 1}" for i in range(inputs)),
        "output_names": tuple(f"y_{i + 1}" for i in range(outputs)),
        "input_units": ("l/min",) * inputs,
        "output_units": ("°C",) * outputs,
        "training_mean": scaling.outputs_back(words.uniform(0.2, 0.6, outputs)),
        "origin": {"seed": seed},
    }


def network(inputs=1, outputs=1, *, order=12, clip=False, late=False, scaling="minmax", seed=0, nonzeros=4, **law):
    """An echo state network with a readout that is small enough for a free run that settles."""
    drawn = draw_reservoir(
        ReservoirLaw(order=order, nonzeros=nonzeros, **{"norm": 0.8, **law}), inputs, outputs, seed=seed
    )
    columns = drawn.readout_columns(outputs)
    readout = 0.25 * symmetric(draw_key(seed, 0, 0, 1), 40, (outputs, columns))
    common = _common(inputs, outputs, scaling, seed)
    model = EchoStateNetwork(reservoir=drawn, readout=readout, late_readout=late, **common)
    return _clipped(model) if clip else model


def cascade(inputs=1, outputs=1, *, clip=False, units=5, seed=0, scaling="minmax"):
    """A cascade with real and complex poles, one of them slow."""
    front = np.array([[-1.6, 0.68], [-0.4, -0.1]])
    back = np.array([[-1.93, 0.931], [0.3, 0.5]])
    key = draw_key(seed, 0, 0, 2)
    weights = symmetric(key, 41, (units, inputs * 5))
    made = Cascade(front, energy_factors(front), weights, symmetric(key, 42, (units,)), back, energy_factors(back))
    readout = 0.08 * symmetric(key, 43, (outputs, made.columns))
    readout[:, -1] = 0.2
    common = _common(inputs, outputs, scaling, seed)
    model = CascadeModel(cascade=made, drawn={}, readout=readout, **common)
    return _clipped(model) if clip else model


def _clipped(model):
    """The model with limits that its outputs reach now and then."""
    y = model.scaling.outputs(model.simulate(excitation(model, 200)).y)
    low, high = np.quantile(y, [0.2, 0.8], axis=0)
    return replace(model, limits=Limits(low, high, np.zeros(len(low))))


def zoo():
    """Models by name: every feature alone, then together, several channels, committees of one and of mixed kinds."""
    singles = {
        "plain": network(),
        "scattered": network(pattern="random"),
        "leak": network(leak=0.4),
        "leak spread": network(leak=0.3, leak_spread=0.8),
        "bias": network(bias_scale=0.5, scaling="standard"),
        "delays": network(input_delays=3, present_input=False),
        "present input": network(input_delays=0, present_input=True),
        "output delays": network(output_delays=2),
        "constant": network(constant=True),
        "clipped": network(clip=True, output_delays=1),
        "no feedback": network(feedback_scale=0.0),
        "unscaled": network(scaling="none"),
        "one state": network(order=1, nonzeros=1),
        "late readout": network(
            late=True, present_input=False, input_delays=2, output_delays=2, constant=True, leak=0.5
        ),
        "late, clipped": network(late=True, present_input=False, input_delays=0, clip=True),
        "cascade": cascade(),
        "cascade, clipped": cascade(clip=True),
        "all features": network(
            2,
            3,
            leak=0.5,
            leak_spread=0.5,
            bias_scale=0.3,
            input_delays=2,
            present_input=True,
            output_delays=2,
            constant=True,
            clip=True,
            seed=4,
        ),
        "cascade, several": cascade(2, 3, seed=5),
        "late, several": network(2, 3, late=True, present_input=False, input_delays=1, output_delays=0, seed=6),
    }
    mixed = (
        network(clip=True, seed=1),
        cascade(clip=True, seed=2),
        network(order=5, bias_scale=0.3, seed=3),
        network(late=True, present_input=False, seed=4),
    )
    return singles | {
        "committee": Committee(mixed[:3]),
        "even committee": Committee(mixed),
        "committee, several": Committee((singles["all features"], cascade(2, 3, seed=7), network(2, 3, seed=8))),
    }


def excitation(model, samples, seed=1):
    """Inputs that move through the range of the training data and a little beyond, held for some samples at a time."""
    first = getattr(model, "members", (model,))[0].scaling
    levels = np.random.default_rng(seed).uniform(-0.3, 1.3, (samples // 5 + 1, len(first.input_span)))
    return first.input_offset + first.input_span * np.repeat(levels, 5, axis=0)[:samples]
