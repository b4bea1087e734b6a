"""Imports go one way: a module sees only what stands to its left, and heavy packages stay in their room."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src" / "echobound"

# From left to right; rooms of one group do not see each other.
ORDER = [
    {"errors"},
    {"arrays", "displays", "onward"},
    {"typed"},
    {"files", "draws", "scores", "scenario"},
    {"data"},
    {"plants", "network"},
    {"kernels"},
    {"candidates", "diagnostics"},
    {"plan"},
    {"runs"},
    {"campaign"},
    {"report"},
    {"export"},
    {"identification"},
    {"identify", "verify", "outer", "generalise", "audit"},
    {"compare", "renew", "estimators", "control"},
    {"reproduce"},
    {"studio"},
    {"cli"},
]
EXCEPTIONS = {
    ("scenario", "files"),
    ("scenario", "draws"),
    ("scenario", "scores"),
}  # scenario/ sees errors, arrays and typed alone
HOMES = {
    "numba": "kernels/cpu",
    "llvmlite": "kernels/cpu",
    "cupy": "kernels/gpu",
    "threadpoolctl": "kernels/blas.py",
    "distributed": "campaign",
    "dask": "campaign",
    "sqlite3": "runs",
    "pandas": "data",
    "polars": "data",
    "pyarrow": "data",
    "h5py": "data",
    "openpyxl": "data",
    "reservoirpy": "network/foreign.py",
    "sklearn": "estimators",
    "daqp": "control/quadratic.py",
    "fmpy": "control/plants.py",
    "matplotlib": "report",
    "bokeh": "report",
    "jinja2": ("report", "export", "studio"),
    "onnx": "export",
    "onnxruntime": "export",
    "control": "export",
    "do_mpc": "export",
    "tornado": "studio",
    "typer": "cli",
    "rich": "cli",
}
FIRST_USE = {
    "scipy",
    "numba",
    "matplotlib",
    "bokeh",
    "jinja2",
    "pandas",
    "polars",
    "pyarrow",
    "h5py",
    "openpyxl",
    "reservoirpy",
    "daqp",
    "fmpy",
    "rich",
    "dask",
    "distributed",
    "onnx",
    "onnxruntime",
    "casadi",
    "control",
    "do_mpc",
}
MODULES = sorted(SRC.rglob("*.py"))


def room(path):
    first = path.relative_to(SRC).parts[0]
    return first.removesuffix(".py")


def imported(path):
    """(module, at the top of the file) for each import."""
    tree = ast.parse(path.read_text())
    inner = {
        node
        for f in ast.walk(tree)
        if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef) or _type_checking(f)
        for node in ast.walk(f)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node not in inner) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module, node not in inner


def _type_checking(node):
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def rank(name):
    for position, group in enumerate(ORDER):
        if name in group:
            return position
    raise AssertionError(f"{name} has no place in the order of rooms")


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SRC)))
def test_direction(path):
    here = room(path)
    if here in ("__init__", "__main__"):
        return
    for module, _ in imported(path):
        parts = module.split(".")
        if parts[0] != "echobound" or len(parts) == 1:
            continue
        there = parts[1]
        assert there == here or rank(there) < rank(here), f"{here} must not import {module}"
        assert (here, there) not in EXCEPTIONS, f"{here} must not import {module}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SRC)))
def test_heavy_packages_stay_at_home(path):
    where = str(path.relative_to(SRC))
    for module, _ in imported(path):
        home = HOMES.get(module.split(".")[0])
        assert home is None or where.startswith(home), f"{where} must not import {module}: it belongs to {home}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SRC)))
def test_heavy_packages_are_imported_on_first_use(path):
    if path.is_relative_to(SRC / "kernels" / "cpu"):
        return  # itself imported on first use
    top = {module.split(".")[0] for module, outside in imported(path) if outside}
    assert not top & FIRST_USE


def test_the_order_covers_all_rooms():
    rooms = {room(path) for path in MODULES} - {"__init__", "__main__"}
    assert rooms <= set().union(*ORDER)


def test_import_is_light():
    code = (
        "import sys, echobound; from echobound.cli.main import app; "
        "print(*sorted({m.split('.')[0] for m in sys.modules}))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not set(loaded) & (FIRST_USE - {"rich"})
    assert not {"sklearn", "tornado"} & set(loaded)


def test_exported_names_are_documented():
    import echobound

    assert sorted(echobound.__all__) == sorted(set(echobound.__all__))
    for name in echobound.__all__:
        assert (getattr(echobound, name).__doc__ or "").strip(), name
    assert callable(echobound.identify)
    assert callable(echobound.verify)


def test_public_names_are_found_on_first_use_and_win_over_modules_of_their_name():
    code = (
        "import sys, echobound; assert 'numpy' not in sys.modules;"
        "import echobound.compare, echobound.identify, echobound.audit.findings;"
        "assert all(callable(getattr(echobound, name)) for name in ('compare', 'identify', 'audit', 'verify'));"
        "assert echobound.audit.__module__.startswith('echobound.audit');"
        "assert echobound.plan.__name__ == 'echobound.plan'; assert set(echobound.__all__) <= set(dir(echobound));"
        "print(hasattr(echobound, 'nothing'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_the_lists_of_public_names_are_one():
    import echobound

    tree = ast.parse((SRC / "__init__.py").read_text())
    [block] = [node for node in tree.body if _type_checking(node)]
    checked = {alias.name: node.module for node in block.body for alias in node.names}
    assert checked == {name: f"echobound.{room}" for name, room in echobound._HOMES.items()}
    assert sorted(checked) == sorted(echobound.__all__)
