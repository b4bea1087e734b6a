"""Verification: what the fresh networks of a run say about its certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from echobound.arrays import Scores
from echobound.runs.folder import RunFolder
from echobound.scenario import count_violations, verify_counts, verify_divergence
from echobound.scenario.bounds import Probability, as_probability
from echobound.scenario.fresh import either_words
from echobound.scenario.ordering import Case, goodness
from echobound.scenario.words import confidence, noun, upward

CASES: tuple[Case, ...] = ("best", "worst")


class CaseOutcome(TypedDict, total=False):
    """What fresh networks say about the best or the worst of a search; see `verify`."""

    name: str  # of the family, inside `families`
    fresh: int
    violations: int
    ties: int
    p_value: float
    epsilon_combined: float
    epsilon_fresh: float
    statement: str
    families: list[CaseOutcome]


class VerificationOutcome(CaseOutcome):
    """The best case, with the worst case beside it."""

    worst: CaseOutcome


def verification_of(folder: RunFolder) -> VerificationOutcome:
    """Violations among all fresh networks drawn so far, with their probability under the exact theory.

    The best case is at the top level, the worst case under ``worst``. If the worst network of the search diverged, none
    can be worse, and the worst case is about the probability of divergence. With several families, each is compared
    with its own best and worst, for which there is an exact theory; these outcomes are under ``families``. If the
    search was stopped at will, its networks count as the martingale of the rule `mixture` counts them. All limits hold
    at every number of fresh networks together, so that one may look and add more.
    """
    count = len(folder.plan.families)
    searches, tests = (np.split(rows["scores"][:, 0], count) for rows in (folder.search, folder.fresh))
    direction, beta = folder.certificate.direction, as_probability("beta", folder.certificate.beta) / count
    share: Probability = folder.certificate.beta if count == 1 else beta
    what = folder.plan.members, folder.plan.at_will
    families = [_FamilyScores(*scores, direction, share, *what) for scores in zip(searches, tests, strict=True)]
    best, worst = (
        families[0].outcome(case) if count == 1 else _over_families(folder, families, case) for case in CASES
    )
    return {**best, "worst": worst}


@dataclass(frozen=True, eq=False)
class _FamilyScores:
    """Networks of the search and fresh ones, drawn from one law."""

    search: Scores
    fresh: Scores
    direction: Any
    beta: Probability
    members: int
    at_will: bool  # whether the number of networks of the search may depend on their scores

    def outcome(self, case: Case) -> CaseOutcome:
        values = goodness(self.search, self.direction)
        threshold = self.search[np.argmax(values) if case == "best" else np.argmin(values)]
        if case == "worst" and not np.isfinite(threshold):
            return self._divergence()
        strict, ties = count_violations(self.fresh, float(threshold), self.direction, case)
        # If all of the search diverged, every fresh one that diverges is a tie, and pooled they would certify nothing.
        how: dict[str, Any] = {"alone": not np.isfinite(threshold), "at_will": self.at_will, "members": self.members}
        outcome = verify_counts(len(self.search), len(self.fresh), strict, ties, self.beta, **how)
        return self._listed(strict, ties, outcome.p_value, outcome, outcome.statement(case))

    def _divergence(self) -> CaseOutcome:
        failures, diverged = (int((~np.isfinite(scores)).sum()) for scores in (self.search, self.fresh))
        counts = len(self.search), failures, len(self.fresh), diverged
        outcome = verify_divergence(*counts, self.beta, members=self.members)
        return self._listed(0, diverged, 1.0, outcome, outcome.statement)

    def _listed(self, violations: int, ties: int, p_value: float, outcome: Any, statement: str) -> CaseOutcome:
        return {
            "fresh": len(self.fresh),
            "violations": violations,
            "ties": ties,
            "p_value": p_value,
            "epsilon_combined": outcome.epsilon_combined,
            "epsilon_fresh": outcome.epsilon_fresh,
            "statement": statement,
        }


def _over_families(folder: RunFolder, families: list[_FamilyScores], case: Case) -> CaseOutcome:
    """How many networks of all families violate the certificate, and each family against its own best or worst.

    A network that violates the certificate violates its own family's best as well. So the largest of the families'
    limits, each with its share of beta, holds for the certificate, whichever family a new network comes from.
    """
    certificate, drawn = folder.certificate, noun(folder.plan.members)
    names, each = [family.name for family in folder.plan.families], [family.outcome(case) for family in families]
    fresh = folder.fresh["scores"][:, 0]
    threshold = certificate.threshold if case == "best" else certificate.worst.threshold
    strict, ties = count_violations(fresh, threshold, certificate.direction, case)
    p_value = min(1.0, len(each) * min(outcome["p_value"] for outcome in each))
    combined = max(outcome["epsilon_combined"] for outcome in each)
    own = "; ".join(f"{name} {outcome['violations']}" for name, outcome in zip(names, each, strict=True))
    if case == "worst" and certificate.worst.diverged:  # nothing is worse: what is left is to diverge
        seen, new = f"{ties} diverged", "diverges"
    else:
        what = "better than the best" if case == "best" else "worse than the worst"
        seen, new = f"{strict} are {what} of all families", f"is {what}"
    return {
        "fresh": len(fresh),
        "violations": strict,
        "ties": ties,
        "p_value": p_value,
        "epsilon_combined": combined,
        "epsilon_fresh": max(outcome["epsilon_fresh"] for outcome in each),
        "statement": (
            f"Of {len(fresh)} fresh {drawn.many}, {each[0]['fresh']} of each family, {seen}. Beyond each family's own"
            f" {case}: {own}; for numbers settled beforehand, the exact theory gives so many, or more, in one of the"
            f" {len(each)} families a probability of at most {p_value:.3g}. Search and fresh {drawn.many} together"
            f" show that {drawn.new} from any family {new} with probability at most {upward(combined)} at confidence"
            f" 1 - {confidence(certificate.beta)}, however often one looks and adds more."
            f" {either_words(certificate.beta)}"
        ),
        "families": [{"name": name, **outcome} for name, outcome in zip(names, each, strict=True)],
    }
