"""Certificate: what a search promises, in numbers that can be derived again and in plain words."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echobound.errors import DamagedFile, InputError
from echobound.scenario.bounds import (
    beta_exact,
    epsilon_exact,
    log_beta_exact,
    networks_exact,
    networks_explicit,
)
from echobound.scenario.ordering import goodness, select
from echobound.scenario.sentences import not_stated_of, statement_of, worst_of
from echobound.scenario.statement import Statement, digest_of
from echobound.scenario.stopping import Stopped, StoppingRule

__all__ = ["Certificate", "WorstCase", "certify", "schema"]

SCHEMA_VERSION = 1
OF_SCORES = ("renewal", "stopped", "removal", "families", "joint scores", "both ends", "gain")


@dataclass(frozen=True)
class WorstCase:
    """The other end: how bad a new network may be.

    Parameters
    ----------
    index, threshold
        The worst network and its score; the threshold is None if it diverged.
    diverged
        Whether it did.
    divergence_bound
        Then the upper limit (Clopper-Pearson, confidence 1 - beta) for the probability that a new network diverges; of
        several families, whichever it is drawn from.
    statement
        In plain words.
    """

    index: int
    threshold: float | None
    diverged: bool
    divergence_bound: float | None
    statement: str


@dataclass(frozen=True)
class Certificate:
    """What is promised about the best of N networks; see `certify`, which makes one.

    Two certificates are equal if they say the same; where and when they were computed (`provenance`) does not count.

    Examples
    --------
    >>> scores = [90.0 - i / 10 for i in range(59)]
    >>> certificate = certify(scores, score="fit", direction="max", epsilon=0.05, beta=0.05, law={}, seed=0, digests={})
    >>> Certificate.from_dict(certificate.to_dict()) == certificate
    True
    >>> certificate.check(scores)  # every number derived again
    """

    score: str
    direction: Literal["max", "min"]
    unit: str
    networks: int
    epsilon: float
    beta: float
    bound: Literal["exact", "explicit"]
    networks_required: int
    epsilon_exact: float
    beta_exact: float
    log10_beta_exact: float
    status: Literal["certified", "all diverged"]
    winner: int | None
    threshold: float | None
    failures: int
    statement: str
    not_stated: tuple[str, ...]
    worst: WorstCase
    law: Mapping[str, Any]
    seed: int
    families: tuple[Mapping[str, Any], ...]
    digests: Mapping[str, str]
    horizon: int | None = None
    blocks: int | None = None
    kind: str = "best"
    rule: str = "fixed"
    rank: int = 1
    statements: tuple[Statement, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def each(self) -> int:
        """Networks of the smallest family: whatever is certified, so many certify it."""
        return min(int(family["networks"]) for family in self.families)

    def position(self, family: int, index: int) -> int:
        """The number that a network has here, family after family; of one family, its index."""
        before = 0
        for one in self.families if len(self.families) > 1 else ():
            if one["family"] == family:
                break
            before += int(one["networks"])
        return before + index

    def family_name(self, position: int) -> str:
        """Which of several families a network belongs to; empty of one."""
        end = 0
        for family in self.families if len(self.families) > 1 else ():
            end += int(family["networks"])
            if position < end:
                return str(family["name"])
        return ""

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
        content = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("provenance", "worst")}
        content |= {"schema_version": SCHEMA_VERSION, "worst": dict(vars(self.worst))}
        content["statements"] = [statement.to_dict() for statement in self.statements]
        plain: dict[str, Any] = json.loads(json.dumps(content, allow_nan=False))
        return plain

    def to_dict(self) -> dict[str, Any]:
        """The certificate as JSON, with its digest."""
        identity = self.identity()
        return {**identity, "digest": digest_of(identity), "provenance": dict(self.provenance)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], path: str | Path = "certificate.json") -> Certificate:
        """Inverse of `to_dict`; anything missing, unknown or of the wrong type is refused, and so is a wrong digest."""
        expected = {f.name for f in fields(cls)} | {"schema_version", "digest"}
        for name in sorted(expected ^ set(content)):
            raise DamagedFile(path, str(name), "missing" if name in expected else "unknown")
        if content["schema_version"] is not SCHEMA_VERSION:
            raise DamagedFile(
                path, "schema_version", f"{content['schema_version']!r}, this version reads {SCHEMA_VERSION}"
            )
        values = {name: content[name] for name in expected - {"schema_version", "digest"}}
        for name, value in values.items():
            if not _fits(value, _TYPES[name]):
                raise DamagedFile(path, name, f"a value of another type was expected, found {value!r}"[:200])
        worst = values["worst"]
        if set(worst) != set(_WORST) or not all(_fits(worst[name], kind) for name, kind in _WORST.items()):
            raise DamagedFile(path, "worst", "not the worst case of a certificate")
        values |= {
            "worst": WorstCase(**worst),
            "families": tuple(values["families"]),
            "not_stated": tuple(values["not_stated"]),
            "statements": tuple(_statements(values["statements"], path)),
        }
        certificate = cls(**values)
        try:
            digest = digest_of(certificate.identity())
        except (TypeError, ValueError) as error:
            raise DamagedFile(path, "content", str(error)) from None
        if content["digest"] != digest:
            raise DamagedFile(path, "digest", "the content does not have the digest that was stored with it")
        return certificate

    def require_equal(self, derived: Certificate, path: str | Path = "certificate.json") -> None:
        """Refuse this certificate unless it says the same as one that was derived again.

        Raises
        ------
        DamagedFile
            Naming the first field that does not follow.
        """
        ours, theirs = self.identity(), derived.identity()
        for name in ours:
            if ours[name] != theirs[name]:
                raise DamagedFile(path, name, f"{_short(theirs[name])} follows, {_short(ours[name])} is stated")

    def check(self, scores: ArrayLike | None = None, path: str | Path = "certificate.json") -> None:
        """Derive every number and sentence again, with the scores also those that depend on them.

        Parameters
        ----------
        scores
            Those of the first score, or a table with a column for each: what is said of several is then derived too.
        path
            What to call the certificate.

        Raises
        ------
        DamagedFile
            Naming the first field that does not follow.
        """
        table = None if scores is None else np.atleast_1d(np.asarray(scores, dtype=np.float64))
        first = table if table is None or table.ndim == 1 else table[:, 0]
        if first is not None and len(first) != self.networks:
            raise DamagedFile(path, "networks", f"{len(first)} have scores, {self.networks} are stated")
        try:
            derived = _derive(self)
            if first is not None:
                derived = certify(
                    first,
                    score=self.score,
                    direction=self.direction,
                    unit=self.unit,
                    horizon=self.horizon,
                    blocks=self.blocks,
                    epsilon=self.epsilon,
                    beta=self.beta,
                    bound=self.bound,
                    law=self.law,
                    seed=self.seed,
                    digests=self.digests,
                    families=self.families,
                    statements=self.statements,
                )
        except InputError as error:
            raise DamagedFile(path, "content", str(error)) from None
        self.require_equal(derived, path)
        for statement in self.statements if table is not None else ():
            if not statement.of_all_scores:
                statement.check(first, path=path)
            elif table is not None and table.ndim == 2:
                statement.check(table, path=path)


def certify(
    scores: ArrayLike,
    *,
    score: str,
    direction: Literal["max", "min"],
    epsilon: float,
    beta: float,
    law: Mapping[str, Any],
    seed: int,
    digests: Mapping[str, str],
    bound: Literal["exact", "explicit"] = "exact",
    unit: str = "",
    horizon: int | None = None,
    blocks: int | None = None,
    families: Sequence[Mapping[str, Any]] = (),
    statements: Sequence[Statement] = (),
    provenance: Mapping[str, Any] | None = None,
) -> Certificate:
    """Certify the best (and the worst) of a number of networks settled beforehand, or found by a stopping rule.

    Parameters
    ----------
    scores
        One for each network, in the order of their index; not finite where a network diverged. All of them count.
    score, direction, unit, horizon
        What was scored, whether larger (``"max"``) or smaller (``"min"``) is better, its unit, and how many samples
        ahead outputs were predicted (None: a free run).
    blocks
        How many blocks of the training data were scored in turn (a score is their mean, and the model was trained
        again on all of them); None for validation data of their own.
    epsilon, beta, bound
        What is claimed, and by which bound.
    law, seed, digests
        From what the networks were drawn, and fingerprints of data, plan, ledger and model.
    families
        Where there are several: ``family``, ``name``, ``networks`` and ``law`` of each, their scores one after the
        other. What is certified then holds for a new network of whichever of them.
    statements
        What else these scores say: `Stopped` where a rule found the number of networks, `Removal`, `Families`,
        `JointScores`, `BothEnds`, `Gain`.
    provenance
        Where and when; not part of what is certified.

    Examples
    --------
    >>> certificate = certify([80.0, 90.0, float("-inf")], score="fit", direction="max", unit="%", epsilon=0.9,
    ...                       beta=0.01, law={}, seed=0, digests={})
    >>> certificate.winner, certificate.threshold, certificate.failures
    (1, 90.0, 1)
    >>> print(certificate.statement)
    With confidence 1 - 0.01, a new network drawn and trained in the same way scores a FIT above 90 % on these
    validation data with probability at most 0.9.
    """
    values = goodness(scores, direction)
    if values.ndim != 1 or not len(values):
        raise InputError(f"one score for each network is needed, got an array of shape {values.shape}")
    sign = 1.0 if direction == "max" else -1.0
    failed = ~np.isfinite(values)
    best, worst = select(scores, direction), int(np.argmin(values))
    count = len(values)
    draft = Certificate(
        score=score,
        direction=direction,
        unit=unit,
        horizon=horizon,
        blocks=blocks,
        networks=count,
        epsilon=float(epsilon),
        beta=float(beta),
        bound=bound,
        networks_required=0,
        epsilon_exact=0.0,
        beta_exact=0.0,
        log10_beta_exact=0.0,
        status="all diverged" if best is None else "certified",
        winner=best,
        threshold=None if best is None else float(sign * values[best]),
        failures=int(failed.sum()),
        statement="",
        not_stated=(),
        worst=WorstCase(
            index=worst,
            threshold=None if failed[worst] else float(sign * values[worst]),
            diverged=bool(failed[worst]),
            divergence_bound=None,
            statement="",
        ),
        law=law,
        seed=int(seed),
        families=_with_failures(families, failed) or ({"family": 0, "networks": count},),
        digests=digests,
        statements=tuple(statements),
        provenance=provenance or {},
    )
    return _derive(draft)


def _with_failures(families: Sequence[Mapping[str, Any]], failed: NDArray[np.bool_]) -> tuple[Mapping[str, Any], ...]:
    """Each of several families with the number of its networks that diverged."""
    if len(families) < 2:
        return tuple(families)
    parts = np.split(failed, np.cumsum([family["networks"] for family in families])[:-1])
    return tuple({**family, "failures": int(part.sum())} for family, part in zip(families, parts, strict=True))


def _derive(draft: Certificate) -> Certificate:
    """Fill in everything that follows from N, epsilon, beta, thresholds and failures."""
    n, epsilon, beta = draft.networks, draft.epsilon, draft.beta
    if draft.bound not in ("exact", "explicit"):
        raise InputError(f"the bound must be 'exact' or 'explicit', got {draft.bound!r}")
    _require_of_the_same(draft)
    rule = draft.stopping_rule
    # A rule that looks at ranks alone leaves everything as it is for a number settled beforehand.
    at_will = rule if rule is not None and not rule.by_ranks else None
    if at_will is not None:
        required = at_will.networks(epsilon)
    else:
        required = (networks_exact if draft.bound == "exact" else networks_explicit)(epsilon, beta)
    if sum(family.get("networks", 0) for family in draft.families) != n:
        raise InputError(f"the families do not have {n} networks in all")
    each = draft.each
    if each < required:
        raise InputError(
            f"{each} networks cannot certify epsilon={epsilon:g} at beta={beta:g}: {required} are needed by the"
            f" {draft.bound if at_will is None else at_will.kind} bound"
        )
    indices = {draft.worst.index} | ({draft.winner} if draft.winner is not None else set())
    if not (all(0 <= i < n for i in indices) and 0 <= draft.failures <= n and draft.seed >= 0):
        raise InputError(f"winner, worst, failures or seed cannot come from {n} networks")
    if draft.blocks is not None and draft.blocks < 2:
        raise InputError(f"blocks are scored in turn, so there are at least 2 of them, got {draft.blocks}")
    return replace(
        draft,
        kind="best",
        rule="fixed" if rule is None else rule.kind,
        rank=1,
        networks_required=required,
        epsilon_exact=epsilon_exact(each, beta) if at_will is None else at_will.epsilon(n),
        beta_exact=beta_exact(each, epsilon) if at_will is None else beta,
        log10_beta_exact=(log_beta_exact(each, epsilon) if at_will is None else math.log(beta)) / math.log(10),
        status="all diverged" if draft.winner is None else "certified",
        statement=statement_of(draft),
        not_stated=not_stated_of(draft),
        worst=worst_of(draft),
    )


def _require_of_the_same(draft: Certificate) -> None:
    """Statements in a certificate are of kinds that scores confirm, one of each, about the same scores."""
    kinds = [statement.kind for statement in draft.statements]
    if len(set(kinds)) < len(kinds) or not set(kinds) <= set(OF_SCORES):
        raise InputError(f"statements may be {', '.join(OF_SCORES)}, one of each, got {', '.join(kinds)}")
    for statement in draft.statements:
        for name in ("networks", "beta", "score", "direction", "unit", "horizon", "blocks"):
            ours, theirs = getattr(draft, name), getattr(statement, name, getattr(draft, name))
            if isinstance(theirs, tuple):  # one number for each family
                ours = tuple(family.get("networks") for family in draft.families)
            if ours != theirs:
                raise InputError(f"{name} is {ours!r}, but {theirs!r} in the statement {statement.kind!r}")


def _statements(content: Sequence[Any], path: str | Path) -> list[Statement]:
    for entry in content:
        if not isinstance(entry, dict):
            raise DamagedFile(path, "statements", f"{entry!r} is not a statement"[:200])
    return [Statement.from_dict(entry, path) for entry in content]


def schema() -> dict[str, Any]:
    """The JSON Schema of ``certificate.json``."""
    text = Path(__file__).with_name("certificate.schema.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


_NUMBER, _MAYBE = (int, float), (int, float, type(None))
_WORST: dict[str, Any] = {
    "index": int,
    "threshold": _MAYBE,
    "diverged": bool,
    "divergence_bound": _MAYBE,
    "statement": str,
}
_TYPES: dict[str, Any] = {
    **dict.fromkeys(("score", "direction", "unit", "bound", "status", "statement", "kind", "rule"), str),
    **dict.fromkeys(("networks", "networks_required", "failures", "seed", "rank"), int),
    **dict.fromkeys(("epsilon", "beta", "epsilon_exact", "beta_exact", "log10_beta_exact"), _NUMBER),
    **dict.fromkeys(("law", "digests", "worst", "provenance"), dict),
    **dict.fromkeys(("families", "not_stated", "statements"), list),
    "winner": (int, type(None)),
    "horizon": (int, type(None)),
    "blocks": (int, type(None)),
    "threshold": _MAYBE,
}


def _fits(value: Any, kind: Any) -> bool:
    """Whether a JSON value has a type; true and false are not numbers."""
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
