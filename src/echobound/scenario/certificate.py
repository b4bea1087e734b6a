"""Certificate: what a search promises, in numbers that can be derived again and in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate, takewhile
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from echobound.arrays import Scores
from echobound.displays import html_table, one_line
from echobound.errors import DamagedFile, InputError
from echobound.scenario.ordering import Direction
from echobound.scenario.search import ScoreName, Search
from echobound.scenario.statements.base import Members, Statement
from echobound.scenario.statements.stopped import Stopped
from echobound.scenario.stopping import StoppingRule
from echobound.typed import (
    Keywords,
    digest_of,
    from_json,
    held_in,
    later,
    require_equal,
    require_names,
    require_version,
    to_json,
)

SCHEMA_VERSION = 1
Chance = Annotated[float, Keywords(exclusiveMinimum=0, exclusiveMaximum=1)]
UpToOne = Annotated[float, Keywords(exclusiveMinimum=0, maximum=1)]
Text = Annotated[str, Keywords(minLength=1)]


@dataclass(frozen=True)
class WorstCase:
    """The other end: how bad a new network may be."""

    index: Annotated[int, Keywords(minimum=0)]
    threshold: Annotated[float | None, Keywords("Worst score; null if that network diverged.")]
    diverged: bool
    divergence_bound: Annotated[
        float | None,
        Keywords(
            "Clopper-Pearson upper limit at beta for the probability of divergence; null if none diverged, or if one"
            " stops at will.",
            exclusiveMinimum=0,
            maximum=1,
        ),
    ]
    statement: Text


@dataclass(frozen=True)
class Certificate:
    """What is promised about the best of N networks; see `certify`, which makes one.

    Two certificates are equal if they say the same; where and when they were computed (`provenance`) does not count.

    Examples
    --------
    >>> from echobound.scenario import certify
    >>> scores = [90.0 - i / 10 for i in range(59)]
    >>> certificate = certify(scores, score="fit", direction="max", epsilon=0.05, beta=0.05, law={}, seed=0, digests={})
    >>> Certificate.from_dict(certificate.to_dict()) == certificate
    True
    >>> certificate.check(scores)  # every number derived again
    """

    score: Annotated[str, Keywords("Name of the score that selects.", minLength=1)]
    direction: Annotated[Direction, Keywords("Whether larger or smaller is better.")]
    unit: str
    networks: Annotated[int, Keywords("N, failures included.", minimum=1)]
    epsilon: Annotated[Chance, Keywords("Violation probability that is certified.")]
    beta: Annotated[Chance, Keywords("1 - confidence.")]
    bound: Literal["exact", "explicit"]
    networks_required: Annotated[
        int, Keywords("What the bound, or the stopping rule, asks for at epsilon and beta.", minimum=1)
    ]
    epsilon_exact: Annotated[
        UpToOne,
        Keywords(
            "What N networks certify at beta by the exact bound, rounded up; by the stopping rule where one stops at"
            " will."
        ),
    ]
    beta_exact: Annotated[
        UpToOne,
        Keywords(
            "What is left of beta at epsilon by the exact bound, rounded up; never 0. Beta itself where one stops at"
            " will."
        ),
    ]
    log10_beta_exact: Annotated[float, Keywords("The same where no float can hold it.", maximum=0)]
    status: Literal["certified", "all diverged"]
    winner: Annotated[
        int | None,
        Keywords(
            "Number of the best network, family after family, the lowest of several; null if all diverged.", minimum=0
        ),
    ]
    threshold: Annotated[float | None, Keywords("Its score; null if all diverged.")]
    failures: Annotated[int, Keywords("Networks that diverged; they count as the worst.", minimum=0)]
    statement: Text
    not_stated: Annotated[tuple[str, ...], Keywords(minItems=1)]
    worst: WorstCase
    law: Annotated[
        Mapping[str, Any],
        Keywords("What the networks were drawn from; empty where there are several families, each with its own."),
    ]
    seed: Annotated[int, Keywords(minimum=0)]
    families: tuple[Mapping[str, Any], ...]
    digests: Annotated[Mapping[str, str], Keywords("Of data, plan, ledger and model.")]
    horizon: Annotated[
        int | None, Keywords("Samples ahead that outputs were predicted; null for a free run.", minimum=1)
    ] = None
    blocks: Annotated[
        int | None,
        Keywords(
            "Blocks of the training data that were scored in turn: a score is their mean, and the model was trained"
            " again on all of them. Null: validation data of their own.",
            minimum=2,
        ),
    ] = None
    kind: Annotated[str, Keywords("The threshold is the best score.", const="best")] = "best"
    rule: str = "fixed"
    rank: Annotated[int, Keywords("1: the best network sets the threshold.", const=1)] = 1
    statements: tuple[Statement, ...] = ()
    members: Members = later(1)
    provenance: Annotated[Mapping[str, Any], Keywords("Host, times, engine, versions: outside identity.")] = field(
        default_factory=dict, compare=False
    )

    @property
    def each(self) -> int:
        """Networks of the smallest family, which decides what is certified."""
        return min(int(family["networks"]) for family in self.families)

    def position(self, family: int, index: int) -> int:
        """Position of a network, family after family; with one family, its index."""
        before = takewhile(lambda one: one["family"] != family, self.families if len(self.families) > 1 else ())
        return index + sum(int(one["networks"]) for one in before)

    def family_name(self, position: int) -> str:
        """Name of the family that a network belongs to; empty if there is only one."""
        ends = accumulate(int(family["networks"]) for family in self.families)
        inside = (family for family, end in zip(self.families, ends, strict=True) if position < end)
        return str(next(inside, {}).get("name", "")) if len(self.families) > 1 else ""

    @property
    def stopped(self) -> Stopped | None:
        """What the stopping rule says, if the number of networks was not settled beforehand."""
        return next((statement for statement in self.statements if isinstance(statement, Stopped)), None)

    @property
    def stopping_rule(self) -> StoppingRule | None:
        """The rule that found the number of networks; None if it was settled beforehand."""
        return None if self.stopped is None else self.stopped.rule

    def identity(self) -> dict[str, Any]:
        """Everything but the provenance, as JSON."""
        content: dict[str, Any] = to_json(self)
        del content["provenance"]
        return {**content, "schema_version": SCHEMA_VERSION}

    def _facts(self) -> dict[str, str]:
        best = (
            "none, all diverged" if self.threshold is None else f"{self.threshold:.6g}{self.unit and ' ' + self.unit}"
        )
        certified = f"epsilon {self.epsilon:g} at confidence 1 - {self.beta:g}"
        return {"networks": str(self.networks), f"best {self.score}": best, "certifies": certified}

    def __repr__(self) -> str:
        return one_line("Certificate", self._facts())

    def _repr_html_(self) -> str:
        return html_table("Certificate", {**self._facts(), "statement": self.statement})

    def to_dict(self) -> dict[str, Any]:
        """The certificate as JSON, with its digest."""
        identity = self.identity()
        return {**identity, "digest": digest_of(identity), "provenance": dict(self.provenance)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], path: str | Path = "certificate.json") -> Certificate:
        """Inverse of `to_dict`; a field that is missing, unknown or of another type is refused, and a wrong digest."""
        held = held_in(cls, content)
        require_names([*held, "schema_version", "digest"], content, path)
        require_version(content, SCHEMA_VERSION, path)
        certificate = from_json(cls, {name: content[name] for name in held}, path)
        try:
            digest = digest_of(certificate.identity())
        except (TypeError, ValueError) as error:
            raise DamagedFile(path, "content", str(error)) from None
        if content["digest"] != digest:
            raise DamagedFile(path, "digest", "the content does not have the digest that was stored with it")
        return certificate

    def require_equal(self, derived: Certificate, path: str | Path = "certificate.json") -> None:
        """Refuse this certificate unless it says the same as one that was derived again."""
        require_equal(derived.identity(), self.identity(), path)

    def check(self, scores: ArrayLike | None = None, path: str | Path = "certificate.json") -> None:
        """Derive every number and sentence again, with the scores also those that depend on them.

        A `DamagedFile` names the first field that does not follow, and `path` as the file. `scores` are those of the
        first score, or a table with a column for each: what is said of several is then derived too.
        """
        from echobound.scenario import certifying  # which makes certificates, so it cannot be imported before

        table = None if scores is None else np.atleast_1d(np.asarray(scores, dtype=np.float64))
        first = table if table is None or table.ndim == 1 else table[:, 0]
        if first is not None and len(first) != self.networks:
            raise DamagedFile(path, "networks", f"{len(first)} have scores, {self.networks} are stated")
        try:
            derived = certifying.derived(self)
            if first is not None:
                derived = certifying.certify(first, **{name: getattr(self, name) for name in certifying.SETTLED})
        except InputError as error:
            raise DamagedFile(path, "content", str(error)) from None
        self.require_equal(derived, path)
        if table is not None:
            self._check_statements(table if table.ndim == 2 else table[:, None], path)

    def _check_statements(self, table: Scores, path: str | Path) -> None:
        """Make each statement again, from the scores and what the statements show to have been settled."""
        settled = {name: value for statement in self.statements for name, value in statement.settled().items()}
        settled["scores"] = (
            ScoreName(self.score, self.direction, self.unit),
            *settled.get("scores", ())[1:],  # what a statement holds of the first score lacks its unit
        )
        how: dict[str, Any] = {"horizon": self.horizon, "blocks": self.blocks, "members": self.members}
        search = Search(table=table, beta=self.beta, **how, **settled)
        for statement in self.statements:
            if statement.of_all_scores and table.shape[1] == 1:
                continue  # the scores of the first alone cannot tell
            try:
                found = type(statement).of_search(search)
            except InputError as error:
                raise DamagedFile(path, statement.kind, str(error)) from None
            if found is None:
                raise DamagedFile(path, statement.kind, "nothing of this kind is stated about such a search")
            require_equal(found.to_dict(), statement.to_dict(), path, statement.kind)
