"""Questions: what is asked of test data before they are opened; and the errors that are found."""

from __future__ import annotations

from dataclasses import dataclass

from echobound.errors import InputError
from echobound.scenario.bounds import as_count, as_probability
from echobound.scenario.criterion import Criterion


@dataclass(frozen=True, kw_only=True)
class Questions:
    """What is asked of test data, settled before they are opened.

    Parameters
    ----------
    beta
        1 - confidence of each statement.
    discarded
        How many of the largest errors are set aside.
    criterion
        What an episode has to meet; None states no failure rate.
    blocks, gap, mixing
        None for records that are independent episodes. For one long record: into how many blocks it is cut, how many
        samples are left out between two, and the mixing coefficient that is assumed over that gap.

    Examples
    --------
    >>> from echobound.typed import to_json
    >>> to_json(Questions(criterion=Criterion.of("fit>80")))["criterion"]
    'fit>80'
    """

    beta: float = 0.05
    discarded: int = 0
    criterion: Criterion | None = None
    blocks: int | None = None
    gap: int | None = None
    mixing: float | None = None

    def __post_init__(self) -> None:
        as_probability("beta", self.beta)
        as_count("discarded", self.discarded, least=0)
        given = [value is not None for value in (self.blocks, self.gap, self.mixing)]
        if any(given) and not all(given):
            raise InputError(
                "blocks of one record need three numbers: how many blocks, the gap between them in samples, and the"
                " mixing coefficient over the gap, an assumption that only you can make"
            )
        if self.blocks is not None and self.gap is not None and self.mixing is not None:
            as_count("blocks", self.blocks, least=2)
            as_count("gap", self.gap, least=0)
            if not 0 <= self.mixing <= 1:
                raise InputError(f"a mixing coefficient lies between 0 and 1, got {self.mixing}")
            object.__setattr__(self, "mixing", float(self.mixing))
        object.__setattr__(self, "beta", float(self.beta))


@dataclass(frozen=True, kw_only=True)
class EpisodeErrors:
    """Errors of one model in the test: one entry for each episode, None where it diverged.

    Parameters
    ----------
    rmse
        Root-mean-square error.
    peaks
        Largest absolute error of each output.
    scores
        What the criterion looks at; None without a criterion.

    Examples
    --------
    >>> EpisodeErrors(rmse=(0.1, None), peaks=((0.2,), None)).episodes
    2
    """

    rmse: tuple[float | None, ...]
    peaks: tuple[tuple[float, ...] | None, ...]
    scores: tuple[float | None, ...] | None = None

    @property
    def episodes(self) -> int:
        """How many."""
        return len(self.rmse)
