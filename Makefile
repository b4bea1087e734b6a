# Two commands do all the set-up: `make demo` and `make test`. Both create .venv and reuse it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PYTHONHASHSEED := 0

.PHONY: demo test check bench accuracy validity reproduce docs clean

demo: $(VENV)/.ready
	$(BIN)/echobound demo

test: $(VENV)/.ready-dev
	$(BIN)/pytest -n 2

check: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest tests/test_imports.py

bench: $(VENV)/.ready-bench
	$(BIN)/python benchmarks/run.py

validity: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/validity.py

accuracy: $(VENV)/.ready
	$(BIN)/python benchmarks/accuracy.py

reproduce: $(VENV)/.ready
	$(BIN)/echobound reproduce

docs: $(VENV)/.ready-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "echobound needs Python 3.11 or newer: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.ready-dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@ $(VENV)/.ready

$(VENV)/.ready-bench: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	touch $@ $(VENV)/.ready

$(VENV)/.ready-docs: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@ $(VENV)/.ready

clean:
	rm -rf $(VENV) runs build dist site .mypy_cache .ruff_cache .pytest_cache
