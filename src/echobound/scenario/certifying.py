"""Certifying: from scores to a certificate, and from a certificate's few free numbers to all the others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike

from echobound.arrays import Mask
from echobound.errors import InputError
from echobound.scenario.bounds import beta_exact, epsilon_exact, log_beta_exact, networks_exact, networks_explicit
from echobound.scenario.certificate import Certificate, WorstCase
from echobound.scenario.ordering import Direction, goodness_of_each, select
from echobound.scenario.sentences import not_stated_of, statement_of, worst_of
from echobound.scenario.statements import registry
from echobound.scenario.statements.base import Statement

# What `certify` takes besides the scores: the rest of a certificate follows.
SETTLED = (
    *("score", "direction", "unit", "horizon", "blocks", "members", "epsilon", "beta", "bound"),
    *("law", "seed", "digests", "families", "statements"),
)
# What `derived` fills in.
OPEN = ("networks_required", "epsilon_exact", "beta_exact", "log10_beta_exact", "status", "statement", "not_stated")


def certify(
    scores: ArrayLike,
    *,
    score: str,
    direction: Direction,
    epsilon: float,
    beta: float,
    law: Mapping[str, Any],
    seed: int,
    digests: Mapping[str, str],
    bound: Literal["exact", "explicit"] = "exact",
    unit: str = "",
    horizon: int | None = None,
    blocks: int | None = None,
    members: int = 1,
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
    members
        Of how many networks each draw is a committee, if they are: all numbers and words are then about committees.
    epsilon, beta, bound
        What is claimed, and by which bound.
    law, seed, digests
        From what the networks were drawn, and fingerprints of data, plan, ledger and model.
    families
        Where there are several: ``family``, ``name``, ``networks`` and ``law`` of each, their scores one after the
        other. What is certified then holds for a new network from any of them.
    statements
        What else these scores say, as `statements_of` makes it.
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
    values = goodness_of_each(scores, direction)
    sign = 1.0 if direction == "max" else -1.0  # turns goodness back into the score
    failed = ~np.isfinite(values)
    best, worst = select(scores, direction), int(np.argmin(values))
    lowest = None if failed[worst] else float(sign * values[worst])
    count = len(values)
    draft = Certificate(
        score=score,
        direction=direction,
        unit=unit,
        horizon=horizon,
        blocks=blocks,
        members=members,
        networks=count,
        epsilon=float(epsilon),
        beta=float(beta),
        bound=bound,
        winner=best,
        threshold=None if best is None else float(sign * values[best]),
        failures=int(failed.sum()),
        worst=WorstCase(worst, lowest, diverged=lowest is None, divergence_bound=None, statement=""),
        law=law,
        seed=int(seed),
        families=_with_failures(families, failed) or ({"family": 0, "networks": count},),
        digests=digests,
        statements=tuple(statements),
        provenance=provenance or {},
        **cast(Any, dict.fromkeys(OPEN)),
    )
    return derived(draft)


def _with_failures(families: Sequence[Mapping[str, Any]], failed: Mask) -> tuple[Mapping[str, Any], ...]:
    """Each of several families with the number of its networks that diverged."""
    if len(families) < 2:
        return tuple(families)
    parts = np.split(failed, np.cumsum([family["networks"] for family in families])[:-1])
    return tuple({**family, "failures": int(part.sum())} for family, part in zip(families, parts, strict=True))


def derived(draft: Certificate) -> Certificate:
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
    each = draft.each  # the smallest family decides: to beat the global best, a new network may come from it
    if each < required:
        raise InputError(
            f"{each} networks cannot certify epsilon={epsilon:g} at beta={beta:g}: {required} are needed by the"
            f" {draft.bound if at_will is None else at_will.kind} bound"
        )
    indices = {draft.worst.index} | ({draft.winner} if draft.winner is not None else set())
    if not (all(0 <= i < n for i in indices) and 0 <= draft.failures <= n and draft.seed >= 0):
        raise InputError(f"winner, worst, failures or seed cannot come from {n} networks")
    if draft.blocks is not None and draft.blocks < 2:
        raise InputError(f"blocks are scored in turn, so at least 2 are needed, got {draft.blocks}")
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
    """Statements in a certificate are of kinds that a search makes, one of each, about the same scores."""
    kinds = [statement.kind for statement in draft.statements]
    allowed = [kind.kind for kind in registry.OF_SEARCH]
    if len(set(kinds)) < len(kinds) or not set(kinds) <= set(allowed):
        raise InputError(f"statements may be {', '.join(allowed)}, one of each, got {', '.join(kinds)}")
    for statement in draft.statements:
        for name in ("networks", "beta", "score", "direction", "unit", "horizon", "blocks", "members"):
            ours, theirs = getattr(draft, name), getattr(statement, name, getattr(draft, name))
            if isinstance(theirs, tuple):  # one number for each family
                ours = tuple(family.get("networks") for family in draft.families)
            if ours != theirs:
                raise InputError(f"{name} is {ours!r}, but {theirs!r} in the statement {statement.kind!r}")
