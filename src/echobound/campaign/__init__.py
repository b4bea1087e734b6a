"""Many draws, surely: engines, the ledger, progress events, the run folder."""

from echobound.campaign.engine import Progress, run_campaign, usable_cores, worker_count
from echobound.campaign.folder import Experiments, RunFolder
from echobound.campaign.ledger import Ledger, rows_digest
from echobound.campaign.plan import Plan, settle_networks

__all__ = [
    "Experiments",
    "Ledger",
    "Plan",
    "Progress",
    "RunFolder",
    "rows_digest",
    "run_campaign",
    "settle_networks",
    "usable_cores",
    "worker_count",
]
