"""Status: a campaign as seen by another process, from its ledger and its lock alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from echobound.draws import SEARCH, VERIFICATION
from echobound.errors import RunError
from echobound.runs.ledger import latest_progress
from echobound.runs.lock import Holder, holder
from echobound.runs.progress import Progress

STREAMS = {SEARCH: "search", VERIFICATION: "fresh networks"}


@dataclass(frozen=True, slots=True)
class CampaignStatus:
    """What can be seen of a campaign."""

    progress: Progress | None  # None before the first start
    what: str  # is being drawn: the search or fresh networks, and the family where there are several
    holder: Holder | None  # the process that writes, if one does

    @property
    def running(self) -> bool:
        """Whether a process writes."""
        return bool(self.holder)


def status_of(folder: Path) -> CampaignStatus:
    """Status of the campaign in a run folder; whoever writes there is not disturbed."""
    path, writes = folder / "ledger.sqlite", holder(folder)
    started = path.exists()
    if not started and not writes and not (folder / "plan.json").exists():
        raise RunError(f"{folder} is not a run folder (it has no ledger.sqlite): give the folder of a run")
    found = latest_progress(path) if started else None
    if found is None:
        return CampaignStatus(None, "", writes)
    stream, family, progress = found
    what = STREAMS.get(stream, f"stream {stream}")
    return CampaignStatus(progress, f"{what}, family {family}" if family else what, writes)
