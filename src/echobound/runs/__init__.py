"""What is on disk: the run folder, its ledger and lock, where it came from, and what follows from it."""

from echobound.runs.folder import RunFolder
from echobound.runs.ledger import Ledger, rows_digest
from echobound.runs.progress import Progress

__all__ = ["Ledger", "Progress", "RunFolder", "rows_digest"]
