"""Generalisation: the second certificate, on test data that nothing was chosen by.

The first certificate is about new networks on the same data. This one is about the same models on new data: the
picked network, and the committee, as they were before the test data were opened.

**How beta is spent.** The list of statements is settled before the test data are opened: for each model an error limit,
a failure rate if a criterion was given, and a band. Each statement holds with the confidence it names; all of them
together hold with confidence 1 less the sum of their betas (the union bound needs no independence), and that is what
counts for whoever quotes the most pleasing one afterwards. So beta need not be shared among them, but nothing may be
added to the list once the errors were seen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

from echobound.errors import DamagedFile, InputError
from echobound.scenario.bounds import as_probability, networks_exact
from echobound.scenario.questions import EpisodeErrors, Questions
from echobound.scenario.statements.base import Members
from echobound.scenario.statements.conformal_band import ConformalBand
from echobound.scenario.statements.coverage_band import CoverageBand
from echobound.scenario.statements.episodes import EpisodeStatement
from echobound.scenario.statements.error_limit import ErrorLimit
from echobound.scenario.statements.failure_rate import FailureRate
from echobound.scenario.statements.optimism import Optimism
from echobound.scenario.words import confidence, noun, predictions_only, upward
from echobound.typed import digest_of, from_json, later, require_equal, require_version, to_json

SCHEMA_VERSION = 1
CALLED = {"model": "picked network", "committee": "committee"}
USEFUL = 0.05  # with few episodes, the words say how many would reach this probability
NOT_STATED = (
    "It is about these models as they were before the test data were opened: a model that is changed, adapted or picked"
    " by these data needs other test data.",
    "It holds for new episodes that come about as the tested ones did: same excitation, operating points, start and"
    " length."
    " Nothing is said about others.",
    "The list of statements was settled before the test data were opened. A further one, chosen after a look at the"
    " errors, needs other test data.",
    "A band {without}holds on average over test data like these, not with a further confidence for this very one.",
)
NOT_STATED_OF_BLOCKS = (
    "Blocks of one record are not independent. Whether the dependence over the gaps is as small as assumed is not"
    " tested here, and cannot be tested with one record.",
)
NOT_STATED_OF_LATE = (
    "The criterion was named when the test data had been opened already. The statement about it holds only if it had"
    " been settled before that, which nothing here can show.",
)


def called(model: str, members: int = 1) -> str:
    """What sentences call a model; `members` as in the first certificate.

    Examples
    --------
    >>> called("model"), called("model", members=10), called("committee")
    ('picked network', 'picked committee', 'committee')
    """
    return CALLED[model].replace("network", noun(members).one)


@dataclass(frozen=True, kw_only=True)
class Generalisation:
    """The second certificate; it holds what was settled and what was seen, and derives all statements.

    Examples
    --------
    >>> seen = EpisodeErrors(rmse=tuple(i / 100 for i in range(1, 21)), peaks=tuple((i / 50,) for i in range(1, 21)))
    >>> second = Generalisation(settled=Questions(), outputs=("pH",), scales=(1.0,), digests={}, seen={"model": seen},
    ...                         optimism=Optimism.of(90.0, 88.0, score="fit", unit="%"))
    >>> limit, band = second.statements["model"]
    >>> limit.limit, round(limit.epsilon, 4), band.widths
    (0.2, 0.1391, (0.4,))
    >>> Generalisation.from_dict(second.to_dict()) == second
    True
    """

    settled: Questions  # before the test data were opened
    outputs: tuple[str, ...]
    scales: tuple[float, ...]  # how wide the band is for one output relative to another
    digests: Mapping[str, str]  # of "model", "committee" (empty if there is none) and "test" data
    seen: Mapping[str, EpisodeErrors]  # by "model" and, where there is one, "committee"
    optimism: Optimism
    late: bool = False  # whether the criterion was named only when the data had been opened for the other statements
    earlier: int = 0  # test records of the run that were opened before, where these are others
    horizon: int | None = None  # None for free runs; k for predictions k samples ahead
    members: Members = later(1)
    samples: tuple[int, ...] = later(())  # scored ones of each episode

    def __post_init__(self) -> None:
        if not self.seen or not set(self.seen) <= set(CALLED):
            raise InputError(f"a second certificate is about {', '.join(CALLED)}, got {', '.join(self.seen)}")
        for seen in self.seen.values():
            each = (seen.peaks, *(one for one in (seen.scores, seen.windows) if one is not None))
            counts = {self.episodes, *map(len, each)}
            if len(counts) > 1:
                raise InputError("every model needs one number for each episode")
            if len(self.samples) not in (0, self.episodes):
                raise InputError(f"{self.episodes} episodes have as many lengths, got {len(self.samples)}")
            if (seen.windows is None) != (self.settled.window is None):
                raise InputError("errors in a window are needed where there is one, and nowhere else")
            if self.settled.window is not None and self.samples and self.settled.window > min(self.samples):
                raise InputError(
                    f"a window of {self.settled.window} samples does not fit into the shortest test episode, which has"
                    f" {min(self.samples)} after its washout: take a shorter one"
                )
            if (seen.scores is None) != (self.settled.criterion is None):
                raise InputError("scores for the criterion are needed where there is one, and nowhere else")
        if self.late and self.settled.criterion is None:
            raise InputError("without a criterion nothing can have been named late")
        if self.settled.blocks not in (None, self.episodes):
            raise InputError(f"{self.settled.blocks} blocks were settled, {self.episodes} were seen")
        _ = self.statements  # made now, so that what cannot be stated is refused here and not when it is printed

    @property
    def episodes(self) -> int:
        """How many episodes were tested."""
        return next(iter(self.seen.values())).episodes

    @cached_property
    def statements(self) -> dict[str, tuple[EpisodeStatement, ...]]:
        """What is stated of each model, in the order of the list that was settled."""
        return {name: tuple(self._statements(seen)) for name, seen in self.seen.items()}

    def _statements(self, seen: EpisodeErrors) -> list[EpisodeStatement]:
        beta, criterion, mixing = self.settled.beta, self.settled.criterion, self.settled.mixing
        errors = [math.inf if error is None else error for error in seen.rmse]
        limit = ErrorLimit.of(errors, beta=beta, discarded=self.settled.discarded, error="RMSE", mixing=mixing)
        rates = []
        if criterion is not None and seen.scores is not None:
            rates = [FailureRate.of(~criterion.met(seen.scores), beta=beta, criterion=str(criterion), mixing=mixing)]
        peaks, sure = self._largest(seen.peaks), []
        how: dict[str, Any] = {"beta": beta, "discarded": self.settled.discarded, "mixing": mixing}
        how |= {"names": self.outputs, "scales": self.scales}
        if self.settled.sure_band:
            sure.append(CoverageBand.of(peaks, **how))
        if seen.windows is not None:
            sure.append(CoverageBand.of(self._largest(seen.windows), window=self.settled.window, **how))
        # n episodes cannot give a band for more than n / (n + 1); rounded up, since the rank is computed in decimals.
        least = float(upward(1 / (self.episodes + 1)))
        band = ConformalBand.of(peaks, beta=max(beta, least), names=self.outputs, scales=self.scales, mixing=mixing)
        # Words are derived from the same fields as numbers: what was run, and for how long.
        lengths = (min(self.samples), max(self.samples)) if self.samples else None
        run: dict[str, Any] = {"members": self.members, "horizon": self.horizon, "samples": lengths}
        return [replace(one, **run) for one in (limit, *rates, band, *sure)]

    def _largest(self, peaks: tuple[tuple[float, ...] | None, ...]) -> list[list[Sequence[float]]]:
        """Largest errors of each episode as errors of one sample; infinite where the model diverged."""
        return [[[math.inf] * len(self.outputs)] if peak is None else [peak] for peak in peaks]

    def limit(self, model: str = "model") -> ErrorLimit | None:
        """The error limit of a model; None if there is no such model."""
        return next((one for one in self.statements.get(model, ()) if isinstance(one, ErrorLimit)), None)

    def band(self, model: str = "model") -> ConformalBand | None:
        """The band of a model; None if there is no such model."""
        return next((one for one in self.statements.get(model, ()) if isinstance(one, ConformalBand)), None)

    @property
    def confident(self) -> int:
        """How many statements there are that hold with a confidence: all but the bands."""
        return sum(not isinstance(one, ConformalBand) for all_of_it in self.statements.values() for one in all_of_it)

    @property
    def together(self) -> float:
        """1 - confidence of these together; what dependence between blocks may add counts once."""
        # To the cent as it is written: 3 times 0.05 is 0.15, not 0.15000000000000002.
        added = (self.episodes - 1) * Decimal(repr(self.settled.mixing or 0.0))
        return float(upward(min(Decimal(1), self.confident * as_probability("beta", self.settled.beta) + added), 12))

    @property
    def assumption(self) -> str:
        """What all of it rests on: a band over a window asks for more than the others, and says so."""
        return max((one.assumption for one in next(iter(self.statements.values()))), key=len)

    @property
    def words(self) -> tuple[tuple[str, str], ...]:
        """The certificate in plain words: about what, and what is said."""
        said = [("on test data", self.optimism.words)]
        for name, statements in self.statements.items():
            said += [(called(name, self.members), one.claim) for one in statements]
        if self.confident > 1:
            hold = f"All {self.confident} limits hold together with confidence 1 - {confidence(self.together)}."
            none = f"The {self.confident} limits do not hold together with any confidence."
            said.append(("together", hold if self.together < 1 else none))
        if (limit := self.limit()) is not None and limit.epsilon > USEFUL:
            enough = networks_exact(USEFUL, self.settled.beta, discarded=self.settled.discarded)
            more = f"{enough} episodes would limit the probability of a larger error to {USEFUL:g}."
            said.append(("more episodes", more))
        return (*said, ("assumption", self.assumption))

    @property
    def not_stated(self) -> tuple[str, ...]:
        """What is not stated."""
        earlier = (f"{self.earlier} other test records of this run were opened before; these are others.",)
        without = "without a confidence " if self.settled.sure_band or self.settled.window else ""
        predicted = () if self.horizon is None else (predictions_only(self.horizon),)
        return (
            *predicted,
            *(sentence.format(without=without) for sentence in NOT_STATED),
            *(NOT_STATED_OF_BLOCKS if self.settled.blocks else ()),
            *(NOT_STATED_OF_LATE if self.late else ()),
            *(earlier if self.earlier else ()),
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON: what it holds, what follows, the words, and a digest of it all."""
        identity = {
            "schema_version": SCHEMA_VERSION,
            **to_json(self),
            "episodes": self.episodes,
            "statements": to_json(self.statements),
            "together": self.together,
            "words": [{"about": about, "says": says} for about, says in self.words],
            "not_stated": list(self.not_stated),
        }
        return {**identity, "digest": digest_of(identity)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], path: str | Path = "generalisation.json") -> Generalisation:
        """Inverse of `to_dict`; every number and sentence is derived again, and what does not follow is refused."""
        require_version(content, SCHEMA_VERSION, path)
        try:
            made = from_json(cls, {f.name: content[f.name] for f in fields(cls) if f.name in content}, path)
            derived = made.to_dict()
        except (InputError, OverflowError) as error:  # a number beyond all floats, where one is computed with it
            raise DamagedFile(path, "content", f"not a second certificate, {error}"[:200]) from None
        require_equal(derived, content, path)
        return made
