"""The same network by other means: what a user would write with reservoirpy."""

from __future__ import annotations

import numpy as np


def scaled(training, validation):
    """Inputs and outputs to [0, 1] by the training data: u, y, u and y of the validation record."""
    low_u, span_u = training.u.min(), np.ptp(training.u)
    low_y, span_y = training.y.min(), np.ptp(training.y)
    return (
        (training.u - low_u) / span_u,
        (training.y - low_y) / span_y,
        (validation.u - low_u) / span_u,
        (validation.y - low_y) / span_y,
    )


def fit_score(measured, simulated):
    return 100 * (1 - np.linalg.norm(measured - simulated) / np.linalg.norm(measured - measured.mean()))


def reservoirpy_by_hand(data, order: int, seed: int, washout: int = 100) -> float:
    """Reservoir and Ridge nodes, the fed-back output given as a second input: the fastest way found."""
    from reservoirpy.nodes import Reservoir, Ridge

    u, y, u_new, y_new = data
    reservoir = Reservoir(order, sr=0.9, rc_connectivity=min(1.0, 10 / order), input_connectivity=1.0, seed=seed)
    readout = Ridge(ridge=1e-6)
    states = reservoir.run(np.concatenate([u, y], axis=1)[:-1])
    readout.fit(states[washout:], y[washout + 1 :])
    reservoir.reset()
    simulated = np.empty_like(y_new)
    fed = y_new[0]
    for k in range(len(u_new) - 1):
        state = reservoir(np.concatenate([u_new[k], y_new[k] if k < washout else fed]))
        fed = np.asarray(readout(state)).ravel()
        simulated[k + 1] = fed
    return fit_score(y_new[washout + 1 :], simulated[washout + 1 :])


def reservoirpy_esn(data, order: int, seed: int, washout: int = 100) -> float:
    """The ESN class with a feedback connection: the way its documentation shows."""
    from reservoirpy import ESN

    u, y, u_new, y_new = data
    model = ESN(
        units=order,
        sr=0.9,
        rc_connectivity=min(1.0, 10 / order),
        input_connectivity=1.0,
        feedback=True,
        ridge=1e-6,
        seed=seed,
    )
    model.fit(u, y, warmup=washout)
    return fit_score(y_new[washout:], model.run(u_new)[washout:])
