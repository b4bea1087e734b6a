"""Copies: whether two records share data, shifted, rounded otherwise, or resampled.

Two windows of one record that start a sample apart are as good as one episode, and so is a record whose last digits
were rounded anew. So records are compared at every shift, up to small differences: the mean square of the difference,
over the samples that both have, is set against the variance there. Records of independent experiments differ at least
by the noise of their outputs, a thousandth of their movement and more; copies differ by rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from echobound.arrays import Array, Signal
from echobound.data.record import Record
from echobound.errors import DataError

ALIKE = 1e-7  # mean square of the difference, relative to the variance: 0.03 % in amplitude
FEWEST = 16  # samples in common below which a likeness is a coincidence
SHARE = 0.1  # of the shorter record that must be common
FACTORS = (2, 3, 4, 5)  # by which records are thinned out, in case one was resampled
MOST_RESAMPLED = 12  # test records up to which pairs are compared at other rates too
LONGEST_RESAMPLED = 20_000  # samples up to which two records are


@dataclass(frozen=True)
class Copy:
    """What two records have in common."""

    samples: int
    factor: int = 1  # every so manieth sample of one of them

    @property
    def words(self) -> str:
        """As in "119 samples in common"."""
        rate = "" if self.factor == 1 else f", if one is taken at every {self.factor}th sample"
        return f"{self.samples} samples in common, but for rounding{rate}"


def common(record: Record, other: Record, *, resampled: bool = True) -> Copy | None:
    """What two records have in common, at any shift and, if wanted, at other rates; None if nothing.

    Only samples are compared, not the names of channels, nor which of them are inputs.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> whole = Record(u=rng.normal(size=200), y=rng.normal(size=200))
    >>> common(whole.part(0, 120), whole.part(1, 121)).samples, common(whole.part(0, 80), whole.part(100, 180))
    (119, None)
    """
    a, b = (_channels(one) for one in (record, other))
    if a.shape[1] != b.shape[1]:
        return None
    scale = np.concatenate([a, b]).std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    middle = np.concatenate([a, b]).mean(axis=0)
    a, b = (a - middle) / scale, (b - middle) / scale
    if shared := _shared(a, b):
        return Copy(shared)
    for factor in FACTORS if resampled and len(a) + len(b) <= LONGEST_RESAMPLED else ():
        for one, two in ((a, b), (b, a)):
            for phase in range(factor):
                if shared := _shared(one[phase::factor], two):
                    return Copy(shared, factor)
    return None


def require_independent_records(records: Sequence[Record]) -> None:
    """Refuse test records that share data with each other: each episode counts once."""
    resampled = len(records) <= MOST_RESAMPLED
    for number, record in enumerate(records, start=1):
        for before, other in enumerate(records[: number - 1], start=1):
            if record.digest == other.digest:
                names = f"{before} ({other.name}) and {number} ({record.name})"
                raise DataError(f"test records {names} are the same data: give each episode once")
            if (found := common(record, other, resampled=resampled)) is not None:
                raise DataError(
                    f"test records {before} ({other.name}) and {number} ({record.name}) have {found.words}: they are"
                    " not independent episodes; give each episode once"
                )


def _channels(record: Record) -> Signal:
    return np.ascontiguousarray(np.concatenate([record.u, record.y], axis=1))


def _shared(a: Array, b: Array) -> int:
    """Number of samples in which b, at some shift, is like a; 0 if at none."""
    least = max(FEWEST, int(np.ceil(SHARE * min(len(a), len(b)))))
    if min(len(a), len(b)) < least:
        return 0
    size = 1 << (len(a) + len(b) - 1).bit_length()
    spectra = np.fft.rfft(a, size, axis=0) * np.conj(np.fft.rfft(b, size, axis=0))
    products = np.fft.irfft(spectra.sum(axis=1), size)
    shifts = np.arange(-(len(b) - least), len(a) - least + 1)  # sample k of b is compared with sample k + shift of a
    first, last = np.maximum(shifts, 0), np.minimum(shifts + len(b), len(a))
    count = last - first
    squares, variance = [], []
    for signal, start in ((a, first), (b, first - shifts)):
        sums = np.concatenate([np.zeros((1, signal.shape[1])), np.cumsum(signal, axis=0)])
        energy = np.concatenate([[0.0], np.cumsum((signal**2).sum(axis=1))])
        inside = energy[start + count] - energy[start]
        mean = (sums[start + count] - sums[start]) / count[:, None]
        squares.append(inside)
        variance.append(inside / count - (mean**2).sum(axis=1))
    difference = (squares[0] + squares[1] - 2 * products[shifts % size]) / count
    moving = np.minimum(*variance)
    # The transform errs by some 1e-12; what hardly moves there is alike without being a copy.
    like = (difference <= ALIKE * moving) & (moving > 1e-4)
    exact = [int(count[at]) for at in np.nonzero(like)[0] if _like(a, b, int(shifts[at]))]
    return max(exact, default=0)


def _like(a: Array, b: Array, shift: int) -> bool:
    """The same at one shift, without a transform: that one's errors grow with the whole record."""
    first, last = max(shift, 0), min(shift + len(b), len(a))
    one, two = a[first:last], b[first - shift : last - shift]
    moving = min(float(one.var(axis=0).sum()), float(two.var(axis=0).sum()))
    return float(((one - two) ** 2).sum(axis=1).mean()) <= ALIKE * moving
