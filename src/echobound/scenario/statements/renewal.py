"""Renewal: the same N reservoirs, trained and scored on new data, certify afresh; and when they do not."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from echobound.errors import InputError
from echobound.scenario.bounds import as_count, as_probability, epsilon_exact
from echobound.scenario.ordering import best_of, require_member
from echobound.scenario.search import Search
from echobound.scenario.statements.base import ScoreStatement, Scoring
from echobound.scenario.words import data_words, outcome_words, upward


def require_independent(depends_on_model: bool | None) -> None:
    """Refuse new data that depend on the network in use, as in a loop closed through it; None warns."""
    if depends_on_model:
        raise InputError(
            "the new data depend on the network in use, so the networks are not independent of them: draw and certify"
            " new ones, with another seed"
        )
    if depends_on_model is None:
        warnings.warn(
            "the renewed certificate holds only if the new data do not depend on the network in use (no closed loop"
            " through it): say whether they do",
            stacklevel=3,
        )


@dataclass(frozen=True, kw_only=True)
class Renewal(ScoreStatement):
    """The certificate of N reservoirs, drawn once, on data that came later.

    The reservoirs were drawn without regard to the new data, so their scores on them are independent draws again, and
    the certificate holds afresh with the same N. It does not hold

    - if the new data depend on the network that was deployed (a controller that used it, for example): the reservoirs
      are then no longer independent of the data,
    - if some of the N were dropped because of their scores,

    and in both cases N new networks must be drawn. `of` refuses them.
    """

    kind = "renewal"
    title = "renewed"
    derived = ("epsilon",)

    networks: int
    updates: int  # T, how many renewals are planned; each is stated at beta / T, so that all hold together
    winner: int | None  # the best of N on the new data; None if all diverged
    threshold: float | None

    def __post_init__(self) -> None:
        super().__post_init__()
        as_count("updates", self.updates)
        require_member(self.winner, as_count("networks", self.networks))

    @classmethod
    def of_search(cls, search: Search) -> Renewal | None:
        """Made where the networks were drawn before, for other data."""
        if search.updates is None:
            return None
        held = {"networks": len(search.table), "updates": search.updates}
        # Data that depend on the model would have been refused before the renewal began.
        return cls.of(search.first, beta=search.beta, depends_on_model=False, **held, **search.scoring)

    @property
    def promises(self) -> int:
        """One about the threshold."""
        return 1

    def settled(self) -> Mapping[str, Any]:
        """How many renewals were planned."""
        return {"updates": self.updates}

    @cached_property
    def epsilon(self) -> float:
        """What is certified on the new data."""
        return epsilon_exact(self.networks, as_probability("beta", self.beta) / self.updates)

    @property
    def words(self) -> str:
        """The statement in plain words."""
        what = outcome_words(self, self.threshold)
        new = self.drawn.drawn(how="drawn in the same way and trained on the new data")
        jointly = "" if self.updates == 1 else f", in all {self.updates} planned renewals together"
        return (
            f"{self.start}{jointly}, {new} {what}"
            f" {data_words(self, these='the new')} with probability at most {upward(self.epsilon)}. This holds because"
            f" none of the {self.networks} {self.drawn.many} was dropped and the new data do not depend on the"
            f" {self.drawn.one} in use."
        )

    @classmethod
    def of(
        cls,
        scores: ArrayLike,
        *,
        networks: int,
        beta: float,
        updates: int = 1,
        depends_on_model: bool | None = None,
        **scoring: Unpack[Scoring],
    ) -> Renewal:
        """Renew a certificate from the scores of all N networks on the new data, in the order of their index.

        Beta is 1 - confidence for all `updates` that are planned, and `depends_on_model` as in `require_independent`.

        Examples
        --------
        >>> renewed = Renewal.of([80.0 + i / 100 for i in range(315)], networks=315, beta=1e-7, depends_on_model=False)
        >>> renewed.winner, round(renewed.epsilon, 6)
        (314, 0.049881)
        """
        count = np.size(scores)
        if count != networks:
            raise InputError(
                f"{networks} networks were drawn and {count} have scores on the new data: score all of them,"
                " including any that were dropped, or draw new ones"
            )
        require_independent(depends_on_model)
        winner, threshold = best_of(scores, scoring.get("direction", "max"))
        return cls(networks=networks, updates=updates, winner=winner, threshold=threshold, beta=beta, **scoring)
