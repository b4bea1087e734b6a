"""The examples: scripts run; notebooks are what their scripts give, and run in a fresh kernel."""

import json
import os
import runpy
import subprocess
import sys

import pytest
from docs_blocks import ROOT, this_tree

EXAMPLES = ROOT / "examples"
MAKER = runpy.run_path(str(EXAMPLES / "make_notebooks.py"))
SCRIPTS = MAKER["SCRIPTS"]


def test_there_are_examples_and_the_page_lists_them_all():
    page = (ROOT / "docs" / "examples.md").read_text()
    assert len(SCRIPTS) >= 4
    assert all(f"`{script.name}`" in page for script in SCRIPTS)
    assert {path.stem for path in EXAMPLES.glob("*.ipynb")} == {script.stem for script in SCRIPTS}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_notebook_is_what_its_script_gives(script):
    text = script.with_suffix(".ipynb").read_text(encoding="utf-8")
    assert text == MAKER["notebook"](script.read_text(encoding="utf-8")), "run python examples/make_notebooks.py"
    code = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    assert len(code) > 1
    assert all(line in script.read_text() for cell in code for line in cell["source"])


def test_text_and_code_become_cells():
    made = json.loads(
        MAKER["notebook"]("# %% [markdown]\n# # Title\n#\n# words\n\n# %%\nx = 1\n\n\n# %%\nprint(x)  # y\n")
    )
    assert [cell["cell_type"] for cell in made["cells"]] == ["markdown", "code", "code"]
    assert ["".join(cell["source"]) for cell in made["cells"]] == ["# Title\n\nwords", "x = 1", "print(x)  # y"]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_script_runs(script, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, **this_tree(), "MPLBACKEND": "agg"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout.strip()
    assert not list(tmp_path.iterdir()), "an example leaves nothing behind"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_notebook_runs_from_a_clean_kernel(script, tmp_path, monkeypatch):
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("PYTHONPATH", this_tree()["PYTHONPATH"])
    content = nbformat.read(script.with_suffix(".ipynb"), as_version=4)
    nbformat.validate(content)
    nbclient.NotebookClient(content, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    said = [output for cell in content.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any(output.output_type == "stream" and output.name == "stdout" for output in said)
