"""What is drawn (laws), one draw (Reservoir, Cascade), its training, and the models that come of it."""

from typing import TYPE_CHECKING

from echobound.network.cascade import Cascade
from echobound.network.cascade_law import CascadeDraw, CascadeLaw
from echobound.network.distribution import Choice, LogUniform, Uniform
from echobound.network.law import NetworkLaw, ReservoirLaw
from echobound.network.laws import (
    Shape,
    broad,
    family_names,
    get_law,
    get_laws,
    mixed,
    paper,
    quick,
    small,
    without_feedback,
)
from echobound.network.limits import Limits
from echobound.network.mixed_law import MixedLaw, law_drawn_from, network_law_from_dict
from echobound.network.reservoir import Reservoir, ReservoirDraw, draw_reservoir
from echobound.network.training import (
    FreeRun,
    LeastSquares,
    Trained,
    Trainer,
    VariableProjection,
    get_trainer,
    register_trainer,
)
from echobound.onward import on_first_use

if TYPE_CHECKING:
    from echobound.network.adaptation import Adaptation
    from echobound.network.cascade_model import CascadeModel
    from echobound.network.committee import Committee
    from echobound.network.equations import Equations
    from echobound.network.exportable import Exportable, of_run
    from echobound.network.foreign import from_reservoirpy
    from echobound.network.linearisation import LinearModel, OperatingPoint, linearise, operating_point
    from echobound.network.loading import load_model
    from echobound.network.model import EchoStateNetwork, Simulation
    from echobound.network.plant_model import PlantModel
    from echobound.network.response import Holding, Model, bound_words, holdings, respond
    from echobound.network.stepping import Jacobians, Stepper
    from echobound.network.structures import model_from_content

__all__ = [
    "Adaptation",
    "Cascade",
    "CascadeDraw",
    "CascadeLaw",
    "CascadeModel",
    "Choice",
    "Committee",
    "EchoStateNetwork",
    "Equations",
    "Exportable",
    "FreeRun",
    "Holding",
    "Jacobians",
    "LeastSquares",
    "Limits",
    "LinearModel",
    "LogUniform",
    "MixedLaw",
    "Model",
    "NetworkLaw",
    "OperatingPoint",
    "PlantModel",
    "Reservoir",
    "ReservoirDraw",
    "ReservoirLaw",
    "Shape",
    "Simulation",
    "Stepper",
    "Trained",
    "Trainer",
    "Uniform",
    "VariableProjection",
    "bound_words",
    "broad",
    "draw_reservoir",
    "family_names",
    "from_reservoirpy",
    "get_law",
    "get_laws",
    "get_trainer",
    "holdings",
    "law_drawn_from",
    "linearise",
    "load_model",
    "mixed",
    "model_from_content",
    "network_law_from_dict",
    "of_run",
    "operating_point",
    "paper",
    "quick",
    "register_trainer",
    "respond",
    "small",
    "without_feedback",
]

__getattr__ = on_first_use(
    __name__,
    {
        "adaptation": ("Adaptation",),
        "cascade_model": ("CascadeModel",),
        "committee": ("Committee",),
        "equations": ("Equations",),
        "exportable": (
            "Exportable",
            "of_run",
        ),
        "foreign": ("from_reservoirpy",),
        "linearisation": (
            "LinearModel",
            "OperatingPoint",
            "linearise",
            "operating_point",
        ),
        "loading": ("load_model",),
        "model": (
            "EchoStateNetwork",
            "Simulation",
        ),
        "plant_model": ("PlantModel",),
        "response": (
            "Holding",
            "Model",
            "bound_words",
            "holdings",
            "respond",
        ),
        "stepping": (
            "Jacobians",
            "Stepper",
        ),
        "structures": ("model_from_content",),
    },
)
