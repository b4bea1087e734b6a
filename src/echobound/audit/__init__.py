"""A certificate derived again by somebody else, from the files of a run and from its networks, trained again.

What a run folder says of itself (digests, numbers, words) can be made to fit by anyone who knows how. What cannot is
the score of a network: it follows from seed, index, law and data. So networks are drawn and trained again: all that
carry a claim, and of the others some that nobody could foresee.
"""

from echobound.audit.auditing import audit
from echobound.audit.findings import Audit, Finding, detection

__all__ = ["Audit", "Finding", "audit", "detection"]
