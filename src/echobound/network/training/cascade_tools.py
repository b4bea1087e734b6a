"""What the training of a cascade works with: Gram matrices of its features and of their derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from echobound.arrays import Array, Matrix, Signal
from echobound.network.cascade import Cascade, late, section_response, taps


@dataclass(frozen=True, eq=False, slots=True)
class Stretch:
    """A stretch of training data: rows from `first` on are trained on, those from `split` on are held out."""

    u: Signal
    y: Signal
    first: int
    split: int


class CascadeTools:
    """The routines in plain NumPy. They say what is right.

    Examples
    --------
    >>> from echobound.network.cascade import energy_factors
    >>> sections = np.array([[-0.5, 0.06]])
    >>> factors = energy_factors(sections)
    >>> cascade = Cascade(sections, factors, np.array([[1.0, 0.0, 0.5]]), np.zeros(1), sections, factors)
    >>> signal = np.sin(np.arange(50.0))[:, None]
    >>> trained, held_out = CascadeTools().features_gram(cascade, [Stretch(signal, signal, 10, 40)])
    >>> trained.shape, float(trained[-2, -2]), float(held_out[-2, -2])  # the last feature is 1: it counts the rows
    ((8, 8), 30.0, 10.0)
    """

    def features_gram(self, cascade: Cascade, stretches: Sequence[Stretch]) -> tuple[Matrix, Matrix]:
        """[F, Y]'[F, Y] over the rows that are trained on, and over those that are held out."""
        size = cascade.columns + stretches[0].y.shape[1]
        trained, held_out = np.zeros((size, size)), np.zeros((size, size))
        for one in stretches:
            rows = np.concatenate([cascade.features(one.u), one.y], axis=1)
            for total, part in ((trained, rows[one.first : one.split]), (held_out, rows[one.split :])):
                total += part.T @ part
        return trained, held_out

    def jacobian_gram(self, cascade: Cascade, readout: Matrix, stretches: Sequence[Stretch]) -> Array:
        """[F, D, y]'[F, D, y] of each output over the rows that are trained on; D as in `derivatives`."""
        size = cascade.columns + cascade.parameters.size + 1
        totals = np.zeros((len(readout), size, size))
        for one in stretches:
            u = one.u[: one.split]
            features, slopes = cascade.features(u), derivatives(cascade, readout, u)
            for total, slope, y in zip(totals, slopes, one.y.T, strict=True):
                rows = np.concatenate([features, slope, y[: one.split, None]], axis=1)[one.first :]
                total += rows.T @ rows
        return totals

    def simulate(
        self, draw: Any, readouts: Sequence[Matrix], u: Signal, y: Signal, washout: int, horizon: int | None
    ) -> Array:
        """Scaled outputs ``(readout, time, output)`` after the washout, within the limits of the draw.

        Nothing is fed back: a prediction is the same as a free run.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            outputs = np.array([draw.cascade.response(one, u)[washout:] for one in readouts])
        return outputs if draw.limits is None else draw.limits.clip(outputs)


def derivatives(cascade: Cascade, readout: Matrix, u: Signal) -> Array:
    """Derivatives of each output by each parameter, ``(output, time, parameter)``, with the readout as it is."""
    z = cascade.before(u)
    h = cascade.hidden(z)
    own, linear, _ = cascade.split(readout)
    slope, inputs, signals = 1.0 - h * h, cascade.inputs, cascade.signals
    # dz by c1 and c2 of each section of the front bank: 1 / A is applied once more, to -v(k-1) and -v(k-2).
    moved = np.zeros((len(u), 2 * len(cascade.front), z.shape[1]))
    for s, (section, (a, b)) in enumerate(zip(cascade.front, cascade.front_factors, strict=True)):
        v = section_response(section, u)
        p = section_response(section, -late(v))
        for i, dv in enumerate((p, late(p))):
            for channel in range(inputs):
                at = channel * signals + 2 * s
                moved[:, 2 * s + i, at] = a * (dv + late(dv))[:, channel]
                moved[:, 2 * s + i, at + 1] = b * (dv - late(dv))[:, channel]
    through = moved @ cascade.weights.T  # (time, front parameter, unit)
    ones = np.ones((len(u), 1))
    # What enters the back bank at each unit, for weights, bias and front sections.
    lines = slope[:, :, None] * np.concatenate(
        [np.broadcast_to(np.concatenate([z, ones], axis=1)[:, None], (*h.shape, z.shape[1] + 1)),
         through.transpose(0, 2, 1)], axis=2,
    )  # fmt: skip
    behind = np.zeros((len(readout), *lines.shape))
    back = []
    for s, section in enumerate(cascade.back):
        now, then = taps(cascade.back_factors[s], own[:, :, 2 * s : 2 * s + 2])
        filtered = section_response(section, lines)
        behind += now[:, None, :, None] * filtered + then[:, None, :, None] * late(filtered)
        q = section_response(section, -late(section_response(section, h)))
        back += [dv @ now.T + late(dv) @ then.T for dv in (q, late(q))]
    behind += own[:, None, :, -1, None] * lines
    count = z.shape[1]
    front = behind[..., count + 1 :].sum(axis=2) + np.einsum("tpl,ol->otp", moved, linear)
    weights = behind[..., :count].reshape(len(readout), len(u), -1)
    return np.concatenate([weights, behind[..., count], front, np.array(back).transpose(2, 1, 0)], axis=2)
