"""Write the notebooks from the scripts: `# %%` starts a code cell, `# %% [markdown]` a text cell.

The scripts are the source; a test fails if a notebook differs from what its script gives.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SCRIPTS = sorted(path for path in HERE.glob("*.py") if path != Path(__file__))


def notebook(script: str) -> str:
    """Return the notebook of a script, as text."""
    parts = re.split(r"^# %%(.*)\n", script, flags=re.MULTILINE)[1:]
    cells = [_cell(number, *pair) for number, pair in enumerate(zip(parts[::2], parts[1::2], strict=True))]
    about = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    content = {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _cell(number: int, kind: str, body: str) -> dict[str, Any]:
    text = body.strip("\n")
    if "markdown" in kind:
        text = re.sub(r"^# ?", "", text, flags=re.MULTILINE)
    lines = text.splitlines(keepends=True)
    if "markdown" in kind:
        return {"cell_type": "markdown", "id": f"cell-{number}", "metadata": {}, "source": lines}
    code = {"execution_count": None, "metadata": {}, "outputs": []}
    return {"cell_type": "code", "id": f"cell-{number}", **code, "source": lines}


if __name__ == "__main__":
    for path in SCRIPTS:
        path.with_suffix(".ipynb").write_text(notebook(path.read_text(encoding="utf-8")), encoding="utf-8")
