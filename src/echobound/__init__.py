"""echobound: identify nonlinear dynamical systems with echo state networks, and certify the result.

The public names follow the flow: records, what is drawn, the search, its certificate and verification, the model. Each
is imported when it is first used, so that what is not used costs nothing: ``import echobound`` takes milliseconds.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from echobound.audit import Audit, audit
    from echobound.campaign import Computing
    from echobound.compare import compare
    from echobound.data import Inspection, Record, inspect_file, read_csv, read_records, split
    from echobound.errors import EchoboundError
    from echobound.export import export_model
    from echobound.generalise import generalise
    from echobound.identification import Identification
    from echobound.identify import identify
    from echobound.network import (
        Choice,
        Committee,
        EchoStateNetwork,
        LeastSquares,
        LogUniform,
        ReservoirLaw,
        Stepper,
        Uniform,
        broad,
        from_reservoirpy,
        linearise,
        load_model,
        operating_point,
        paper,
    )
    from echobound.outer import outer_rank
    from echobound.plan import Plan
    from echobound.plants import ph_experiment
    from echobound.renew import renew
    from echobound.report import compare_figure
    from echobound.runs import RunFolder
    from echobound.scenario import Certificate, Generalisation
    from echobound.scores import Score, register_score
    from echobound.verify import verify

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
    "Inspection",
    "LeastSquares",
    "LogUniform",
    "Plan",
    "Record",
    "ReservoirLaw",
    "RunFolder",
    "Score",
    "Stepper",
    "Uniform",
    "audit",
    "broad",
    "compare",
    "compare_figure",
    "export_model",
    "from_reservoirpy",
    "generalise",
    "identify",
    "inspect_file",
    "linearise",
    "load_model",
    "operating_point",
    "outer_rank",
    "paper",
    "ph_experiment",
    "read_csv",
    "read_records",
    "register_score",
    "renew",
    "split",
    "verify",
]
_ROOMS = {
    "errors": ("EchoboundError",),
    "scores": ("Score", "register_score"),
    "data": ("Inspection", "Record", "inspect_file", "read_csv", "read_records", "split"),
    "plants": ("ph_experiment",),
    "network": (
        *("Choice", "Committee", "EchoStateNetwork", "LogUniform", "ReservoirLaw", "Uniform"),
        *("LeastSquares", "broad", "from_reservoirpy", "load_model", "paper"),
        *("Stepper", "linearise", "operating_point"),
    ),
    "scenario": ("Certificate", "Generalisation"),
    "plan": ("Plan",),
    "runs": ("RunFolder",),
    "campaign": ("Computing",),
    "report": ("compare_figure",),
    "export": ("export_model",),
    "identification": ("Identification",),
    "identify": ("identify",),
    "compare": ("compare",),
    "verify": ("verify",),
    "outer": ("outer_rank",),
    "generalise": ("generalise",),
    "renew": ("renew",),
    "audit": ("Audit", "audit"),
}
_HOMES = {name: room for room, names in _ROOMS.items() for name in names}


class _Package(ModuleType):
    """A package whose public names win over its modules: `echobound.identify` is the function, whatever is loaded.

    Python makes a module an attribute of its package when it is imported. Of a module that is called like what it
    holds, this is declined; `import_module` and ``from echobound.identify import ...`` find it all the same.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and name in _HOMES):
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{self.__name__}.{_HOMES[name]}"), name)
        super().__setattr__(name, value)
        return value

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


sys.modules[__name__].__class__ = _Package
