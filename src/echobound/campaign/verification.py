"""What the fresh networks of a run say about its certificate."""

from __future__ import annotations

from typing import Any

from echobound.campaign.folder import RunFolder
from echobound.scenario import count_violations, verify_counts
from echobound.scenario.verification import Case

__all__ = ["verification_of"]


def verification_of(folder: RunFolder) -> dict[str, Any]:
    """Violations among all fresh networks drawn so far, with their probability under the exact theory.

    The best case stands at the top, the worst case under ``worst``.
    """
    certificate, fresh = folder.certificate, folder.verification["scores"][:, 0]
    cases: dict[str, Any] = {}
    thresholds: dict[Case, float | None] = {"best": certificate.threshold, "worst": certificate.worst.threshold}
    for case, threshold in thresholds.items():
        strict, ties = count_violations(fresh, threshold, certificate.direction, case)
        outcome = verify_counts(certificate.networks, len(fresh), strict, ties, certificate.beta)
        cases[case] = {
            "fresh": len(fresh),
            "violations": strict,
            "ties": ties,
            "p_value": outcome.p_value,
            "epsilon_combined": outcome.epsilon_combined,
            "clopper_pearson": outcome.clopper_pearson,
            "statement": outcome.statement(case),
        }
    return {**cases["best"], "worst": cases["worst"]}
