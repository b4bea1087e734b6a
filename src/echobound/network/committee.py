"""Committee: several networks as one model; its output is the pointwise median of theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echobound.arrays import Signal
from echobound.data.record import Record
from echobound.displays import few, html_table, one_line
from echobound.errors import DamagedFile, InputError
from echobound.files import digest, read_npz, write_npz
from echobound.network.dynamics import Dynamics
from echobound.network.exportable import Exportable
from echobound.network.plant_model import CHANNELS, PlantModel, Simulation
from echobound.network.structures import model_from_content

FORMAT = 1
MOST_THREADS = 32


@dataclass(frozen=True, eq=False)
class Committee(Exportable):
    """The best networks of a search as one model: each runs freely, and the output is the median at each sample.

    One member that drifts off would ruin a mean; a member that diverges is left out from there on. The certificate of a
    search over networks is about single ones and says nothing about a committee of the best.

    Examples
    --------
    >>> from echobound import identify, ph_experiment
    >>> training, validation = ph_experiment(samples=(600, 400))
    >>> committee = identify(training, validation, law="paper", order=20, networks=20, washout=100).committee
    >>> len(committee.members), committee.simulate(validation).y.shape, committee.predict(validation, 5).first
    (10, (300, 1), 100)
    """

    members: tuple[PlantModel, ...]  # the best first
    # The same for all members.
    sampling_time: float = field(init=False, repr=False)
    input_names: tuple[str, ...] = field(init=False, repr=False)
    output_names: tuple[str, ...] = field(init=False, repr=False)
    input_units: tuple[str, ...] = field(init=False, repr=False)
    output_units: tuple[str, ...] = field(init=False, repr=False)
    washout: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.members:
            raise InputError("a committee needs at least one network, got none: give some members")
        for name in (*CHANNELS, "washout"):
            if len({getattr(member, name) for member in self.members}) > 1:
                raise InputError(f"the members of a committee must have the same {name}: train them on the same data")
            object.__setattr__(self, name, getattr(self.members[0], name))

    def _facts(self) -> dict[str, str]:
        kinds = Counter(type(member).__name__ for member in self.members)
        members = f"{len(self.members)} ({', '.join(f'{n} {kind}' for kind, n in kinds.items())})"
        facts = {"members": members, "inputs": few(self.input_names), "outputs": few(self.output_names)}
        return facts | {"sampling time": f"{self.sampling_time:g} s", "washout": str(self.washout)}

    def __repr__(self) -> str:
        return one_line("Committee", self._facts())

    def _repr_html_(self) -> str:
        return html_table("Committee", self._facts())

    def simulate(
        self,
        inputs: Record | ArrayLike,
        *,
        initial: ArrayLike | None = None,
        washout: int | None = None,
        dynamics: Dynamics | None = None,
    ) -> Simulation:
        """Simulate in free run, as `PlantModel.simulate`."""
        return self._median(lambda member: member.simulate(inputs, initial=initial, washout=washout, dynamics=dynamics))

    def predict(
        self, record: Record, horizon: int = 1, washout: int | None = None, *, dynamics: Dynamics | None = None
    ) -> Simulation:
        """Predict `horizon` steps ahead, as `PlantModel.predict`."""
        return self._median(lambda member: member.predict(record, horizon, washout, dynamics=dynamics))

    def _median(self, run: Callable[[PlantModel], Simulation]) -> Simulation:
        # Compiled code holds no lock, so that members run at the same time; a few more than there are cores do no harm.
        with ThreadPoolExecutor(min(len(self.members), MOST_THREADS)) as threads:
            # Each in the context of the caller, whose `np.errstate` holds there too.
            contexts = [copy_context() for _ in self.members]
            runs = list(threads.map(lambda context, member: context.run(run, member), contexts, self.members))
        start = f"median of {len(runs)} networks, each: {runs[0].start}"
        return Simulation(median_of([one.y for one in runs]), runs[0].first, start)

    @property
    def bound(self) -> Signal | None:
        """The lowest and highest value of each output, ``(output, 2)``, in any free run; None if a member has none.

        They are the medians of the members' own lows and highs. For let x_i <= h_i for all members i, all of them
        finite, which clipped outputs are. Whichever k members have the k smallest h_i, their x_i are not above the k-th
        smallest h, so that at least k of the x_i are not: the k-th smallest x is at most the k-th smallest h, for each
        k. The median is one of these, or the mean of two, and thus at most the median of the h_i; likewise for the
        lows. In floating point, too: a sum and a half are monotone, and `median_of` takes both medians alike.
        """
        bounds = [getattr(member, "bound", None) for member in self.members]
        own = [bound for bound in bounds if bound is not None]
        return median_of(own) if len(own) == len(bounds) else None

    def content(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Header and arrays of the file that `save` writes."""
        contents = [member.content() for member in self.members]
        header = {"kind": "committee", "format": FORMAT, "members": [one for one, _ in contents]}
        return header, {f"{i}.{name}": a for i, (_, arrays) in enumerate(contents) for name, a in arrays.items()}

    @property
    def digest(self) -> str:
        """SHA-256 over everything in the committee."""
        return digest(self.content())

    def save(self, path: str | Path) -> None:
        """Save all members as one NPZ with a JSON header; loading gives back the same bits."""
        write_npz(Path(path), *self.content())

    @classmethod
    def load(cls, path: str | Path, member: Callable[..., Any] = model_from_content) -> Committee:
        """Load a committee; nothing in the file is run, and a damaged or changed file is refused.

        Members of another class are made from their content by `member`.
        """
        path = Path(path)
        return cls.from_content(*read_npz(path, kind="committee"), path, member)

    @classmethod
    def from_content(
        cls,
        header: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        path: Path,
        member: Callable[..., Any] = model_from_content,
    ) -> Committee:
        """Inverse of `content`; `path` is named in the error if this is not a committee."""
        if header.get("format") != FORMAT:
            raise DamagedFile(path, "header", f"format {header.get('format')!r}, this version reads {FORMAT}")
        members: list[PlantModel] = []
        try:
            for i, one in enumerate(header["members"]):
                own = {name.removeprefix(f"{i}."): a for name, a in arrays.items() if name.startswith(f"{i}.")}
                members.append(member(one, own, path))
            return cls(tuple(members))
        except (KeyError, TypeError, AttributeError, InputError) as error:
            raise DamagedFile(path, "header", f"not a complete committee, {error}") from None


def median_of(signals: list[Signal]) -> Signal:
    """Pointwise median of signals of one shape, over those that are finite at each sample; NaN if none is.

    Examples
    --------
    >>> median_of([np.array([1.0, 2.0]), np.array([2.0, np.nan]), np.array([9.0, np.inf])]).tolist()
    [2.0, 2.0]
    """
    stack = np.stack(signals, axis=-1)
    stack[~np.isfinite(stack)] = np.nan  # a member that runs to infinity is left out like one that is NaN
    # Sorted, with NaN at the end, the median is in the middle of the others: a tenth of the time of `np.nanmedian`.
    stack.sort(axis=-1)
    count = np.isfinite(stack).sum(axis=-1)
    below, above = np.maximum((count - 1) // 2, 0), np.minimum(count // 2, len(signals) - 1)
    low, high = (np.take_along_axis(stack, place[..., None], axis=-1)[..., 0] for place in (below, above))
    with np.errstate(over="ignore"):  # the mean of two numbers near the largest double overflows: diverged
        return np.asarray((low + high) / 2)
