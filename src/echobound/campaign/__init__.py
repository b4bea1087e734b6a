"""Many draws, surely: engines, the ledger, progress events, the run folder."""

from echobound.campaign.cores import usable_cores, worker_count
from echobound.campaign.engine import evaluate_draws, run_campaign
from echobound.campaign.engines import Engine, get_engine, opened, require_known
from echobound.campaign.folder import Experiments, RunFolder
from echobound.campaign.generalisation import generalisation_of, record_once, settle_test
from echobound.campaign.ledger import Ledger, rows_digest
from echobound.campaign.outcome import Outcome, committee_outputs, outcome_of
from echobound.campaign.plan import Plan, settle_networks, settle_stop
from echobound.campaign.progress import Progress
from echobound.campaign.search import certificate_of, run_search
from echobound.campaign.stop import Stopped
from echobound.campaign.validation import Validation, settle_validation

__all__ = [
    "Engine",
    "Experiments",
    "Ledger",
    "Outcome",
    "Plan",
    "Progress",
    "RunFolder",
    "Stopped",
    "Validation",
    "certificate_of",
    "committee_outputs",
    "evaluate_draws",
    "generalisation_of",
    "get_engine",
    "opened",
    "outcome_of",
    "record_once",
    "require_known",
    "rows_digest",
    "run_campaign",
    "run_search",
    "settle_networks",
    "settle_stop",
    "settle_test",
    "settle_validation",
    "usable_cores",
    "worker_count",
]
