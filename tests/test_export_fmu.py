"""FMUs as others see them: FMPy validates, simulates and rebuilds them, and keeps their state."""

import os
import shutil
import sys
from pathlib import Path

import model_zoo
import numpy as np
import pytest

from echobound.export import export_model

fmpy = pytest.importorskip("fmpy")
if not shutil.which("cc") and not os.environ.get("CI"):
    pytest.skip("there is no C compiler", allow_module_level=True)

ZOO = model_zoo.zoo()
NAMES = ("plain", "all features", "even committee")


@pytest.fixture(params=[2, 3], ids=["FMI 2.0", "FMI 3.0"])
def fmi(request):
    return request.param


@pytest.mark.parametrize("name", NAMES)
def test_fmpy_finds_no_problem(name, fmi, tmp_path):
    from fmpy.validation import validate_fmu

    certificate = {"digest": "c" * 64, "statement": 'a < "b" & c', "digests": {"model": ZOO[name].digest}}
    export_model(ZOO[name], tmp_path / "plant.fmu", "fmu", fmi=fmi, certificate=certificate)
    assert list(validate_fmu(str(tmp_path / "plant.fmu"))) == []
    description = fmpy.read_model_description(str(tmp_path / "plant.fmu"))
    assert description.fmiVersion == f"{fmi}.0"
    assert 'About this model: a < "b" & c' in description.description
    assert description.defaultExperiment.stepSize == "0.5"
    units = {variable.name: variable.unit for variable in description.modelVariables}
    assert (units["u 1"], units["y_1"], units["y_1_measured"]) == ("l/min", "°C", "°C")


def simulated(path, model, u, measured=None):
    """Inputs held from one sample to the next, by FMPy's own simulation."""
    times = 0.5 * np.arange(len(u))
    columns = [("time", times), *((name, u[:, i]) for i, name in enumerate(model.input_names))]
    signals = np.array(
        list(zip(*(column for _, column in columns), strict=True)), dtype=[(n, float) for n, _ in columns]
    )
    result = fmpy.simulate_fmu(
        str(path),
        start_time=0.0,
        stop_time=times[-1],
        output_interval=0.5,
        step_size=0.5,
        input=signals,
        output=list(model.output_names),
    )
    return np.stack([result[name] for name in model.output_names], axis=1)


def test_fmpy_simulates_it(fmi, tmp_path):
    model = ZOO["delays"]  # its output does not depend on the present input, which FMPy sets after it has looked
    u = model_zoo.excitation(model, 60)
    export_model(model, tmp_path / "plant.fmu", "fmu", fmi=fmi)
    np.testing.assert_allclose(simulated(tmp_path / "plant.fmu", model, u), model.simulate(u).y, rtol=1e-12)


def test_fmpy_rebuilds_it_from_its_source(fmi, tmp_path, monkeypatch):
    from fmpy.build import build_platform_binary

    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")  # FMPy brings cmake
    model = ZOO["even committee"]
    exported = export_model(model, tmp_path / "plant.fmu", "fmu", fmi=fmi)
    folder = Path(fmpy.extract(str(tmp_path / "plant.fmu"), unzipdir=str(tmp_path / "unpacked")))
    [old] = (folder / "binaries").rglob("plant.so")
    old.unlink()
    build_platform_binary(folder)
    shutil.make_archive(str(tmp_path / "again"), "zip", folder)
    u = model_zoo.excitation(model, 40)
    got = exported.target.run(exported.job, tmp_path / "again.zip", u, None)
    np.testing.assert_allclose(got, model.simulate(u).y, rtol=1e-12)


def test_its_state_is_kept_and_brought_back(fmi, tmp_path):
    model = ZOO["plain"]
    export_model(model, tmp_path / "plant.fmu", "fmu", fmi=fmi)
    description = fmpy.read_model_description(str(tmp_path / "plant.fmu"))
    folder = fmpy.extract(str(tmp_path / "plant.fmu"), unzipdir=str(tmp_path / "unpacked"))
    unit = fmpy.instantiate_fmu(folder, description, "CoSimulation")
    if fmi == 2:
        unit.setupExperiment(startTime=0.0)
    unit.enterInitializationMode()
    unit.exitInitializationMode()
    put, get = (unit.setReal, unit.getReal) if fmi == 2 else (unit.setFloat64, unit.getFloat64)
    kept = (unit.getFMUstate, unit.setFMUstate) if fmi == 2 else (unit.getFMUState, unit.setFMUState)
    store = (
        (unit.serializeFMUstate, unit.deSerializeFMUstate)
        if fmi == 2
        else (unit.serializeFMUState, unit.deserializeFMUState)
    )

    def run(first):
        seen = []
        for k in range(first, first + 10):
            put([1], [3.0 + 0.3 * np.sin(k)])
            seen += get([2])
            unit.doStep(currentCommunicationPoint=0.5 * k, communicationStepSize=0.5)
        return seen

    run(0)
    state = kept[0]()
    once = run(10)
    kept[1](state)
    assert run(10) == once
    kept[1](store[1](store[0](state)))
    assert run(10) == once
    with pytest.raises(Exception, match=r"(?i)dostep|error"):
        unit.doStep(currentCommunicationPoint=0.0, communicationStepSize=0.3)
    unit.terminate()
    unit.freeInstance()
