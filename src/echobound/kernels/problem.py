"""Problem: everything that turns a draw into a row. A fold is what is trained on and what is scored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from echobound.arrays import Signal, Vector, Words
from echobound.data.checks import require_longer_than_washout, require_varying_outputs
from echobound.data.record import Record, as_records
from echobound.data.scaling import Scaling
from echobound.draws import DISTURBANCE, SEARCH, draw_key, unit, words
from echobound.errors import DataError, InputError
from echobound.network.law import NetworkLaw
from echobound.network.limits import Limits
from echobound.network.training import TrainingData, TrainingSegment
from echobound.scores import Score

INPUT_NOISE = 0.02  # standard deviations of each input, for scores that ask how much a model minds
RUN_OVER = 10_000  # samples at the end of each training record are enough to see how a model runs over them


@dataclass(frozen=True, slots=True)
class Segment:
    """Samples `start` to `stop` (exclusive) of record number `record`; the first `washout` do not count."""

    record: int
    start: int
    stop: int
    washout: int

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.stop or not 0 <= self.washout < self.stop - self.start:
            raise DataError(
                f"washout={self.washout} must be shorter than the record ({self.stop - self.start} samples):"
                " shorten it or give more data"
            )

    @property
    def counted(self) -> int:
        """Samples that are trained on or scored."""
        return self.stop - self.start - self.washout


@dataclass(frozen=True, slots=True)
class Fold:
    """What is trained on, and what is scored."""

    training: tuple[Segment, ...]
    scored: tuple[Segment, ...]


@dataclass(frozen=True, eq=False)
class FoldData:
    """A fold's signals, scaled: one array for each segment."""

    scaling: Scaling
    training: tuple[tuple[Signal, Signal], ...]
    scored: tuple[tuple[Signal, Signal], ...]
    output_spread: Vector  # standard deviation of each scaled training output
    limits: Limits  # of the training outputs, scaled


@dataclass(frozen=True, eq=False)
class Problem:
    """Data, law and scores: everything `evaluate(problem, indices)` needs to turn indices into rows.

    Together with an index, `seed`, `stream` and `family` identify a draw.
    """

    records: tuple[Record, ...]  # the experiments that the folds refer to
    folds: tuple[Fold, ...]  # a hold-out is one fold; the score over several is their mean
    law: NetworkLaw
    scores: tuple[Score, ...]  # the first one selects; the others are recorded
    seed: int = 0
    stream: int = SEARCH
    family: int = 0
    horizon: int | None = None  # None scores the free run; k scores the prediction k samples ahead

    def __post_init__(self) -> None:
        if not self.folds or not self.scores or not all(fold.training and fold.scored for fold in self.folds):
            raise InputError("a problem needs a score and at least one fold with segments to train on and to score")
        # Checked here once, since slices beyond the end of a record would be shorter without a word.
        for segment in (s for fold in self.folds for s in (*fold.training, *fold.scored)):
            if not 0 <= segment.record < len(self.records) or segment.stop > len(self.records[segment.record]):
                raise InputError(f"{segment} is not within the {len(self.records)} records of the problem")
        _require_whole_numbers(horizon=self.horizon)
        if self.horizon is not None and self.horizon < 1:
            raise InputError(f"the horizon must be at least 1 sample, got {self.horizon}")

    @property
    def inputs(self) -> int:
        """Number of input channels."""
        return self.records[0].inputs

    @property
    def outputs(self) -> int:
        """Number of output channels."""
        return self.records[0].outputs

    def on(self, stream: int) -> Problem:
        """The same problem for another stream of draws."""
        return replace(self, stream=stream)

    def of_family(self, family: int, law: NetworkLaw) -> Problem:
        """The same problem for another family of draws."""
        return replace(self, law=law, family=family)

    def of_law(self, law: NetworkLaw) -> Problem:
        """The same problem for another law: that of one kind of draws, or with one alternative of its training."""
        other = replace(self, law=law)
        for name in ("_scaled", "measured", "limits"):  # the data are the same, and need not be scaled again
            other.__dict__[name] = getattr(self, name)
        if "whole" in self.__dict__:
            other.__dict__["whole"] = self.whole.of_law(law)
        return other

    def key(self, index: int) -> Words:
        """Key of the random words of draw `index`."""
        return draw_key(self.seed, self.stream, self.family, index)

    def draw(self, index: int) -> Any:
        """Draw number `index`, of whatever kind it is."""
        return self.law.draw_at(self.inputs, self.outputs, self.seed, self.stream, self.family, index)

    def on_fold(self, fold: int, draw: Any) -> Any:
        """A draw with the limits of the data that it is trained on in one fold, if its law clips outputs."""
        return draw.within(self.scaled(fold, draw.hyper.scaling).limits) if draw.law.clip else draw

    def signals(self, segment: Segment) -> tuple[Signal, Signal]:
        """Inputs and outputs of a segment, in the data's own units."""
        record = self.records[segment.record]
        return record.u[segment.start : segment.stop], record.y[segment.start : segment.stop]

    @cached_property
    def measured(self) -> tuple[Signal, ...]:
        """For each fold the outputs that are scored, in the data's own units."""
        return tuple(
            np.concatenate([self.signals(segment)[1][segment.washout :] for segment in fold.scored])
            for fold in self.folds
        )

    @cached_property
    def limits(self) -> tuple[Limits, ...]:
        """For each fold the limits of its training outputs, in the data's own units."""
        return tuple(Limits.of([self.signals(segment)[1] for segment in fold.training]) for fold in self.folds)

    @property
    def demanding(self) -> bool:
        """Whether a score asks for more than the scored samples: how the model itself runs over its training data."""
        return any(score.demand is not None for score in self.scores)

    @cached_property
    def whole(self) -> Problem:
        """The problem of the last fit: trained on all training data, and run over them, also with noisy inputs.

        Of a hold-out, the training data are those of its one fold. The noise is the same for all draws; it follows from
        the seed, and is 2 % of each input's standard deviation. Of long records only the end is run over.
        """
        if len(self.folds) == 1:
            training = self.folds[0].training
        else:
            washout = self.folds[0].scored[0].washout
            training = tuple(Segment(number, 0, len(record), washout) for number, record in enumerate(self.records))
        if not self.demanding:
            # A problem needs something to score; what this fit scores on its own training data is used by nobody.
            return replace(self, folds=(Fold(training, training),))
        ends = tuple(replace(s, start=max(s.start, s.stop - s.washout - RUN_OVER)) for s in training)
        noisy = tuple(replace(segment, record=len(self.records) + number) for number, segment in enumerate(ends))
        spread = np.concatenate([self.signals(segment)[0] for segment in training]).std(axis=0)
        copies = tuple(self._disturbed(number, ends[number], spread) for number in range(len(ends)))
        return replace(self, records=(*self.records, *copies), folds=(Fold(training, (*ends, *noisy)),))

    def _disturbed(self, number: int, segment: Segment, spread: Vector) -> Record:
        """The record of a segment with noise on its inputs."""
        record = self.records[segment.record]
        key = draw_key(self.seed, DISTURBANCE, 0, number)
        levels = unit(words(key, 0, record.u.size)).reshape(record.u.shape)
        u = record.u + np.sqrt(3.0) * INPUT_NOISE * spread * (2.0 * levels - 1.0)
        return replace(record, u=u, name=f"{record.name} (noisy inputs)")

    def scores_of(self, outputs: Sequence[Signal], whole: Signal | None = None) -> Vector:
        """Every score of a model, from its outputs on each fold and, for one that demands it, over the training data.

        `whole` has the outputs for the inputs as measured, and then as many for noisy ones. Without it, all scores are
        those of the folds alone.
        """
        folds = list(zip(self.measured, outputs, strict=True))
        means = [float(np.mean([score(measured, simulated) for measured, simulated in folds])) for score in self.scores]
        return np.array(means if whole is None else self.demanded(means, whole))

    def demanded(self, means: Sequence[float], whole: Signal) -> list[float]:
        """Every score of a model, from its means over the folds and its outputs over the training data."""
        half = len(whole) // 2
        measured = self.whole.measured[0][:half]
        return [
            score.demanded(mean, measured, whole[:half], whole[half:])
            for score, mean in zip(self.scores, means, strict=True)
        ]

    @cached_property
    def _scaled(self) -> dict[tuple[int, str], FoldData]:
        return {}

    def scaled(self, fold: int, kind: str) -> FoldData:
        """A fold's data, scaled in one of the ways that a law can draw; the scaling is fitted on training segments."""
        cache = self._scaled  # two threads may compute the same entry, or even two dictionaries: the values are equal
        if (fold, kind) not in cache:
            cache[fold, kind] = self._scale(self.folds[fold], kind)
        return cache[fold, kind]

    def _scale(self, fold: Fold, kind: str) -> FoldData:
        scaling = Scaling.fit(kind, [self.records[s.record].part(s.start, s.stop) for s in fold.training])
        training, scored = (
            tuple((scaling.inputs(u), scaling.outputs(y)) for u, y in map(self.signals, segments))
            for segments in (fold.training, fold.scored)
        )
        spread = np.concatenate([y for _, y in training]).std(axis=0)
        limits = Limits.of([self.signals(segment)[1] for segment in fold.training])
        low, high = scaling.outputs(limits.low), scaling.outputs(limits.high)
        return FoldData(scaling, training, scored, spread, Limits(low, high, limits.share))

    def training_data(self, fold: int, draw: Any) -> TrainingData:
        """What a draw is trained on in one fold, scaled as it was drawn and with its training noise."""
        data, segments = self.scaled(fold, draw.hyper.scaling), self.folds[fold].training
        fed = draw.fed_back([y for _, y in data.training], data.output_spread)
        return [
            TrainingSegment(u, y, y_fed, segment.washout)
            for segment, (u, y), y_fed in zip(segments, data.training, fed, strict=True)
        ]


def hold_out(
    training: Record | Iterable[Record],
    validation: Record | Iterable[Record],
    *,
    law: NetworkLaw,
    scores: Sequence[Score],
    washout: int = 100,
    seed: int = 0,
    horizon: int | None = None,
) -> Problem:
    """The problem of training on some experiments and scoring on others.

    Examples
    --------
    >>> from echobound.network import paper
    >>> from echobound.scores import get_score
    >>> record = Record(u=np.sin(np.arange(50.0)), y=np.cos(np.arange(50.0)))
    >>> problem = hold_out(record, record, law=paper(10), scores=[get_score("fit")], washout=10)
    >>> problem.measured[0].shape
    (40, 1)
    """
    first, second = as_records(training, "training"), as_records(validation, "validation")
    records, folds = as_records((*first, *second)), hold_out_folds(first, second, washout)
    return Problem(records, folds, law, tuple(scores), seed=seed, horizon=horizon)


def hold_out_folds(training: Sequence[Record], validation: Sequence[Record], washout: int) -> tuple[Fold, ...]:
    """Train on some records and score on others; their numbers run on from training to validation records."""
    _require_whole_numbers(washout=washout)
    require_longer_than_washout(training, washout, "training")
    require_varying_outputs(validation, washout, "validation")
    records = (*training, *validation)
    segments = tuple(Segment(number, 0, len(record), washout) for number, record in enumerate(records))
    return (Fold(training=segments[: len(training)], scored=segments[len(training) :]),)


def blocks_in_turn(
    training: Record | Iterable[Record],
    blocks: int = 4,
    *,
    law: NetworkLaw,
    scores: Sequence[Score],
    washout: int = 100,
    seed: int = 0,
    horizon: int | None = None,
) -> Problem:
    """The problem of scoring each block of the training data in turn, with networks trained on the others.

    Every record is cut into as many parts of equal length as there are blocks; block j is part j of every record. With
    at least as many experiments as blocks, a block is made of whole experiments instead. Each scored part, and each
    piece that is trained on, starts with a washout of its own; pieces that are not longer than it are left out.

    Examples
    --------
    >>> from echobound.network import paper
    >>> from echobound.scores import get_score
    >>> record = Record(u=np.sin(np.arange(90.0)), y=np.cos(np.arange(90.0)))
    >>> problem = blocks_in_turn(record, 3, law=paper(10), scores=[get_score("fit")], washout=10)
    >>> [(s.start, s.stop) for s in problem.folds[1].training], [len(y) for y in problem.measured]
    ([(0, 30), (60, 90)], [20, 20, 20])
    """
    records = as_records(training, "training")
    return Problem(records, block_folds(records, blocks, washout), law, tuple(scores), seed=seed, horizon=horizon)


def block_folds(records: Sequence[Record], blocks: int, washout: int) -> tuple[Fold, ...]:
    """Score each block of the records in turn and train on what is left of them; see `blocks_in_turn`."""
    _require_whole_numbers(blocks=blocks, washout=washout)
    if blocks < 2:
        raise InputError(f"at least 2 blocks are needed, to score one and train on the others, got {blocks}")
    require_longer_than_washout(records, washout, "training")
    folds = []
    for block in range(blocks):
        if len(records) >= blocks:
            scored = [(i, 0, len(record)) for i, record in enumerate(records) if i % blocks == block]
        else:
            scored = [(i, len(r) * block // blocks, len(r) * (block + 1) // blocks) for i, r in enumerate(records)]
        left = set(range(len(records))) - {i for i, _, _ in scored}
        pieces = [(i, 0, len(records[i])) for i in left]
        pieces += [piece for i, a, b in scored for piece in ((i, 0, a), (i, b, len(records[i])))]
        parts = [records[i].part(a, b, name=f"block {block + 1} of {records[i].name}") for i, a, b in scored]
        require_varying_outputs(parts, washout, f"block-{block + 1}")
        # Sorted, since sums over segments run in this order and must be the same everywhere.
        trained = tuple(Segment(*piece, washout) for piece in sorted(pieces) if piece[2] - piece[1] > washout)
        folds.append(Fold(trained, tuple(Segment(*piece, washout) for piece in scored)))
    return tuple(folds)


def _require_whole_numbers(**values: int | None) -> None:
    for name, value in values.items():
        if value is not None and not isinstance(value, int | np.integer):
            raise InputError(f"{name} must be a whole number, got {value!r}")
