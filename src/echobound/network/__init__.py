"""What is drawn (ReservoirLaw), one draw (Reservoir), its readout, and the models: EchoStateNetwork, Committee."""

from echobound.network.adaptation import Adaptation
from echobound.network.committee import Committee
from echobound.network.distribution import Choice, LogUniform, Uniform
from echobound.network.foreign import from_reservoirpy
from echobound.network.law import NetworkLaw, ReservoirLaw, broad, family_names, get_law, get_laws, paper
from echobound.network.limits import Limits
from echobound.network.loading import load_model
from echobound.network.mixed import MixedLaw, network_law_from_dict
from echobound.network.model import EchoStateNetwork, Simulation
from echobound.network.reservoir import Reservoir, ReservoirDraw, draw_reservoir
from echobound.network.response import Holding, Model, bound_words, holdings, respond
from echobound.network.training import LeastSquares, Trained, Trainer, get_trainer, register_trainer

__all__ = [
    "Adaptation",
    "Choice",
    "Committee",
    "EchoStateNetwork",
    "Holding",
    "LeastSquares",
    "Limits",
    "LogUniform",
    "MixedLaw",
    "Model",
    "NetworkLaw",
    "Reservoir",
    "ReservoirDraw",
    "ReservoirLaw",
    "Simulation",
    "Trained",
    "Trainer",
    "Uniform",
    "bound_words",
    "broad",
    "draw_reservoir",
    "family_names",
    "from_reservoirpy",
    "get_law",
    "get_laws",
    "get_trainer",
    "holdings",
    "load_model",
    "network_law_from_dict",
    "paper",
    "register_trainer",
    "respond",
]
