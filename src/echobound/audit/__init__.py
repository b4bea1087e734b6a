"""Audit: a certificate derived again by somebody else, from the files of a run and from networks trained again.

What a run folder says about itself (digests, numbers, words) can be made consistent by anyone who knows how. The score
of a network cannot: it follows from seed, index, law and data. So networks are drawn and trained again: all that carry
a claim, and a sample of the others that nobody could foresee.
"""

from echobound.audit.auditing import audit
from echobound.audit.findings import Audit, detection

__all__ = ["Audit", "audit", "detection"]
