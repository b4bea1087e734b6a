"""Adaptation to online data: the readout follows new samples by recursive least squares, the reservoir stays.

A memory short enough to follow a plant that drifts is too short for the many directions of a readout: rare behaviour of
the plant fades first, and the next free run that needs it diverges. So the memory may be long, and the past is
discounted when the plant is seen to have changed: the mean of 64 prediction errors is near zero while the readout is
right, and far from zero when it is not. A cumulative sum (CUSUM) of its square raises the alarm. Samples since the sum
began to rise count in full, everything before as a few samples. Where neither says anything, two terms that do not fade
hold the readout in place: a small share of the training data, and a pull towards the trained readout that is as weak as
the ridge of the training.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from echobound.arrays import Matrix
from echobound.data.record import Record, as_records
from echobound.errors import DataError, InputError
from echobound.network.committee import Committee
from echobound.network.dynamics import features
from echobound.network.mixed_law import MixedLaw, law_drawn_from
from echobound.network.model import EchoStateNetwork
from echobound.network.plant_model import PlantModel
from echobound.network.recursive import RecursiveLeastSquares
from echobound.network.training import LeastSquares

WINDOW = 64
"""Samples whose mean prediction error is judged together."""

# The alarm, in units of the square mean error of a window of training data. In a record like those of training a window
# has 1 on average and the sum stays near 0; it takes four bad windows to raise the alarm, however bad one of them is.
ALLOWANCE, MOST, ALARM = 4.0, 10.0, 20.0
SHARE = 0.001  # of the training data, which does not fade: a plant at rest would otherwise wear the readout out
PAUSE = 8  # windows after an alarm that are not judged: the readout needs time to converge


class Adaptation:
    """A network whose readout follows new data.

    It starts from the data the network was trained on. So before the first new sample its readout is the network's own
    (as trained without training noise), and with forgetting = 1 it is always that of least squares on all the data.
    `samples` counts the new samples; `changes` lists after how many of them the plant was seen to have changed.

    Parameters
    ----------
    model
        The network, trained by least squares; its reservoir, scaling, washout and ridge stay as they are.
    training
        The records it was trained on.
    forgetting
        Weight of the past at each new sample. The memory, 1 / (1 - forgetting) samples, must be longer than the number
        of columns of the readout, better five times as long: 0.999 for 200 states. Below 1, the prediction errors are
        also watched for a change of the plant.
    kept
        When the plant has changed, all samples before count as so many at most; ``math.inf`` for plain forgetting,
        which ignores the alarm.

    Examples
    --------
    >>> from echobound import identify, ph_experiment
    >>> training, validation, later = ph_experiment(samples=(600, 400, 500))
    >>> model = identify(training, validation, law="paper", order=20, networks=20).network
    >>> adaptation = Adaptation(model, training, forgetting=0.999)
    >>> for u, y in zip(later.u, later.y):
    ...     adaptation.update(u, y)
    >>> adaptation.samples, adaptation.model.simulate(validation).y.shape
    (420, (320, 1))
    >>> adaptation.changes  # the same plant as in training
    []
    """

    def __init__(
        self, model: PlantModel, training: Record | Iterable[Record], forgetting: float = 1.0, kept: float = 60.0
    ) -> None:
        if not isinstance(model, EchoStateNetwork):
            raise InputError(
                "adaptation continues the least squares of one echo state network, but this model is a"
                f" {type(model).__name__}: give such a network, one of its members for example"
            )
        if not kept >= 0:
            raise InputError(f"kept must be a number of samples, 0 or more, got {kept}")
        trained_by = _training_of(model)
        if trained_by != LeastSquares.kind:
            raise InputError(
                f"adaptation continues training by least squares, but this network was trained by {trained_by}: take a"
                " network of a law that is trained by least squares"
            )
        self._base, self.kept = model, float(kept)
        hyper = model.reservoir.hyper
        inputs, outputs = len(model.input_names), len(model.output_names)
        self._delays = max(hyper.input_delays, hyper.output_delays)
        self._ridge = float(model.origin.get("ridge", 0.0))
        self._solver = RecursiveLeastSquares(hyper.columns(inputs, outputs), outputs)
        records = as_records(training)
        for record in records:
            self.restart()
            self._solver.update(*self._rows(record.u, record.y))
        self._solver.mark()
        self._solver.forget(forgetting)
        self.samples, self.changes = 0, list[int]()
        if self._solver.forgetting < 1:
            self._readout = self._solver.readout(self._ridge)
            self._usual = self._usual_error(records)
            self._error, self._judged = np.zeros(outputs), 0  # of the window that is not full yet: sum, samples
            self._sum, self._pause = 0.0, 0
            self._solver.anchor(self._readout, self._ridge, SHARE)
        self.restart()

    def _usual_error(self, records: Iterable[Record]) -> Matrix:
        """Square of the mean error of a window of training data, on average, for each output."""
        squares, windows = np.zeros(len(self._base.output_names)), 0
        for record in records:
            self.restart()
            phi, y = self._rows(record.u, record.y)
            size = max(min(WINDOW, len(phi)), 1)  # a record shorter than a window is one
            whole = len(phi) // size * size
            means = (y - phi @ self._readout.T)[:whole].reshape(-1, size, y.shape[1]).mean(axis=1)
            squares += np.square(means).sum(axis=0)
            windows += len(means)
        return np.maximum(squares / max(windows, 1), np.finfo(float).tiny)  # noise-free data: errors are divided by it

    def restart(self) -> None:
        """Announce that the next sample begins another record, whose washout is not learnt."""
        self._position = 0

    def update(self, u: ArrayLike, y: ArrayLike) -> None:
        """Take the next inputs and measured outputs of a record, in their own units.

        They are one sample ``(channel,)``, or several ``(time, channel)``.
        """
        phi, y = self._rows(u, y)
        if self._solver.forgetting == 1:
            self._solver.update(phi, y)
            self.samples += len(phi)
            return
        while len(phi):  # a window ends after so many samples, in whatever pieces they come
            n = min(WINDOW - self._judged, len(phi))
            self._error += (y[:n] - phi[:n] @ self._readout.T).sum(axis=0)
            self._solver.update(phi[:n], y[:n])
            self.samples += n
            self._judged += n
            if self._judged == WINDOW:
                self._judge()
            phi, y = phi[n:], y[n:]

    def _judge(self) -> None:
        """Add the mean error of a window to the sum, and discount the past if that raises the alarm."""
        size = float((np.square(self._error / WINDOW) / self._usual).mean())
        if self._pause:
            self._pause -= 1
        else:
            self._sum = max(0.0, self._sum + min(size, MOST) - ALLOWANCE)
        if self._sum > ALARM:
            self._solver.discount(self.kept)
            self._sum, self._pause = 0.0, PAUSE
            self.changes.append(self.samples)
        elif self._sum == 0:
            self._solver.mark()  # nothing suspicious so far: if the plant changes, it is after this
        self._error[:], self._judged = 0.0, 0
        self._readout = self._solver.readout(self._ridge)

    def _rows(self, u: ArrayLike, y: ArrayLike) -> tuple[Matrix, Matrix]:
        """phi and scaled y of the next samples of a record, without those of its washout."""
        base, hyper = self._base, self._base.reservoir.hyper
        u = base.scaling.inputs(base._inputs(_several(u, len(base.input_names))))
        y = base.scaling.outputs(base._outputs(_several(y, len(base.output_names))))
        if len(u) != len(y):
            raise DataError(f"as many inputs as outputs are needed, got {len(u)} and {len(y)} samples")
        drives = base.reservoir.drive(u)
        if self._position == 0:  # as in training: the first sample is held before a record starts
            self._x = np.zeros(base.order)
            for _ in range(base.padding):
                self._x = base.reservoir.step(self._x, drives[0], y[0])
            self._before = u[:1].repeat(self._delays, axis=0), y[:1].repeat(self._delays, axis=0)
        states = np.empty((len(u), base.order))
        for k, drive in enumerate(drives):
            states[k] = self._x
            self._x = base.reservoir.step(self._x, drive, y[k])
        all_u, all_y = np.concatenate([self._before[0], u]), np.concatenate([self._before[1], y])
        times = np.arange(self._delays, len(all_u))
        phi = features(hyper, states, all_u, all_y, times, all_y[0])
        skipped = max(base.washout - self._position, 0)
        self._before = all_u[len(u) :], all_y[len(y) :]
        self._position += len(u)
        return phi[skipped:], y[skipped:]

    @property
    def model(self) -> EchoStateNetwork:
        """The network with its present readout, and with the limits that it was trained with, if it has any.

        Computing it costs more than a sample: ask for it when you need it.
        """
        base, readout = self._base, self._solver.readout(self._ridge)
        return replace(base, readout=readout, origin={**base.origin, "adapted": self.samples})


def adapt_all(
    model: PlantModel | Committee, training: Iterable[Record], records: Iterable[Record], forgetting: float
) -> tuple[PlantModel | Committee, Adaptation, int]:
    """Let a model follow new records, one after the other: a network, or each member of a committee by itself.

    Members whose readout is not one of least squares cannot follow and are left out. It returns the adapted model, the
    adaptation of the network or of the best member that took part, and how many members were left out.

    Examples
    --------
    >>> from echobound import identify, ph_experiment
    >>> training, validation, later = ph_experiment(samples=(400, 300, 200))
    >>> committee = identify(training, validation, law="paper", order=10, networks=20, committee=3).model
    >>> adapted, first, left_out = adapt_all(committee, [training], [later], forgetting=0.999)
    >>> len(adapted.members), first.samples == later.u.shape[0] - committee.washout, left_out
    (3, True, 0)
    """
    members = model.members if isinstance(model, Committee) else (model,)
    able = [one for one in members if _training_of(one) == LeastSquares.kind] or list(members[:1])  # refused below
    training, records, followed = list(training), list(records), list[Adaptation]()
    for one in able:
        adaptation = Adaptation(one, training, forgetting)
        for record in records:
            adaptation.restart()
            adaptation.update(record.u, record.y)
        followed.append(adaptation)
    adapted = [one.model for one in followed]
    whole = Committee(tuple(adapted)) if isinstance(model, Committee) else adapted[0]
    return whole, followed[0], len(members) - len(able)


def _training_of(model: PlantModel) -> str:
    """The kind of training by which a network was made.

    Networks from elsewhere have no law: their readout is taken for one of least squares without a ridge.
    """
    origin = model.origin
    law: Mapping[str, Any] = origin.get("law", {})
    if law.get("kind") == MixedLaw.kind:  # each kind of a mixed law has a training of its own
        law = law_drawn_from(origin).to_dict()
    return str(law.get("training", {}).get("kind", LeastSquares.kind))


def _several(values: ArrayLike, channels: int) -> Matrix:
    """One sample ``(channel,)`` as one row; anything else as it is."""
    array = np.asarray(values, dtype=np.float64)
    return array[None] if array.ndim == 1 and len(array) == channels else array
