"""The lowest versions that `pyproject.toml` allows, for `pip install`: what we declare is what is tested.

Usage: python tests/lowest.py; prints a requirement a line, those of the package and of what the core tests need.
"""

import re
import tomllib
from pathlib import Path

EXTRAS = ("files", "sklearn", "dask")
TESTS = ("pytest", "pytest-xdist", "hypothesis", "mpmath", "jsonschema", "polars")  # of the extra `dev`


def lowest():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = project["dependencies"] + [one for name in EXTRAS for one in extras[name]]
    wanted += [one for one in extras["dev"] if re.split("[<>=]", one)[0] in TESTS]
    return sorted({one.replace(">=", "==").split(",")[0] for one in wanted})


if __name__ == "__main__":
    print("\n".join(lowest()))
