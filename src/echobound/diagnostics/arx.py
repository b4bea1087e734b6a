"""ARX: linear difference equations by least squares, all orders from one factorisation.

y(k) = A_1 y(k-1) + ... + A_n y(k-n) + B_d u(k-d) + ... + B_(d+n-1) u(k-d-n+1) + c, in scaled units. An uncoupled model
has diagonal A: each output then has an equation of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from echobound.arrays import Array, Matrix, Signal, Vector

Pair = tuple[Signal, Signal]  # inputs and outputs of a piece of a record
RANK = 1e-10  # of the largest singular value: what is smaller is rounding
CHUNK = 1024  # rows of a regression in hand: they stay in the cache


@dataclass(frozen=True, slots=True)
class Structure:
    """Which past samples a linear model looks at.

    Parameters
    ----------
    own, inputs
        How many past outputs and how many samples of each input.
    delay
        The latest input that counts: u(k) for 0, u(k-1) for 1.
    coupled
        Whether each output looks at the past of all outputs, or at its own alone.
    """

    own: int
    inputs: int
    delay: int = 1
    coupled: bool = False

    @property
    def past(self) -> int:
        """Samples that must have gone by before the equation can be used."""
        return max(self.own, self.delay + self.inputs - 1)

    @property
    def words(self) -> str:
        """As in "3 past outputs, 1 input from u(k-1) on"."""
        latest = "u(k)" if not self.delay else f"u(k-{self.delay})"
        own, inputs = f"{self.own} past output{'s' * (self.own != 1)}", f"{self.inputs} input{'s' * (self.inputs != 1)}"
        return f"{own}, {inputs} from {latest} on"


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A linear difference equation with its scaling.

    Parameters
    ----------
    structure
        Which past samples it looks at.
    a, b, c
        Coefficients ``(lag, output, output)``, ``(lag, output, input)`` and ``(output,)``, in scaled units.
    centre, spread
        Means and standard deviations of the training data: inputs first, then outputs.

    Examples
    --------
    >>> u = np.sin(np.arange(300.0) ** 1.3)[:, None]
    >>> y = np.zeros_like(u)
    >>> for k in range(1, 300):
    ...     y[k] = 0.8 * y[k - 1] + 0.5 * u[k - 1]
    >>> model = Regression([(u, y)], most=3).model(Structure(1, 1))
    >>> float(abs(model.simulate(u, y[:10]) - y[10:]).max()) < 1e-9
    True
    """

    structure: Structure
    a: Array
    b: Array
    c: Vector
    centre: Vector
    spread: Vector

    @property
    def inputs(self) -> int:
        """Number of inputs."""
        return int(self.b.shape[2])

    def scaled(self, u: Signal, y: Signal) -> Pair:
        """Signals in the units of the coefficients."""
        n = self.inputs
        return (u - self.centre[:n]) / self.spread[:n], (y - self.centre[n:]) / self.spread[n:]

    def simulate(self, u: Signal, initial: Signal, first: int | None = None) -> Signal:
        """Free run over the inputs after the measured `initial` outputs; what runs off is not finite.

        The run starts at sample `first`, after the initial outputs if not given; 0 takes y(0) for the time before.
        """
        scaled, start = self.scaled(u, initial)
        with np.errstate(over="ignore", invalid="ignore"):
            free = self._free_run(scaled, start, len(start) if first is None else first)
            return free * self.spread[self.inputs :] + self.centre[self.inputs :]

    def predict(self, u: Signal, y: Signal, washout: int, horizon: int) -> Signal:
        """Outputs from sample `washout` on, each from the measured ones up to `horizon` samples before."""
        scaled, measured = self.scaled(u, y)
        drive, n = self._drive(scaled), self.structure.own
        known = padded(measured, n)  # y(k) is row k + n
        rows = np.arange(washout, len(u))
        with np.errstate(over="ignore", invalid="ignore"):
            # All rows at once, one step of the horizon after the other; those near the start have fewer to go.
            begin = np.maximum(rows - horizon + 1, 0)
            past = np.stack([known[begin + n - i] for i in range(1, n + 1)], axis=1) if n else None
            now = drive[begin]
            for step in range(horizon):
                at = begin + step
                active = at <= rows
                new = drive[np.minimum(at, len(u) - 1)]
                if past is not None:
                    new = new + np.einsum("lij,rlj->ri", self.a, past)
                    shifted = np.concatenate([new[:, None], past[:, :-1]], axis=1)
                    past = np.where(active[:, None, None], shifted, past)
                now = np.where(active[:, None], new, now)
            return now * self.spread[self.inputs :] + self.centre[self.inputs :]

    def _drive(self, u: Signal) -> Signal:
        """What the inputs and the constant add to each output."""
        found = np.broadcast_to(self.c, (len(u), len(self.c))).copy()
        for lag, gain in enumerate(self.b, start=self.structure.delay):
            # Before its start a record is taken to have been at rest, as networks are padded.
            found += delayed(u, lag) @ gain.T
        return found

    def _free_run(self, u: Signal, start: Signal, first: int) -> Signal:
        n = self.structure.own
        drive = self._drive(u)[first:]
        if not n:
            return drive
        if self.structure.coupled and self.a.shape[1] > 1:
            return self._coupled(drive, padded(start, n)[-n:])
        from scipy.signal import lfilter, lfiltic

        past = padded(start, n)[-n:][::-1]
        columns = []
        for j in range(drive.shape[1]):
            polynomial = np.r_[1.0, -self.a[:, j, j]]
            state = lfiltic([1.0], polynomial, past[:, j])
            columns.append(lfilter([1.0], polynomial, drive[:, j], zi=state)[0])
        return np.stack(columns, axis=1)

    def _coupled(self, drive: Signal, past: Signal) -> Signal:
        n, outputs = self.a.shape[:2]
        gain = np.concatenate(list(self.a[::-1]), axis=1)  # the oldest first, as the samples lie
        whole = np.concatenate([past, drive])
        flat = whole.reshape(-1)
        for k in range(len(drive)):
            flat[(k + n) * outputs : (k + n + 1) * outputs] += gain @ flat[k * outputs : (k + n) * outputs]
        return whole[n:]

    @property
    def poles(self) -> Array:
        """Poles, by magnitude, the largest first."""
        n, outputs = self.a.shape[:2] if len(self.a) else (0, 0)
        if not n:
            return np.zeros(0)
        companion = np.zeros((n * outputs, n * outputs))
        companion[:outputs] = np.concatenate(list(self.a), axis=1)
        companion[outputs:, :-outputs] = np.eye((n - 1) * outputs)
        found = np.linalg.eigvals(companion)
        return np.asarray(found[np.argsort(-np.abs(found), kind="stable")])


class Regression:
    """Least squares for all structures up to an order, from one QR factorisation of the data.

    Parameters
    ----------
    pieces
        Inputs and outputs of each piece; what lies between two is not bridged.
    most
        The largest number of past samples of a structure.
    """

    def __init__(self, pieces: Sequence[Pair], most: int) -> None:
        u, y = (np.concatenate(side) for side in zip(*pieces, strict=True))
        self.inputs, self.outputs, self.most = u.shape[1], y.shape[1], most
        both = np.concatenate([u, y], axis=1)
        self.centre, spread = both.mean(axis=0), both.std(axis=0)
        self.spread = np.where(spread > 0, spread, 1.0)
        self.rows = 0
        self._factor: Matrix = np.zeros((0, self._columns + self.outputs))
        for u, y in pieces:
            for start in range(
                0, len(u) - most, CHUNK
            ):  # a tall matrix would be read from memory again for each column
                part = slice(start, start + CHUNK + most)
                rows = self._rows(u[part], y[part])
                self._factor = np.asarray(np.linalg.qr(np.concatenate([self._factor, rows]), mode="r"))
                self.rows += len(rows)

    @property
    def _columns(self) -> int:
        """Regressors: a constant, outputs 1 to `most` samples ago, inputs 0 to `most` samples ago."""
        return int(1 + self.most * self.outputs + (self.most + 1) * self.inputs)

    def _rows(self, u: Signal, y: Signal) -> Matrix:
        n = self.inputs
        u, y = (u - self.centre[:n]) / self.spread[:n], (y - self.centre[n:]) / self.spread[n:]
        last = len(u)
        lags = [y[self.most - lag : last - lag] for lag in range(1, self.most + 1)]
        lags += [u[self.most - lag : last - lag] for lag in range(self.most + 1)]
        return np.concatenate([np.ones((last - self.most, 1)), *lags, y[self.most :]], axis=1)

    def model(self, structure: Structure) -> LinearModel:
        """The model of a structure that predicts one sample ahead with the least squared error."""
        outputs, inputs = self.outputs, self.inputs
        first = 1 + self.most * outputs
        latest = first + structure.delay * inputs
        shared = [0, *range(latest, latest + structure.inputs * inputs)]
        a = np.zeros((structure.own, outputs, outputs))
        b = np.zeros((structure.inputs, outputs, inputs))
        c = np.zeros(outputs)
        wholes = [list(range(outputs))] if structure.coupled else [[j] for j in range(outputs)]
        for group in wholes:
            own = [1 + lag * outputs + j for lag in range(structure.own) for j in group]
            columns, targets = [*own, *shared], [self._columns + j for j in group]
            found = np.linalg.lstsq(self._factor[:, columns], self._factor[:, targets], rcond=RANK)[0]
            own_part = found[: len(own)].reshape(structure.own, len(group), len(group))
            a[np.ix_(range(structure.own), group, group)] = own_part.transpose(0, 2, 1)
            c[group] = found[len(own)]
            b[:, group] = found[len(own) + 1 :].reshape(structure.inputs, inputs, len(group)).transpose(0, 2, 1)
        return LinearModel(structure, a, b, c, self.centre, self.spread)


def padded(signal: Signal, count: int) -> Signal:
    """A signal with its first sample held for `count` samples before it starts."""
    return np.concatenate([np.repeat(signal[:1], count, axis=0), signal])


def delayed(signal: Signal, lag: int) -> Signal:
    """A signal `lag` samples later, its first sample held before it starts."""
    return signal if not lag else padded(signal, lag)[: len(signal)]
