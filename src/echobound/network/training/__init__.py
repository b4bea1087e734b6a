"""How a drawn network is trained: a file for each trainer. `base` has the contract."""

from echobound.network.training.base import Trained, Trainer, get_trainer, register_trainer
from echobound.network.training.free_run import FreeRun
from echobound.network.training.least_squares import LeastSquares
from echobound.network.training.projection import VariableProjection
from echobound.network.training.tools import PlainTools, Tools, TrainingData, TrainingSegment

__all__ = [
    "FreeRun",
    "LeastSquares",
    "PlainTools",
    "Tools",
    "Trained",
    "Trainer",
    "TrainingData",
    "TrainingSegment",
    "VariableProjection",
    "get_trainer",
    "register_trainer",
]
