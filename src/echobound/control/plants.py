"""Plants to be controlled: the built-in pH process, any Python function, or an FMU; one sample at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from echobound.arrays import Vector
from echobound.errors import InputError, MissingExtra
from echobound.plants import PHPlant, PHState, ph_of


class Plant(Protocol):
    """What a closed loop is closed around."""

    def start(self) -> tuple[Vector, Vector]:
        """Go to rest, and return the input that is applied there and the output, in this order."""

    def step(self, u: Vector, disturbance: Vector) -> Vector:
        """Apply inputs and unmeasured disturbances until the next sample, and return the outputs then."""


class PHProcess:
    """The pH process of the paper: the input is the alkaline flow q3, the unmeasured disturbance the buffer flow q2.

    Parameters
    ----------
    plant
        The reactor; the nominal one if not given. Another one than the model was trained on is a mismatch.
    sampling_time
        Seconds.

    Examples
    --------
    >>> process = PHProcess()
    >>> u, y = process.start()
    >>> u.tolist(), y.round(3).tolist(), process.step(np.array([16.7]), np.array([0.55])).round(3).tolist()
    ([15.6], [7.026], [7.09])
    """

    def __init__(self, plant: PHPlant | None = None, sampling_time: float = 10.0) -> None:
        self.plant, self.sampling_time = plant or PHPlant(), sampling_time
        self._state = self.plant.steady_state()

    def start(self) -> tuple[Vector, Vector]:
        """At rest at the nominal flows."""
        state: PHState = self.plant.steady_state()
        self._state = state
        now = float(ph_of(state.wa4, state.wb4, self.plant.pk1, self.plant.pk2))
        return np.array([self.plant.q3]), np.array([now])

    def step(self, u: Vector, disturbance: Vector) -> Vector:
        """The pH one sample later; without a disturbance the buffer flow is nominal."""
        q2 = float(disturbance[0]) if len(disturbance) else None
        self._state, now = self.plant.advance(self._state, float(u[0]), q2, self.sampling_time)
        return np.array([now])


class FunctionPlant:
    """Any Python function as a plant: ``function(state, u, disturbance) -> (next state, next output)``.

    Parameters
    ----------
    function
        One sample of the plant. What a state is, is up to the function; u and disturbance are vectors.
    state, u, y
        At rest: the state, the input and the output from which a loop starts.

    Examples
    --------
    >>> lag = FunctionPlant(lambda x, u, w: (0.9 * x + 0.1 * u, 0.9 * x + 0.1 * u), state=np.zeros(1), u=0.0, y=0.0)
    >>> lag.start(), lag.step(np.ones(1), np.zeros(0)).tolist()
    ((array([0.]), array([0.])), [0.1])
    """

    def __init__(self, function: Callable[..., tuple[Any, ArrayLike]], state: Any, u: ArrayLike, y: ArrayLike) -> None:
        self.function, self._rest, self._state = function, state, state
        self._u, self._y = (np.atleast_1d(np.asarray(one, dtype=np.float64)) for one in (u, y))

    def start(self) -> tuple[Vector, Vector]:
        """At rest."""
        self._state = self._rest
        return self._u.copy(), self._y.copy()

    def step(self, u: Vector, disturbance: Vector) -> Vector:
        """One call of the function."""
        self._state, y = self.function(self._state, u, disturbance)
        return np.atleast_1d(np.asarray(y, dtype=np.float64))


class FMUPlant:
    """An FMU for co-simulation (FMI 2.0 or 3.0) as a plant, through FMPy, which must be installed.

    Parameters
    ----------
    path
        The FMU.
    inputs, outputs
        Names of its variables, in the order of the model's inputs and outputs; then those of unmeasured disturbances.
    u
        The input at which it starts, and is left for `settle` samples until it rests.
    sampling_time
        Seconds.
    disturbances
        Names of unmeasured disturbances, and their values at the start.
    """

    def __init__(
        self,
        path: str | Path,
        inputs: Sequence[str],
        outputs: Sequence[str],
        u: ArrayLike,
        sampling_time: float,
        disturbances: dict[str, float] | None = None,
        settle: int = 0,
    ) -> None:
        try:
            from fmpy import extract, read_model_description
            from fmpy.fmi2 import FMU2Slave
            from fmpy.fmi3 import FMU3Slave
        except ImportError:
            raise InputError("a plant that is an FMU needs FMPy: pip install fmpy") from None
        if not Path(path).is_file():
            raise InputError(f"{path} is not a file: give the path of an FMU")
        description = read_model_description(str(path))
        if description.coSimulation is None:
            raise InputError(f"{path} is not for co-simulation: export it so, as a plant is run sample by sample")
        self.sampling_time, self.settle = sampling_time, settle
        self._disturbances = disturbances or {}
        references = {one.name: one.valueReference for one in description.modelVariables}
        missing = [name for name in (*inputs, *outputs, *self._disturbances) if name not in references]
        if missing:
            raise InputError(f"{path} has no variable {', '.join(missing)}: it has {', '.join(list(references)[:20])}")
        self._inputs = [references[name] for name in (*inputs, *self._disturbances)]
        self._outputs = [references[name] for name in outputs]
        self._u = np.atleast_1d(np.asarray(u, dtype=np.float64))
        self._third = str(description.fmiVersion).startswith("3")
        self._make = partial(
            FMU3Slave if self._third else FMU2Slave,
            guid=getattr(description, "guid", None) or description.instantiationToken,
            unzipDirectory=extract(str(path)),
            modelIdentifier=description.coSimulation.modelIdentifier,
            instanceName="plant",
        )
        self._slave: Any = None
        self._time = 0.0

    def start(self) -> tuple[Vector, Vector]:
        """A new simulation, left at its first input until it has settled."""
        if self._slave is not None:
            self._slave.terminate()
            self._slave.freeInstance()
        # A new one: to free an instance also unloads its library.
        self._slave = slave = self._make()
        slave.instantiate()
        if not self._third:
            slave.setupExperiment(startTime=0.0)
        slave.enterInitializationMode()
        self._set(self._u, np.array(list(self._disturbances.values())))
        slave.exitInitializationMode()
        self._time = 0.0
        y = self._get()
        for _ in range(self.settle):
            y = self.step(self._u, np.zeros(0))
        return self._u.copy(), y

    def step(self, u: Vector, disturbance: Vector) -> Vector:
        """One communication step."""
        self._set(u, disturbance)
        self._slave.doStep(currentCommunicationPoint=self._time, communicationStepSize=self.sampling_time)
        self._time += self.sampling_time
        return self._get()

    def _set(self, u: Vector, disturbance: Vector) -> None:
        own = np.array(list(self._disturbances.values()))
        own[: len(disturbance)] = disturbance
        values = [*u.tolist(), *own.tolist()]
        (self._slave.setFloat64 if self._third else self._slave.setReal)(self._inputs, values)

    def _get(self) -> Vector:
        found = (self._slave.getFloat64 if self._third else self._slave.getReal)(self._outputs)
        return np.array(list(found), dtype=np.float64)


def plant_of(name: str) -> Plant:
    """A plant by name: ``ph``, or ``file.py:function``, which is called without arguments and returns one.

    Examples
    --------
    >>> type(plant_of("ph")).__name__
    'PHProcess'
    """
    if name == "ph":
        return PHProcess()
    file, _, function = name.rpartition(":")
    if not file.endswith(".py") or not function:
        raise InputError(f"a plant is ph, or file.py:function for one's own, got {name!r}")
    path = Path(file)
    if not path.is_file():
        raise InputError(f"{file} is not a file: give the Python file that makes the plant")
    import importlib.util

    spec = importlib.util.spec_from_file_location("plant", path)
    if spec is None or spec.loader is None:
        raise InputError(f"{file} cannot be read as Python")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        made: Plant = getattr(module, function)()
    except (MissingExtra, InputError):
        raise
    except AttributeError:
        raise InputError(f"{file} has no function {function}: it must return a plant") from None
    except Exception as error:
        raise InputError(f"{name} failed ({type(error).__name__}: {error}): it must return a plant") from None
    if not (hasattr(made, "start") and hasattr(made, "step")):
        raise InputError(f"{name} returned {type(made).__name__}: a plant with start and step was expected")
    return made
