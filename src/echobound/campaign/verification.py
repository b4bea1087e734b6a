"""What the fresh networks of a run say about its certificate."""

from __future__ import annotations

from typing import Any

import numpy as np

from echobound.campaign.folder import RunFolder
from echobound.scenario import count_violations, verify_counts, verify_divergence
from echobound.scenario.verification import Case

__all__ = ["verification_of"]


def verification_of(folder: RunFolder) -> dict[str, Any]:
    """Violations among all fresh networks drawn so far, with their probability under the exact theory.

    The best case stands at the top, the worst case under ``worst``. If the worst network of the search diverged, none
    can be worse, and the worst case is about the probability of divergence.
    """
    worst = _divergence(folder) if folder.certificate.worst.diverged else _counts(folder, "worst")
    return {**_counts(folder, "best"), "worst": worst}


def _counts(folder: RunFolder, case: Case) -> dict[str, Any]:
    certificate, fresh = folder.certificate, folder.verification["scores"][:, 0]
    threshold = certificate.threshold if case == "best" else certificate.worst.threshold
    strict, ties = count_violations(fresh, threshold, certificate.direction, case)
    outcome = verify_counts(certificate.networks, len(fresh), strict, ties, certificate.beta)
    return {
        "fresh": len(fresh),
        "violations": strict,
        "ties": ties,
        "p_value": outcome.p_value,
        "epsilon_combined": outcome.epsilon_combined,
        "clopper_pearson": outcome.clopper_pearson,
        "statement": outcome.statement(case),
    }


def _divergence(folder: RunFolder) -> dict[str, Any]:
    certificate, fresh = folder.certificate, folder.verification["scores"][:, 0]
    diverged = int((~np.isfinite(fresh)).sum())
    outcome = verify_divergence(certificate.networks, certificate.failures, len(fresh), diverged, certificate.beta)
    return {
        "fresh": len(fresh),
        "violations": 0,
        "ties": diverged,
        "p_value": 1.0,
        "epsilon_combined": outcome.epsilon_combined,
        "clopper_pearson": outcome.clopper_pearson,
        "statement": outcome.statement,
    }
