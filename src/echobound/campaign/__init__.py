"""What hands out work: batches of draws to threads, processes or a cluster, and the loop of a search."""

from echobound.campaign.computing import Computing, ComputingSettings
from echobound.campaign.dispatch import evaluate_draws, run_campaign
from echobound.campaign.engines import Engine, get_engine
from echobound.campaign.machine import usable_cores
from echobound.campaign.search import run_search

__all__ = [
    "Computing",
    "ComputingSettings",
    "Engine",
    "evaluate_draws",
    "get_engine",
    "run_campaign",
    "run_search",
    "usable_cores",
]
