"""echobound: identify nonlinear dynamical systems with echo state networks, and certify the result.

The public names follow the flow: records, what is drawn, the search, its certificate and verification, the model.
"""

from echobound.errors import EchoboundError  # isort: skip
from echobound.scores import Score, register_score  # isort: skip
from echobound.data import Record, read_csv, read_records, split  # isort: skip
from echobound.plants import ph_experiment  # isort: skip
from echobound.network import Choice, Committee, EchoStateNetwork, LogUniform, ReservoirLaw, Uniform  # isort: skip
from echobound.network import LeastSquares, broad, from_reservoirpy, load_model, paper  # isort: skip
from echobound.scenario import Certificate, Generalisation  # isort: skip
from echobound.plan import Plan  # isort: skip
from echobound.runs import RunFolder  # isort: skip
from echobound.campaign import Computing  # isort: skip
from echobound.identify import Identification, identify  # isort: skip
from echobound.compare import compare  # isort: skip
from echobound.verify import verify  # isort: skip
from echobound.generalise import generalise  # isort: skip
from echobound.renew import renew  # isort: skip
from echobound.audit import Audit, audit  # isort: skip

__all__ = [
    "Audit",
    "Certificate",
    "Choice",
    "Committee",
    "Computing",
    "EchoStateNetwork",
    "EchoboundError",
    "Generalisation",
    "Identification",
    "LeastSquares",
    "LogUniform",
    "Plan",
    "Record",
    "ReservoirLaw",
    "RunFolder",
    "Score",
    "Uniform",
    "audit",
    "broad",
    "compare",
    "from_reservoirpy",
    "generalise",
    "identify",
    "load_model",
    "paper",
    "ph_experiment",
    "read_csv",
    "read_records",
    "register_score",
    "renew",
    "split",
    "verify",
]
