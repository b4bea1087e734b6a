"""Copies: whether two records share data, shifted, rounded otherwise, resampled, or in other units.

Two windows of one record that start a sample apart are as good as one episode, and so is a record whose last digits
were rounded anew. So records are compared at every shift, up to small differences: the mean square of the difference,
over the samples that both have, is set against the variance there. Records of independent experiments differ at least
by the noise of their outputs, a thousandth of their movement and more; copies differ by rounding.

At other rates, samples of one record lie between those of the other, but for those at which both clocks meet. So
records are thinned out by small numbers and compared again; and as a whole, one is interpolated to as many samples as
the other. In other units, with another sign or with its channels in another order, a record correlates with the
original in each of its channels, as nothing does that has noise of its own.

What is not found: a window at a rate that is no ratio of small numbers, and what was filtered.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray

from echobound.arrays import Array, Mask, Signal
from echobound.data.record import Record
from echobound.errors import DataError

ALIKE = 1e-7  # mean square of the difference, relative to the variance: 0.03 % in amplitude
FEWEST = 16  # samples in common below which a likeness is a coincidence
SHARE = 0.1  # of the shorter record that must be common
STRETCH = 64  # samples that are enough whatever the share, where the excitation is rich; see `_shared`
RICH = 8  # different values of a channel: with fewer, independent experiments are alike by chance now and then
RATES = 5  # records are thinned out by up to so many, in case one was resampled
NEAR = 1e-3  # standard deviations between samples that may be one, at whatever time
INTERPOLATED = 0.02  # standard deviations by which interpolation may err, but for the samples next to steps
MOST = 0.8  # of the samples that must agree to that
OTHER_UNITS = 0.5  # of the shorter record that must be common where scales may differ
LONGEST = 100_000  # samples of two records together, up to which other rates and units are looked at
MOST_CHANNELS = 4  # records of more are not looked at with their channels in another order

Places = NDArray[np.int64]


@dataclass(frozen=True)
class Copy:
    """What two records have in common."""

    samples: int
    rates: tuple[int, int] = (1, 1)  # every so manieth sample of the one, and of the other
    how: str = ""  # what else was changed

    @property
    def words(self) -> str:
        """As in "119 samples in common"."""
        rates = [
            f"every {_nth(rate)} sample of the {of}"
            for rate, of in zip(self.rates, ("first", "second"), strict=True)
            if rate > 1
        ]
        rate = f", taking {' and '.join(rates)}" if rates else ""
        return f"{self.samples} samples in common, but for rounding{self.how}{rate}"


def common(record: Record, other: Record) -> Copy | None:
    """What two records have in common, at any shift, at other rates, and in other units; None if nothing.

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
    both = np.concatenate([a, b])
    scale = both.std(axis=0)
    scale, middle = np.where(scale > 0, scale, 1.0), both.mean(axis=0)
    one, two = (a - middle) / scale, (b - middle) / scale
    if shared := _shared(one, two):
        return Copy(shared)
    if len(both) > LONGEST:
        return None
    nearest = _nearest(one, two)
    if shared := _stretch(one, two, nearest):
        return Copy(shared)
    if (nearest >= 0).sum() >= FEWEST:  # a quick sieve: at other rates, some samples are the same all the same
        near = {
            (rate, i): _may_share(nearest[i::rate] >= 0, len(two)) for rate in range(1, RATES + 1) for i in range(rate)
        }
        for rates in _rates():
            for i, j in product(range(rates[0]), range(rates[1])):
                if not near[rates[0], i]:
                    continue
                if shared := _shared(one[i :: rates[0]], two[j :: rates[1]]):
                    return Copy(shared, rates)
    if shared := _interpolated(one, two):
        return Copy(shared, how=" and interpolation")
    if shared := _in_other_units(a, b):
        return Copy(shared, how=", scale, sign and order of channels")
    return None


def require_independent_records(records: Sequence[Record]) -> None:
    """Refuse test records that share data with each other: each episode counts once."""
    for number, record in enumerate(records, start=1):
        for before, other in enumerate(records[: number - 1], start=1):
            if record.digest == other.digest:
                names = f"{before} ({other.name}) and {number} ({record.name})"
                raise DataError(f"test records {names} are the same data: give each episode once")
            if (found := common(other, record)) is not None:
                raise DataError(
                    f"test records {before} ({other.name}) and {number} ({record.name}) have {found.words}: they are"
                    " not independent episodes; give each episode once"
                )


def _nth(number: int) -> str:
    return {2: "2nd", 3: "3rd"}.get(number, f"{number}th")


def _channels(record: Record) -> Signal:
    return np.ascontiguousarray(np.concatenate([record.u, record.y], axis=1))


def _rates() -> Iterator[tuple[int, int]]:
    """Pairs of numbers to thin two records out by, the smallest first."""
    numbers = product(range(1, RATES + 1), range(1, RATES + 1))
    return iter(sorted((pair for pair in numbers if pair != (1, 1) and math.gcd(*pair) == 1), key=sum))


def _least(a: Array, b: Array) -> int:
    return max(FEWEST, math.ceil(SHARE * min(len(a), len(b))))


def _shared(a: Array, b: Array) -> int:
    """Number of samples in which b, at some shift, is like a; 0 if at none.

    They must be a tenth of the shorter record, or a stretch in which all channels take many values: two experiments
    with an excitation of two levels and little noise do have a stretch in common now and then.
    """
    least = min(_least(a, b), STRETCH)
    if min(len(a), len(b)) < least:
        return 0
    products, shifts, size = _correlations(a, b, least)
    first, last = np.maximum(shifts, 0), np.minimum(shifts + len(b), len(a))
    count = last - first
    sides = ((a, first), (b, first - shifts))
    squares = [energy[start + count] - energy[start] for energy, start in ((_energy(x), start) for x, start in sides)]
    difference = (squares[0] + squares[1] - 2 * products.sum(axis=1)[shifts % size]) / count
    # No variance is above the mean square, which is known already: most shifts need none.
    some = np.nonzero(difference <= 1.001 * ALIKE * np.minimum(*squares) / count)[0]
    variance = [_moments(signal, start[some], count[some])[1].sum(axis=1) for signal, start in sides if len(some)]
    moving = np.minimum(*variance) if variance else np.zeros(0)
    # The transform errs by some 1e-12; what hardly moves there is alike without being a copy.
    like = some[(difference[some] <= ALIKE * moving) & (moving > 1e-4)]
    for at in like[np.argsort(-count[like], kind="stable")]:
        one, two = a[first[at] : last[at]], b[first[at] - shifts[at] : last[at] - shifts[at]]
        enough = count[at] >= _least(a, b) or all(len(np.unique(x)) >= RICH for x in one.T)
        if enough and _like(one, two):
            return int(count[at])
    return 0


def _correlations(a: Array, b: Array, least: int) -> tuple[Array, Places, int]:
    """Sums of products of each channel, by shifts that leave so many samples; the shifts; the length of a period."""
    size = 1 << (len(a) + len(b) - 1).bit_length()
    products = np.fft.irfft(np.fft.rfft(a, size, axis=0) * np.conj(np.fft.rfft(b, size, axis=0)), size, axis=0)
    shifts = np.arange(-(len(b) - least), len(a) - least + 1)  # sample k of b is compared with sample k + shift of a
    return products, shifts, size


def _energy(signal: Array) -> Array:
    """Sum of squares of all channels up to each sample."""
    return np.concatenate([[0.0], np.cumsum((signal**2).sum(axis=1))])


def _moments(signal: Array, start: Places, count: Places) -> tuple[Array, Array, Array]:
    """Sum of squares, variance and mean of each channel over stretches of a signal."""
    sums, energy = (np.concatenate([np.zeros((1, x.shape[1])), np.cumsum(x, axis=0)]) for x in (signal, signal**2))
    mean = (sums[start + count] - sums[start]) / count[:, None]
    inside = energy[start + count] - energy[start]
    return inside, inside / count[:, None] - mean**2, mean


def _like(one: Array, two: Array) -> bool:
    """The same, without a transform: that one's errors grow with the whole record."""
    moving = min(float(one.var(axis=0).sum()), float(two.var(axis=0).sum()))
    return float(((one - two) ** 2).sum(axis=1).mean()) <= ALIKE * moving


def _nearest(a: Array, b: Array) -> Array:
    """For each sample of a, which one of b is near to it, at whatever time; -1 if none is."""
    from scipy.spatial import cKDTree

    distance, nearest = cKDTree(b).query(a, distance_upper_bound=NEAR * math.sqrt(a.shape[1]))
    return np.where(np.isfinite(distance), nearest, -1)


def _may_share(near: Mask, other: int) -> bool:
    """Whether `_shared` may find a copy among samples of which these are near to some sample of the other record.

    Where the mean square of the difference is `ALIKE` of the variance of a stretch, nine tenths of its samples are
    `NEAR`, or half of them where the stretch varies five times as much as the record. So there is a piece of the
    shortest length that counts in which half are. It spares a long record most of what it would be compared with.
    """
    least = min(max(FEWEST, math.ceil(SHARE * min(len(near), other // RATES))), STRETCH)
    counts = np.concatenate([[0], np.cumsum(near)])
    return len(near) >= least and int((counts[least:] - counts[:-least]).max()) >= least // 2


def _stretch(a: Array, b: Array, nearest: Array) -> int:
    """Length of a stretch of a that is one of b, whatever surrounds it; 0 if there is none."""
    # Stretches whose samples follow each other in both.
    ends = np.flatnonzero((np.diff(nearest) != 1) | (nearest[1:] < 0)) + 1
    starts, stops = np.concatenate([[0], ends]), np.concatenate([ends, [len(nearest)]])
    longest = int(np.argmax(stops - starts))
    start, stop = int(starts[longest]), int(stops[longest])
    one, two = a[start:stop], b[nearest[start] : nearest[start] + stop - start]
    if stop - start < STRETCH or nearest[start] < 0 or not all(len(np.unique(x)) >= RICH for x in one.T):
        return 0
    return stop - start if _like(one, two) else 0


def _interpolated(a: Array, b: Array) -> int:
    """Number of samples that agree if one record, interpolated as a whole to as many samples, is the other."""
    if len(a) == len(b) or min(len(a), len(b)) < FEWEST:
        return 0
    return max(_as_interpolated(*pair) for pair in ((a, b), (b, a)))


def _as_interpolated(a: Array, b: Array) -> int:
    """Number of samples of a that agree with b, interpolated as a whole to as many samples."""
    ratio = len(b) / len(a)
    # Both records end at the same time; or each sample stands for as much time; or every so manieth was taken.
    for end in (len(b) - 1, (len(a) - 1) * ratio, (len(a) - 1) * round(ratio)):
        other = np.column_stack([np.interp(np.linspace(0, end, len(a)), np.arange(len(b)), x) for x in b.T])
        # Beside a step interpolation errs by half of it, so most samples must agree; not all of them at rest.
        near = (np.abs(a - other) <= INTERPOLATED).all(axis=1)
        if near.mean() >= MOST and (a[near].var(axis=0) >= 0.5 * a.var(axis=0)).all() and a[near].var() > 1e-4:
            return int(near.sum())
    return 0


def _is_rich(signal: Array) -> bool:
    """Whether a signal takes many values, up and down."""
    change = np.diff(signal)
    change = np.sign(change[change != 0])
    return len(np.unique(signal)) >= 2 * RICH and int((change[1:] != change[:-1]).sum()) >= RICH


def _in_other_units(a: Array, b: Array) -> int:
    """Number of samples in which each channel of b, at some shift, is one of a but for scale, sign and offset.

    Steps or ramps of another height look like that as well: a channel of few values must be the same as it is.
    """
    least = max(STRETCH, math.ceil(OTHER_UNITS * min(len(a), len(b))))
    channels = a.shape[1]
    rich = [[_is_rich(x) for x in one.T] for one in (a, b)]
    if min(len(a), len(b)) < least or not all(map(any, rich)):
        return 0
    as_they_are = a, b
    a, b = ((x - x.mean(axis=0)) / np.where(x.std(axis=0) > 0, x.std(axis=0), 1.0) for x in (a, b))
    orders = [*permutations(range(channels))] if channels <= MOST_CHANNELS else [tuple(range(channels))]
    found: dict[tuple[int, int], Array] = {}
    for i, j in {pair for order in orders for pair in enumerate(order)}:
        x, z = a[:, [i]], b[:, [j]]
        if not (rich[0][i] and rich[1][j]):
            x, z = (whole[:, [at]] for whole, at in zip(as_they_are, (i, j), strict=True))
            both = np.concatenate([x, z])
            x, z = ((one - both.mean()) / (both.std() or 1.0) for one in (x, z))
        products, shifts, size = _correlations(x, z, least)
        first, last = np.maximum(shifts, 0), np.minimum(shifts + len(b), len(a))
        count = last - first
        (energy, one, mean), (more, two, other) = _moments(x, first, count), _moments(z, first - shifts, count)
        if not (rich[0][i] and rich[1][j]):
            difference = (energy[:, 0] + more[:, 0] - 2 * products[shifts % size, 0]) / count
            found[i, j] = difference <= ALIKE * np.minimum(one[:, 0], two[:, 0])
            continue
        covariance = products[shifts % size, 0] / count - mean[:, 0] * other[:, 0]
        spread = one[:, 0] * two[:, 0]
        found[i, j] = (spread > 1e-4) & (covariance**2 >= (1 - ALIKE) * spread)
    for order in orders:
        like = np.logical_and.reduce([found[pair] for pair in enumerate(order)])
        if like.any():
            return int(count[like].max())
    return 0
