"""What is drawn (ReservoirLaw), one draw (Reservoir), its readout (least squares) and the model (EchoStateNetwork)."""

from echobound.network.adaptation import Adaptation
from echobound.network.distribution import Choice, LogUniform, Uniform
from echobound.network.foreign import from_reservoirpy
from echobound.network.law import ReservoirLaw, broad, get_law, paper
from echobound.network.model import EchoStateNetwork, Simulation
from echobound.network.reservoir import Reservoir, draw_reservoir

__all__ = [
    "Adaptation",
    "Choice",
    "EchoStateNetwork",
    "LogUniform",
    "Reservoir",
    "ReservoirLaw",
    "Simulation",
    "Uniform",
    "broad",
    "draw_reservoir",
    "from_reservoirpy",
    "get_law",
    "paper",
]
