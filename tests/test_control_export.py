"""The controller in C: what it decides against the same in Python, at every sample; what it refuses."""

import re
import shutil
import subprocess

import numpy as np
import pytest

pytest.importorskip("daqp")

from controlled import mimo_network, mixed_members, ph_network, ph_run, two_by_two
from test_export_c import ADVISORY

from echobound.control import MPC, Effort, Faults, FunctionPlant, PHProcess, export_controller, simulate_closed_loop
from echobound.errors import InputError

COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wsign-conversion", "-Wshadow", "-Werror"]
needs_compiler = pytest.mark.skipif(not COMPILERS, reason="there is no C compiler")
PLAIN = Effort(newton=False)

KINDS = {
    "rate": lambda: MPC(ph_network(), horizon=12, rate=0.5),
    "blocks": lambda: MPC(ph_network(), horizon=15, control_horizon=6, starts=1),
    "bounds": lambda: MPC(ph_network(), horizon=12, output_low=6.9, output_high=7.1, rate=0.5),
    "several": lambda: MPC(
        mimo_network(), horizon=8, manipulated=["b", "a"], rate=[0.3, np.inf], output_high=[0.1, np.inf]
    ),
    "prices": lambda: MPC(mimo_network(), horizon=6, manipulated=["a"], input_price=0.2, output_price=[0.3, -0.1]),
    "no_gate": lambda: MPC(ph_network(), horizon=6, gate=np.inf, gain=0.3, slack_weight=(0.0, 10.0), output_high=7.1),
    "clips": lambda: MPC(mixed_members()[0], horizon=8, input_low=12.7, input_high=16.7),
    "cascade": lambda: MPC(mixed_members()[1], horizon=8, input_low=12.7, input_high=16.7, output_high=7.2),
}


@needs_compiler
@pytest.mark.parametrize("kind", KINDS)
def test_it_decides_as_the_same_in_python(kind, tmp_path):
    exported = export_controller(KINDS[kind](), tmp_path, name=kind)
    assert exported.check() < 1e-9
    for compiler in COMPILERS:
        command = [compiler, "-std=c99", "-O2", *WARNINGS, f"{kind}.c", f"{kind}_test.c", "-lm", "-o", compiler]
        built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert built.returncode == 0, built.stderr
        ran = subprocess.run([tmp_path / compiler], capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout


@pytest.mark.parametrize("kind", ["bounds", "several", "cascade"])
def test_no_required_rule_of_misra_is_broken(kind, tmp_path):
    if not shutil.which("cppcheck"):
        pytest.skip("cppcheck is not installed")
    export_controller(KINDS[kind](), tmp_path, name="ph")
    command = ["cppcheck", "--std=c99", "--addon=misra", "--enable=style", "--quiet", tmp_path / "ph.c"]
    found = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    rules = set(re.findall(r"misra-c2012-([\d.]+)", found))
    assert rules
    assert rules <= ADVISORY, found


@needs_compiler
@pytest.mark.parametrize("kind", ["bounds", "several", "no_gate"])
def test_the_header_says_how_much_memory_it_takes(kind, tmp_path):
    exported = export_controller(KINDS[kind](), tmp_path, name="ph")
    text = (tmp_path / "ph.h").read_text()
    said = re.search(
        r"Memory: (\d+) bytes a controller.*, (\d+) bytes of constant tables,\n \* about (\d+) bytes", text
    )
    assert int(said.group(1)) == exported.compiled().bytes
    if "gcc" in COMPILERS:
        command = ["gcc", "-std=c99", "-O2", "-fstack-usage", "-c", "ph.c"]
        subprocess.run(command, cwd=tmp_path, check=True)
        frames = [int(line.split("\t")[1]) for line in (tmp_path / "ph.su").read_text().splitlines()]
        assert max(frames) <= int(said.group(3)) <= 4 * max(frames)
        sizes = subprocess.run(["size", "-A", "ph.o"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        constants = sum(int(size) for size in re.findall(r"^\.rodata\S*\s+(\d+)", sizes, flags=re.MULTILINE))
        assert 0.8 * int(said.group(2)) <= constants <= 1.2 * int(said.group(2)) + 200  # padding; what is folded away


@needs_compiler
def test_a_start_without_numbers_and_a_step_without_rows_are_survived(tmp_path):
    """In C, where nothing is checked before: the stated values stand in, and the loop recovers."""
    controller = MPC(mimo_network(), horizon=6, manipulated=["a"], output_high=2.0, effort=PLAIN)
    export_controller(controller, tmp_path, name="ph")
    (tmp_path / "main.c").write_text("""
#include "ph.h"
#include <math.h>
#include <stdio.h>
int main(void)
{
    static ph_controller c;
    ph_result r;
    const double none[2] = { NAN, NAN };
    const double broken[2] = { NAN, 1e300 };
    const double good[2] = { 0.0, 0.0 };
    ph_start(&c, none, none, broken);
    for (int k = 0; k < 90; k++) {
        ph_step(&c, good, (k % 3) ? 1U : 0U, good, (k % 2) ? 1U : 0U, (k < 40) ? broken : good, &r);
        printf("%.17g %d %d %d %d\\n", r.u[0], isfinite(r.cost) != 0, r.reference_held, r.disturbance_held, r.lost[1]);
    }
    return 0;
}
""")
    command = [COMPILERS[0], "-std=c99", "main.c", "ph.c", "-lm", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    told = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout
    u, finite, reference, known, lost = np.array([line.split() for line in told.splitlines()], dtype=float).T
    assert (u >= controller.bounds.low[0]).all()
    assert (u <= controller.bounds.high[0]).all()
    assert finite.all()
    k = np.arange(90)
    np.testing.assert_array_equal(reference, k % 3 == 0)
    np.testing.assert_array_equal(known, k % 2 == 0)
    np.testing.assert_array_equal(lost, k < 40)  # 1e300 is no measurement


@needs_compiler
def test_the_self_test_can_fail(tmp_path):
    export_controller(KINDS["rate"](), tmp_path, name="ph")
    source = (tmp_path / "ph.c").read_text()
    (tmp_path / "ph.c").write_text(source.replace("ph_move_weight[1] = {\n    0.1", "ph_move_weight[1] = {\n    0.2"))
    command = [COMPILERS[0], "-std=c99", "ph.c", "ph_test.c", "-lm", "-o", "test"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "test"], capture_output=True, check=False).returncode == 1


@needs_compiler
@pytest.mark.parametrize("preview", [True, False])
def test_a_loop_with_faults_is_the_same_in_both(preview, tmp_path):
    controller = MPC(ph_network(), horizon=12, rate=0.4, output_high=7.25, effort=PLAIN)
    wanted = np.repeat([7.2, 6.9, np.nan, 9.0], 30)
    settings = {"noise": 0.03, "faults": Faults(lost=0.1, outliers=0.1), "preview": preview}
    loops = [
        simulate_closed_loop(PHProcess(), one, wanted, **settings)
        for one in (controller, export_controller(controller, tmp_path).compiled())
    ]
    np.testing.assert_allclose(loops[1].u, loops[0].u, atol=1e-8)
    assert (loops[1].lost, loops[1].outlying, loops[1].notes) == (loops[0].lost, loops[0].outlying, loops[0].notes)
    assert loops[1].lost > 3
    assert loops[1].scores["input_violations"] == loops[1].scores["rate_violations"] == 0


@needs_compiler
def test_several_inputs_and_a_disturbance_known_ahead(tmp_path):
    controller = MPC(mimo_network(), horizon=10, manipulated=["a", "b"], gain=0.3, effort=PLAIN)
    wanted = np.repeat([[0.4, 0.1], [0.0, -0.2]], 20, axis=0)
    known = np.where(np.arange(40) < 30, 0.0, 0.5)
    loops = []
    for one in (controller, export_controller(controller, tmp_path).compiled()):
        plant = FunctionPlant(two_by_two, state=np.zeros(2), u=[0.0, 0.0, 0.0], y=[0.0, 0.0])
        loops.append(simulate_closed_loop(plant, one, wanted, known=known))
    np.testing.assert_allclose(loops[1].u, loops[0].u, atol=1e-8)


@needs_compiler
def test_bounds_hold_whatever_comes(tmp_path):
    from dataclasses import replace

    wild = replace(ph_network(), readout=np.full(ph_network().readout.shape, np.inf))
    tame = MPC(ph_network(), horizon=6, rate=0.3, output_low=6.5, output_high=7.5)
    compiled = export_controller(tame, tmp_path / "tame").compiled()
    generator = np.random.default_rng(0)
    compiled.start(15.0, 7.0)
    before = 15.0
    for _ in range(300):
        far = 10.0 ** generator.uniform(-3, 300) * generator.choice([-1, 1])
        reference, y = generator.choice([7.0, np.nan, np.inf, far, 9.0], 2)
        step = compiled.step(reference, y)
        assert tame.bounds.low[0] <= step.u[0] <= tame.bounds.high[0]
        assert abs(step.u[0] - before) <= 0.3
        before = step.u[0]
    with pytest.raises(InputError, match="diverges when its input is held"):
        export_controller(MPC(wild, horizon=6), tmp_path / "wild")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MPC(ph_run().committee, horizon=5), "has one model, and this one follows 5"),
        (lambda: MPC(ph_network(), horizon=5, scenarios=ph_run().committee), "no scenarios"),
        (lambda: MPC(ph_network(), horizon=121), r"120 variables, and this one has 121 \(121 planned inputs\)"),
        (lambda: MPC(ph_network(), horizon=70, output_high=7.5), "70 planned inputs and 70 bounded outputs"),
        (lambda: MPC(ph_network(), horizon=5, effort=Effort(seconds=0.01)), "no clock"),
    ],
)
def test_what_it_cannot_do_is_refused_in_one_sentence(make, message, tmp_path):
    with pytest.raises(InputError, match=message):
        export_controller(make(), tmp_path / "none")
    assert not (tmp_path / "none").exists()


@needs_compiler
def test_misuse_from_python(tmp_path):
    compiled = export_controller(KINDS["several"](), tmp_path).compiled()
    with pytest.raises(InputError, match="has not been started"):
        compiled.step([0.0, 0.0], [0.0, 0.0], disturbance=0.0)
    with pytest.raises(InputError, match=r"does not move \(w\): give their values"):
        compiled.start([0.0, 0.0], [0.0, 0.0])
    with pytest.raises(InputError, match="must be a number, got 0, nan"):
        compiled.start([0.0, np.nan], [0.0, 0.0], disturbance=0.0)
    with pytest.raises(InputError, match="2 outputs was expected"):
        compiled.start([0.0, 0.0], 0.0, disturbance=0.0)
    compiled.start([0.0, 0.0], [0.0, 0.0], disturbance=0.0)
    with pytest.raises(InputError, match="2 outputs was expected"):
        compiled.step([0.0, 0.0], 0.0, disturbance=0.0)
    with pytest.raises(InputError, match=r"reference must be \(step, 2\)"):
        compiled.step([], [0.0, 0.0], disturbance=0.0)
    with pytest.raises(InputError, match=r"known disturbance must be \(step, 1\)"):
        compiled.step([0.0, 0.0], [0.0, 0.0], disturbance=[])
    with pytest.raises(InputError, match="needs values of w"):
        compiled.step([0.0, 0.0], [0.0, 0.0])
    with pytest.raises(InputError, match="give no age"):
        compiled.step([0.0, 0.0], [0.0, 0.0], disturbance=0.0, age=1)


def test_without_a_compiler_one_sentence_says_so(tmp_path, monkeypatch):
    exported = export_controller(KINDS["rate"](), tmp_path)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InputError, match="no C compiler was found"):
        exported.check()
