"""C: clean under strict warnings and MISRA's required rules, several instances, and a self-test that can fail."""

import os
import re
import shutil
import subprocess

import model_zoo
import numpy as np
import pytest

from echobound.errors import InputError
from echobound.export import export_model
from echobound.export.c import compiled

STRICT = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
MODELS = {
    "network": model_zoo.network(order=12, leak=0.5, output_delays=1),
    "mixed": model_zoo.zoo()["even committee"],
    "scattered": model_zoo.network(pattern="random", order=15),
}
# Rules of MISRA C:2012 that are advisory, of those that the addon knows.
ADVISORY = {"2.3", "2.4", "2.5", "2.7", "5.9", "8.7", "8.9", "8.13", "12.1", "12.3", "15.4", "15.5", "18.4", "19.2"}


def tool(name):
    if not shutil.which(name) and not os.environ.get("CI"):
        pytest.skip(f"{name} is not installed")
    return name


def run(*command, **options):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **options)


@pytest.mark.parametrize("precision", ["double", "float"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("name", MODELS)
def test_no_warning_and_the_self_test_passes(name, compiler, precision, tmp_path):
    tool(compiler)
    export_model(MODELS[name], tmp_path, "c", name="plant", precision=precision)
    sources = tmp_path / "plant.c", tmp_path / "plant_test.c"
    built = run(compiler, *STRICT, *sources, "-lm", "-o", tmp_path / "test")
    assert built.returncode == 0, built.stderr
    tested = run(tmp_path / "test")
    assert tested.returncode == 0, tested.stdout
    assert "passed" in tested.stdout


def test_the_commands_in_the_header_build_the_self_test(tmp_path):
    tool("cc")
    export_model(MODELS["mixed"], tmp_path, "c", name="plant")
    commands = re.findall(r"cc -std=c99 .*", (tmp_path / "plant.h").read_text())
    assert ["-march=native" in command for command in commands] == [False, True]
    for command in commands:
        done = run("sh", "-c", command, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "passed" in done.stdout


@pytest.mark.parametrize(("precision", "accuracy"), [("double", 5e-16), ("float", 3e-7)])
def test_our_tanh_is_that_of_the_library(precision, accuracy, tmp_path):
    import ctypes

    tool("cc")
    export_model(MODELS["network"], tmp_path, "c", name="plant", precision=precision)
    real, kind = (ctypes.c_double, np.float64) if precision == "double" else (ctypes.c_float, np.float32)
    calls = "void tanhs(const plant_real x[], plant_real y[])"
    calls += "{ for (int i = 0; i < 30001; i++) y[i] = plant_tanh(x[i]); }"
    (tmp_path / "all.c").write_text(f'#include "plant.c"\n{calls}\n')
    far = float(re.search(r"\|x\| <= (\d+)", (tmp_path / "plant.c").read_text()).group(1))
    x = np.concatenate([np.linspace(-far, far, 10001), np.linspace(-1, 1, 10001), np.geomspace(1e-30, 1, 9999)])
    x, y = x.astype(kind), np.empty(len(x), dtype=kind)
    with compiled([tmp_path / "all.c"], ("-O3",)) as library:
        library.tanhs(*(array.ctypes.data_as(ctypes.POINTER(real)) for array in (x, y)))
    want = np.tanh(x.astype(np.float64))
    assert (np.abs(y - want) <= accuracy * np.abs(want)).all()


@pytest.mark.parametrize("precision", ["double", "float"])
def test_activations_that_are_far_out_are_one(precision, tmp_path):
    tool("cc")
    model = MODELS["scattered"]
    exported = export_model(model, tmp_path, "c", name="plant", precision=precision)
    u = model_zoo.excitation(model, 80)
    for factor in (1e1, 1e2, 1e3, 1e4, 1e6, 1e12, 1e30):
        u[30:34] *= -factor
        assert exported.check(u).largest_difference < (1e-12 if precision == "double" else 1e-3)
        u[30:34] /= -factor


def test_the_self_test_fails_if_a_number_is_changed(tmp_path):
    tool("gcc")
    export_model(MODELS["network"], tmp_path, "c", name="plant")
    source = tmp_path / "plant.c"
    text = source.read_text()
    bias = re.search(r"plant_m0_readout_0_0\[\d+\] = \{\s+(-?[\d.e-]+),", text)
    source.write_text(text[: bias.start(1)] + "0.777" + text[bias.end(1) :])
    run("gcc", "-std=c99", source, tmp_path / "plant_test.c", "-lm", "-o", tmp_path / "test")
    done = run(tmp_path / "test")
    assert done.returncode == 1
    assert "FAILED" in done.stdout


def test_a_model_that_runs_off_is_exported_with_the_values_before_that(tmp_path):
    tool("cc")
    model = model_zoo.network(output_delays=1, seed=2)
    model.readout[:] = 20.0
    exported = export_model(model, tmp_path, "c", name="plant")
    assert "nan" not in (tmp_path / "plant_test.c").read_text()
    assert "inf" not in (tmp_path / "plant_test.c").read_text()
    assert not np.isfinite(model.simulate(model_zoo.excitation(model, 500)).y).all()
    assert exported.check(model_zoo.excitation(model, 60)).largest_difference < 1e-9
    model.readout[:] = 1e308
    with pytest.raises(InputError, match="infinite from its first samples on"):
        export_model(model, tmp_path, "c", name="plant")


@pytest.mark.parametrize("name", MODELS)
def test_no_required_rule_of_misra_is_broken(name, tmp_path):
    tool("cppcheck")
    export_model(MODELS[name], tmp_path, "c", name="plant")
    found = run("cppcheck", "--std=c99", "--addon=misra", "--enable=style", "--quiet", tmp_path / "plant.c").stderr
    rules = set(re.findall(r"misra-c2012-([\d.]+)", found))
    assert rules  # the addon has run: the tables are at file scope, which rule 8.9 advises against
    assert rules <= ADVISORY, found


def test_instances_do_not_disturb_each_other(tmp_path):
    import ctypes

    tool("cc")
    export_model(MODELS["mixed"], tmp_path, "c", name="plant")
    real = ctypes.c_double
    with compiled([tmp_path / "plant.c"]) as library:

        def trajectory(*starts):
            models = [(real * 200)() for _ in starts]
            for model, u in zip(models, starts, strict=True):
                library.plant_reset(model, (real * 1)(u))
            outputs, y = [], (real * 1)()
            for _ in range(20):
                for model, u in zip(models, starts, strict=True):
                    library.plant_step(model, (real * 1)(u + 1.0), y)
                    outputs.append(y[0])
            return np.array(outputs).reshape(20, len(starts))

        together = trajectory(2.5, 5.0)
        np.testing.assert_array_equal(together, np.hstack([trajectory(2.5), trajectory(5.0)]))


def test_the_source_neither_allocates_nor_keeps_anything(tmp_path):
    export_model(MODELS["mixed"], tmp_path, "c", name="plant")
    text = (tmp_path / "plant.c").read_text()
    assert "alloc" not in text
    kept = [
        line for line in text.splitlines() if re.match(r"\s*static (?!const|inline|void|plant_real plant_median)", line)
    ]
    assert kept == []
