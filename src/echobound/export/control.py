"""python-control: a model as a discrete-time system, linear ones near an operating point, and a script of its own."""

from __future__ import annotations

import io
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np

from echobound.arrays import Signal
from echobound.errors import InputError, MissingExtra
from echobound.export.arrays import MATRICES, member_arrays
from echobound.export.base import Job, Target
from echobound.export.templates import fill
from echobound.network import LinearModel, Stepper


class ControlTarget(Target):
    """A script with its numbers beside it: NumPy and SciPy run it, python-control makes a system of it."""

    name = "control"
    title = "a script for python-control, without echobound"
    suffix = ".py"

    def make(self, job: Job, path: Path) -> dict[Path, bytes]:
        """``NAME.py`` and its numbers, ``NAME_numbers.npz``."""
        arrays: dict[str, Any] = {}
        for number, member in enumerate(member_arrays(job.stepper)):
            for name, value in member.items():
                if name in MATRICES:
                    arrays |= {
                        f"{number}.{name}.{part}": getattr(value, part) for part in ("data", "indices", "indptr")
                    }
                    arrays[f"{number}.{name}.shape"] = np.array(value.shape)
                else:
                    arrays[f"{number}.{name}"] = np.asarray(value)
        numbers = path.with_name(f"{path.stem}_numbers.npz")  # NAME.npz may be the model itself
        packed = io.BytesIO()
        np.savez(packed, **arrays)
        text = fill("control.py", job, members=len(job.stepper.equations), numbers=numbers.name, lines=job.card.lines)
        return {path: text.encode(), numbers: packed.getvalue()}

    def require_runner(self) -> None:
        """python-control."""
        _control()

    def run(self, job: Job, path: Path, u: Signal, initial: Signal | None) -> Signal:
        """Load the script, and run the system that it makes."""
        _control()
        spec = spec_from_file_location("exported_model", path)
        if spec is None or spec.loader is None:
            raise InputError(f"{path} cannot be loaded as a Python script: give it a name that ends in .py")
        script = module_from_spec(spec)
        spec.loader.exec_module(script)
        system, warm = script.system(), 0 if initial is None else len(initial)
        state = script.start(u[0], None if initial is None else initial[0])
        for k in range(warm):
            state, _ = script.step(state, u[k], np.asarray(initial)[k])
        rows = []
        for k, now in enumerate(u[warm:], warm):
            rows.append(system.output(k * job.card.sampling_time, state, now))
            state = system.dynamics(k * job.card.sampling_time, state, now)
        return np.array(rows)


def _control() -> Any:
    try:
        import control
    except ImportError:
        raise MissingExtra("python-control", extra="export") from None
    return control


def control_system(model: Any) -> Any:
    """A model in free run as a discrete-time ``control.NonlinearIOSystem``, in the data's units.

    Its state is that of `Stepper`: start a simulation from ``Stepper(model).start(u, y)``, or from the state of an
    `operating_point`.

    Examples
    --------
    >>> import control
    >>> from echobound import identify, ph_experiment
    >>> training, validation = ph_experiment(samples=(400, 300))
    >>> model = identify(training, validation, law="paper", order=10, networks=20).model
    >>> system, first = control_system(model), Stepper(model).start(validation.u[0])
    >>> times = model.sampling_time * np.arange(50)
    >>> response = control.input_output_response(system, times, validation.u[:50].T, first)
    >>> bool(abs(response.outputs - model.simulate(validation.u[:50]).y.T).max() < 1e-10)
    True
    """
    control, stepper = _control(), Stepper(model)
    return control.NonlinearIOSystem(
        lambda t, x, u, params: stepper.advance(x, np.atleast_1d(u)),
        lambda t, x, u, params: stepper.output(x, np.atleast_1d(u)),
        inputs=_labels(model.input_names),
        outputs=_labels(model.output_names),
        states=stepper.states,
        dt=model.sampling_time,
        name="model",
    )


def control_linear(linear: LinearModel) -> Any:
    """A linear model as a discrete-time ``control.StateSpace``: deviations from its operating point.

    Examples
    --------
    >>> from echobound import identify, ph_experiment
    >>> from echobound.network import linearise, operating_point
    >>> model = identify(*ph_experiment(samples=(800, 500)), law="paper", order=10, networks=20, committee=0).model
    >>> linear = linearise(model, operating_point(model, u=[16.0]))
    >>> bool(abs(control_linear(linear).dcgain() - linear.gain[0, 0]) < 1e-8)
    True
    """
    control = _control()
    names = {"inputs": _labels(linear.input_names), "outputs": _labels(linear.output_names)}
    return control.ss(linear.A, linear.B, linear.C, linear.D, linear.sampling_time, **names)


def _labels(names: tuple[str, ...]) -> list[str]:
    """Names of signals: python-control keeps dots for subsystems."""
    return [name.replace(".", "_") for name in names]
