"""Validation: which data networks are scored on, settled before the first draw and explained in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from echobound.data import Record, as_records, default_washout, require_varying_outputs, split
from echobound.data.checks import USUAL_WASHOUT
from echobound.data.experiments import Experiments
from echobound.data.overlap import require_distinct, require_untouched
from echobound.errors import DataError, InputError
from echobound.kernels.problem import Fold, block_folds, hold_out_folds
from echobound.network.laws import LONG, Shape

BLOCKS = 4
HELD_OUT = 10_000  # samples are enough to tell networks apart, and every further one costs time


class Scheme(Protocol):
    """What a plan needs to know about the data to be settled."""

    @property
    def shape(self) -> Shape:
        """How much there is to train on."""

    @property
    def tested(self) -> bool:
        """Whether there are test data."""

    @property
    def data(self) -> str:
        """Digest of the data."""

    @property
    def samples(self) -> str:
        """Digest of the samples that are trained on and scored, whatever they are called."""

    @property
    def blocks(self) -> int | None:
        """Blocks that are scored in turn; None for a hold-out."""

    @property
    def washout(self) -> int:
        """Samples at the start of each part that do not count."""

    @property
    def folds(self) -> tuple[Fold, ...]:
        """What is trained on and what is scored."""


@dataclass(frozen=True, eq=False)
class Validation:
    """The records by what they are for, and how networks are scored on them."""

    experiments: Experiments
    blocks: int | None  # of the training data, scored in turn; None where there are validation data
    washout: int  # samples at the start of each record or block that do not count
    chosen: tuple[str, ...] = ()  # what was chosen because it was not given, a sentence each

    @property
    def shape(self) -> Shape:
        """How much there is to train on."""
        records = self.experiments.training
        return Shape(sum(len(record) for record in records), records[0].inputs, records[0].outputs)

    @property
    def tested(self) -> bool:
        """Whether there are test data."""
        return bool(self.experiments.test)

    @property
    def data(self) -> str:
        """Digest of the records and their roles."""
        return self.experiments.digest

    @property
    def samples(self) -> str:
        """Digest of the samples of training and validation data alone."""
        return self.experiments.samples

    @cached_property
    def folds(self) -> tuple[Fold, ...]:
        """What is trained on and what is scored."""
        training, validation = self.experiments.training, self.experiments.validation
        if self.blocks is None:
            return hold_out_folds(training, validation, self.washout)
        return block_folds(training, self.blocks, self.washout)


def settle_validation(
    training: Record | Iterable[Record],
    validation: Record | Iterable[Record] | None = None,
    test: Record | Iterable[Record] = (),
    *,
    blocks: int | None = None,
    washout: int | None = None,
) -> Validation:
    """Settle what is trained on, what is scored and the washout; what is not given follows from the length of the data.

    Without validation data, `blocks` = 0 holds out the end of the last training record, another number scores that many
    blocks in turn, and None chooses.

    Examples
    --------
    >>> import numpy as np
    >>> short = Record(u=np.sin(np.arange(1000.0)), y=np.cos(np.arange(1000.0)))
    >>> chosen = settle_validation(short)
    >>> chosen.blocks, chosen.washout
    (4, 50)
    >>> settle_validation(short, blocks=0).experiments.validation[0].name
    'record (validation)'
    """
    first = as_records(training, "training")
    third = () if isinstance(test, list | tuple) and not test else as_records(test, "test")
    reasons: list[str] = []
    if validation is not None:
        if blocks:
            raise InputError(f"validation data and {blocks} blocks were given: the blocks would stand in for them")
        second = as_records(validation, "validation")
        blocks = 0
    else:
        if blocks is None:
            blocks, reason = _choose_blocks(first, washout)
            reasons.append(reason)
        first, second = _held_out(first) if blocks == 0 else (first, ())
    as_records((*first, *second, *third))  # they must have the same channels and sampling time
    if washout is None:
        shortest = _shortest_part(first, blocks) if blocks else min(len(r) for r in (*first, *second))
        shortest = min([shortest, *(len(record) for record in third)])
        washout = default_washout([shortest])
        fifth = f"a fifth of the shortest {'block' if blocks else 'record'}"
        reasons.append(f"washout: {washout} samples, {fifth if washout < USUAL_WASHOUT else 'the usual'}")
    if third:
        require_varying_outputs(third, washout, "test")
        require_distinct(third)  # now, not when all networks are trained
        require_untouched(third, Experiments(first, second).roles)
    return Validation(Experiments(first, second, third), blocks or None, washout, tuple(reasons))


def _choose_blocks(training: Sequence[Record], washout: int | None) -> tuple[int, str]:
    """Blocks where the data are short and allow them, and why."""
    total = sum(len(record) for record in training)
    held_out = "the end of the training data is held out to pick the network on"
    if total >= LONG:
        return 0, f"validation: {held_out}, since {total} samples leave enough to train on"
    shortest = _shortest_part(training, BLOCKS)
    if washout is not None and shortest < 2 * washout:
        too_short = f"{BLOCKS} blocks in turn would be too short for a washout of {washout}"
        return 0, f"validation: {held_out}, since {too_short}"
    washout = default_washout([shortest]) if washout is None else washout
    try:
        for block in range(BLOCKS):
            parts = [one.part(len(one) * block // BLOCKS, len(one) * (block + 1) // BLOCKS) for one in training]
            require_varying_outputs(parts, washout)
    except DataError:
        return 0, f"validation: {held_out}, since an output does not move in one of {BLOCKS} blocks"
    return BLOCKS, (
        f"validation: {BLOCKS} blocks of the training data in turn, then the picked network is trained again on all of"
        f" them, since {total} samples are too few to give some away"
    )


def _shortest_part(training: Sequence[Record], blocks: int) -> int:
    shortest = min(len(record) for record in training)
    return shortest if len(training) >= blocks else shortest // blocks


def _held_out(training: Sequence[Record]) -> tuple[tuple[Record, ...], tuple[Record, ...]]:
    *most, last = training
    kept, held = split(last, validation=min(0.25, HELD_OUT / len(last)))
    return (*most, kept), (held,)
