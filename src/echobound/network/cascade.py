"""Cascade: linear filters, tanh, linear filters and a readout, without feedback; its outputs and its features.

Each bank of filters is a row of second-order sections in parallel, v(k) = x(k) - c1 v(k-1) - c2 v(k-2), which all have
the same input; a section gives two signals, a (v(k) + v(k-1)) and b (v(k) - v(k-1)), which for white noise are
orthogonal, and with the factors of `energy_factors` of variance 1 (the Kautz functions). A section may have two real
poles or a complex pair, and moves from one to the other without a jump.

The front bank is applied to each input; z(k) has its signals and the inputs themselves. The units are
h_j = tanh(w_j' z + b_j); the back bank is applied to each of them. The readout is applied to the signals of the back
bank, the units, z and a constant. Every filter starts in the steady state of its first input: as if the first sample
had been held forever before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echobound.arrays import Array, Matrix, Signal, Vector

RADIUS = 0.995
"""No pole is further from zero."""


@dataclass(frozen=True, eq=False)
class Cascade:
    """The filters and units of one cascade.

    Examples
    --------
    >>> sections = np.array([[-0.5, 0.06]])  # poles 0.2 and 0.3
    >>> factors = energy_factors(sections)
    >>> cascade = Cascade(sections, factors, np.array([[1.0, 0.0, 0.5]]), np.zeros(1), sections, factors)
    >>> cascade.inputs, cascade.units, cascade.columns, cascade.features(np.ones((5, 1))).shape
    (1, 1, 7, (5, 7))
    """

    front: Matrix  # (section, 2): c1 and c2 of each section
    front_factors: Matrix  # (section, 2): a and b of each section
    weights: Matrix  # (unit, signal): w_j; signals of z are input after input, and of each section after section
    bias: Vector  # (unit,)
    back: Matrix  # (section, 2)
    back_factors: Matrix  # (section, 2)

    @property
    def units(self) -> int:
        """Number of units."""
        return len(self.bias)

    @property
    def signals(self) -> int:
        """Signals of the front bank for each input, the input itself among them."""
        return 2 * len(self.front) + 1

    @property
    def inputs(self) -> int:
        """Number of inputs."""
        return int(self.weights.shape[1]) // self.signals

    @property
    def order(self) -> int:
        """Number of states."""
        return 2 * (len(self.front) * self.inputs + len(self.back) * self.units)

    @property
    def columns(self) -> int:
        """What the readout is applied to: for each unit its filtered signals and itself, then z, then 1."""
        return self.units * (2 * len(self.back) + 1) + int(self.weights.shape[1]) + 1

    def readout_columns(self, outputs: int) -> int:
        """Columns that a readout of this cascade has, however many outputs there are."""
        return self.columns

    @property
    def parameters(self) -> Vector:
        """All that training moves: weights, bias, and the sections of the front and the back bank."""
        return np.concatenate([part.ravel() for part in (self.weights, self.bias, self.front, self.back)])

    def with_parameters(self, values: NDArray[Any]) -> Cascade:
        """The same cascade with other parameters, in the order of `parameters`; they may be complex."""
        parts = (self.weights, self.bias, self.front, self.back)
        ends = np.cumsum([part.size for part in parts])[:-1]
        own = [one.reshape(part.shape) for one, part in zip(np.split(values, ends), parts, strict=True)]
        return replace(self, weights=own[0], bias=own[1], front=own[2], back=own[3])

    def before(self, u: Signal) -> Matrix:
        """z ``(time, signal)``."""
        parts = []
        for channel in u.T:
            parts += [*bank(self.front, self.front_factors, channel[:, None]).reshape(len(u), -1).T, channel]
        return np.stack(parts, axis=1)

    def hidden(self, z: Matrix) -> Matrix:
        """The units h ``(time, unit)``."""
        return np.asarray(np.tanh(z @ self.weights.T + self.bias))

    def features(self, u: Signal) -> Matrix:
        """What the readout is applied to, ``(time, column)``."""
        z = self.before(u)
        h = self.hidden(z)
        own = np.concatenate([bank(self.back, self.back_factors, h), h[:, :, None]], axis=2)
        return np.concatenate([own.reshape(len(u), -1), z, np.ones((len(u), 1))], axis=1)

    def response(self, readout: Matrix, u: Signal) -> Signal:
        """Outputs ``(time, output)``, without holding all features: signals are weighted before they are filtered."""
        z = self.before(u)
        h = self.hidden(z)
        own, linear, constant = self.split(readout)
        result = z @ linear.T + constant + h @ own[:, :, -1].T
        for s, (section, factors) in enumerate(zip(self.back, self.back_factors, strict=True)):
            now, then = taps(factors, own[:, :, 2 * s : 2 * s + 2])
            # x(-1) is x(0), as everything before the start.
            late = np.concatenate([h[:1], h[:-1]])
            result += section_response(section, h @ now.T + late @ then.T)
        return np.asarray(result)

    def split(self, readout: Matrix) -> tuple[Array, Matrix, Vector]:
        """The readout's weights of the units ``(output, unit, signal)``, of z, and the constants."""
        cut, outputs = self.units * (2 * len(self.back) + 1), len(readout)
        return readout[:, :cut].reshape(outputs, self.units, -1), readout[:, cut:-1], readout[:, -1]


def taps(factors: Vector, weights: Array) -> tuple[Array, Array]:
    """Weights of v(k) and v(k-1) that follow from those of the two signals of a section, in the last axis."""
    first, second = factors[0] * weights[..., 0], factors[1] * weights[..., 1]
    return first + second, first - second


def section_response(section: NDArray[Any], x: NDArray[Any]) -> NDArray[Any]:
    """v of one section for inputs ``(time, ...)``, from the steady state of the first sample."""
    from scipy.signal import lfilter  # on first use: loading it takes longer than many a simulation

    steady = x[:1] / (1.0 + section[0] + section[1])
    return np.asarray(lfilter([1.0], np.concatenate([[1.0], section]), x - x[:1], axis=0) + steady)


def late(v: NDArray[Any]) -> NDArray[Any]:
    """v(k-1): the signal one sample later, from its steady state."""
    return np.concatenate([v[:1], v[:-1]])


def bank(sections: Matrix, factors: Matrix, x: Matrix) -> Array:
    """Signals ``(time, channel, 2 section)`` of a bank that is applied to each channel."""
    parts = []
    for section, (a, b) in zip(sections, factors, strict=True):
        v = section_response(section, x)
        parts += [a * (v + late(v)), b * (v - late(v))]
    return np.stack(parts, axis=2)


def energy_factors(sections: Matrix) -> Matrix:
    """Factors for which both signals of each section have variance 1 for white noise of variance 1.

    Examples
    --------
    >>> noise = np.random.default_rng(0).standard_normal((100_000, 1))
    >>> sections = np.array([[-1.2, 0.5], [0.3, -0.2]])
    >>> bank(sections, energy_factors(sections), noise).std(axis=0).round(1).tolist()
    [[1.0, 1.0, 1.0, 1.0]]
    """
    c1, c2 = sections[:, 0], sections[:, 1]
    return np.stack([np.sqrt((1 - c2) * (1 + c2 + sign * c1) / 2) for sign in (1, -1)], axis=1)


def sections_of(poles: NDArray[np.complex128], radius: float = RADIUS) -> Matrix:
    """Pair poles to sections: complex pairs together, real ones by size; an even number of them.

    Poles outside the unit circle are mirrored at it, and none is left beyond the radius.

    Examples
    --------
    >>> sections_of(np.array([0.5, 0.25, 2.0, 0.1])).tolist()
    [[-0.35, 0.025], [-1.0, 0.25]]
    """
    size = np.abs(poles)
    size = np.where(size > 1, 1 / np.maximum(size, 1e-12), size)
    stable = np.minimum(size, radius) * np.exp(1j * np.angle(poles))
    upper = stable[stable.imag > 1e-9]
    real = np.sort(stable[np.abs(stable.imag) <= 1e-9].real)
    pairs = [(-2 * p.real, abs(p) ** 2) for p in upper]
    pairs += [(-(p + q), p * q) for p, q in zip(real[::2], real[1::2], strict=False)]
    return np.array(sorted(pairs, key=lambda one: -one[0])).reshape(-1, 2)


def free_parameters(sections: Matrix) -> Matrix:
    """Parameters of sections that may take any value: see `stable_sections`."""
    second = np.clip(sections[:, 1] / RADIUS**2, -0.9999, 0.9999)
    first = np.clip(sections[:, 0] / (RADIUS * (1 + second)), -0.9999999, 0.9999999)
    return np.arctanh(np.stack([first, second], axis=1))


def stable_sections(free: Matrix) -> tuple[Matrix, Array]:
    """Sections with all poles within the radius, and their derivatives ``(section, coefficient, parameter)``.

    c2 = r^2 tanh(q), c1 = r (1 + tanh(q)) tanh(p): the triangle of stability, shrunk.

    Examples
    --------
    >>> sections, _ = stable_sections(np.array([[-3.0, 2.0]]))
    >>> bool((np.abs(np.roots([1.0, *sections[0]])) < RADIUS).all()), free_parameters(sections).round(9).tolist()
    (True, [[-3.0, 2.0]])
    """
    p, q = np.tanh(free).T
    sections = np.stack([RADIUS * (1 + q) * p, RADIUS**2 * q], axis=1)
    slopes = np.zeros((len(free), 2, 2), dtype=free.dtype)
    slopes[:, 0, 0] = RADIUS * (1 + q) * (1 - p * p)
    slopes[:, 0, 1] = RADIUS * p * (1 - q * q)
    slopes[:, 1, 1] = RADIUS**2 * (1 - q * q)
    return sections, slopes
