"""From model to controller: an observer, model predictive control, and the closed loop around a plant."""

from echobound.control.closed_loop import ClosedLoop, Faults, simulate_closed_loop
from echobound.control.compiled import CController
from echobound.control.export import ExportedController, export_controller, require_exportable
from echobound.control.mpc import MPC
from echobound.control.observer import Observer, Reading
from echobound.control.pi import PI
from echobound.control.planning import Effort
from echobound.control.plants import FMUPlant, FunctionPlant, PHProcess, Plant, plant_of
from echobound.control.scenarios import Scenarios, ScenarioStatement, best_networks, epsilon_of, statement_of
from echobound.control.steps import Active, ControlStep

__all__ = [
    "MPC",
    "PI",
    "Active",
    "CController",
    "ClosedLoop",
    "ControlStep",
    "Effort",
    "ExportedController",
    "FMUPlant",
    "Faults",
    "FunctionPlant",
    "Observer",
    "PHProcess",
    "Plant",
    "Reading",
    "ScenarioStatement",
    "Scenarios",
    "best_networks",
    "epsilon_of",
    "export_controller",
    "plant_of",
    "require_exportable",
    "simulate_closed_loop",
    "statement_of",
]
