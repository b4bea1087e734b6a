"""The paper's experiment: data, 21 orders, table, figures."""

from echobound.reproduce.data import default_data_seed, paper_data
from echobound.reproduce.experiment import Reproduction, reproduce_paper
from echobound.reproduce.table import PAPER, PAPER_ORDERS

__all__ = ["PAPER", "PAPER_ORDERS", "Reproduction", "default_data_seed", "paper_data", "reproduce_paper"]
