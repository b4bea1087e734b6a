"""The protocols of benchmarks/accuracy.py: which rows are trained on, which are tested, and what is reported."""

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
DATA = ROOT.parent / "shared" / "data"
sys.path.insert(0, str(ROOT / "benchmarks"))
accuracy = pytest.importorskip("accuracy")

ROWS = {  # training records, test records
    "tanks": ([1024], [1024]),
    "exchanger": ([3000], [1000]),
    "cstr": ([5625], [1875]),
    "steamgen": ([5760], [3840]),
    "ph": ([700, 600], [400, 301]),
    "dryer": ([600], [400]),
    "robot_arm": ([614], [410]),
    "silverbox": ([65062], [21688, 40475]),
}


@pytest.mark.skipif(not DATA.exists(), reason="the data are not part of the package")
@pytest.mark.parametrize("name", ROWS)
def test_rows_and_perfect_outputs(name):
    one = accuracy.SETS[name]
    training, tests, errors = one.load(DATA)
    assert ([len(r) for r in training], [len(r) for r in tests]) == ROWS[name]
    perfect = errors([record.y[one.initial :] for record in tests])
    assert set(perfect.values()) == ({100.0} if one.larger_is_better else {0.0})


@pytest.mark.skipif(not DATA.exists(), reason="the data are not part of the package")
def test_emps_is_scored_on_the_fine_grid():
    one = accuracy.SETS["emps"]
    [training], [test], errors = one.load(DATA)
    assert len(training) == len(test) == -(-24841 // accuracy.DECIMATION)
    assert one.initial * accuracy.DECIMATION == 20
    assert errors([test.y[one.initial :]])["test"] < 0.2, "mm: decimating and interpolating costs next to nothing"
    assert errors([test.y[one.initial :] + 0.01])["test"] == pytest.approx(10.0, rel=0.01), "1 cm is 10 mm"


def test_the_table_is_written_from_what_is_finished(tmp_path):
    run = {
        **{w: {"test": v} for w, v in (("delivered", 0.32), ("network", None), ("committee", 0.32))},
        "beyond": {"0": 0, "1000": 2}, "seconds": 3.0, "workers": 2, "networks": 315,
    }  # fmt: skip
    dryer = run | {w: {"test": 84.0} for w in accuracy.MODELS}
    worse = run | {w: {"test": 82.0} for w in accuracy.MODELS}
    results = {"tanks": {"0": run, "1": run}, "dryer": {"0": dryer, "1": worse}}
    accuracy.write_table(results, tmp_path / "ACCURACY.md")
    text = (tmp_path / "ACCURACY.md").read_text()
    assert "In 4 runs" in text
    assert "8 output samples lay beyond" in text
    [tanks] = [line for line in text.splitlines() if line.startswith("| Cascaded Tanks")]
    assert "(2 of 5 seeds)" in tanks
    assert "| <= 0.33 | 0.3 | yes |" in tanks
    assert "| inf [inf, inf] |" in tanks, "a network that diverged is the worst"
    [dryer] = [line for line in text.splitlines() if line.startswith("| dryer")]
    assert "| **no**: figure, ARX in every seed |  |" in dryer
    assert np.isfinite(float(dryer.split("|")[3].split()[0]))


def test_a_seed_that_is_worse_than_allowed_misses_the_figure():
    one = accuracy.SETS["tanks"]
    assert accuracy.reached("tanks", one, [0.30, 0.34], 0.33, "") == "yes"
    assert accuracy.reached("tanks", one, [0.20, 0.41], 0.33, "") == "**no**: worst seed (0.4)"
