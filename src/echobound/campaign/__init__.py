"""Many draws, surely: engines, the ledger, progress events, the run folder."""

from echobound.campaign.engine import Progress, run_campaign, usable_cores, worker_count
from echobound.campaign.folder import Experiments, RunFolder
from echobound.campaign.ledger import Ledger, rows_digest
from echobound.campaign.outcome import Outcome, committee_outputs, outcome_of
from echobound.campaign.plan import Plan, settle_networks
from echobound.campaign.validation import Validation, settle_validation

__all__ = [
    "Experiments",
    "Ledger",
    "Outcome",
    "Plan",
    "Progress",
    "RunFolder",
    "Validation",
    "committee_outputs",
    "outcome_of",
    "rows_digest",
    "run_campaign",
    "settle_networks",
    "settle_validation",
    "usable_cores",
    "worker_count",
]
