"""The equations of all members as plain arrays, for targets that read them from a file."""

from __future__ import annotations

from typing import Any

import numpy as np

from echobound.network import Stepper

MATRICES = ("activation", "readout", "next_state", "at_rest", "settled")


def member_arrays(stepper: Stepper) -> list[dict[str, Any]]:
    """Of each member its matrices (sparse) and vectors by name."""
    result = []
    for one, part in zip(stepper.equations, stepper.parts, strict=True):
        infinite = np.full(one.outputs, np.inf)
        low, high = (-infinite, infinite) if one.limits is None else (one.limits.low, one.limits.high)
        found: dict[str, Any] = {name: getattr(one, name) for name in MATRICES}
        found |= {"bias": one.bias, "constant": one.constant, "mean": one.mean, "low": low, "high": high}
        found |= {"clipped": one.limits is not None, "units_first": one.units_first}
        found |= {"padding": one.padding, "padding_without_outputs": one.padding_without_outputs}
        found |= {"starts_from_mean": one.starts_from_mean, "states": one.states, "units": one.units}
        found |= {"first": part.start, **one.scaling.to_arrays()}
        result.append(found)
    return result
