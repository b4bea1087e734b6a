"""What hands out work: batches of draws to threads, processes or a cluster, and the loop of a search."""

from echobound.campaign.computing import Computing, ComputingSettings
from echobound.campaign.dispatch import evaluate_draws, run_campaign
from echobound.campaign.engines import Engine, get_engine, require_known
from echobound.campaign.interrupt import Interrupted
from echobound.campaign.machine import usable_cores, worker_count
from echobound.campaign.search import run_search

__all__ = [
    "Computing",
    "ComputingSettings",
    "Engine",
    "Interrupted",
    "evaluate_draws",
    "get_engine",
    "require_known",
    "run_campaign",
    "run_search",
    "usable_cores",
    "worker_count",
]
