# Two commands do all the set-up: `make demo` and `make test`. Both create .venv and reuse it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PYTHONHASHSEED := 0

.PHONY: demo test lowest check attack bench accuracy validity reproduce docs clean

demo: $(VENV)/.ready
	$(BIN)/echobound demo

test: $(VENV)/.ready-dev
	$(BIN)/pytest -n 2 --dist worksteal

# What we declare is what we test: the core tests and the demo of an installed wheel, with the lowest versions. The tests
# above have the newest ones.
LOWEST := .venv-lowest
CORE := test_files test_typed test_runs_folder test_runs_database test_identify test_kernels_cpu test_network_model \
	test_scenario_bounds test_data_formats test_estimators

lowest: $(LOWEST)/.ready
	$(LOWEST)/bin/python -m pytest -n 2 $(CORE:%=tests/%.py)
	cd $(LOWEST) && bin/echobound demo --run $$(mktemp -d)/demo --quiet

$(LOWEST)/.ready: pyproject.toml $(shell find src -name '*.py')
	test -e $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST)
	rm -rf $(LOWEST)/wheel
	$(LOWEST)/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir $(LOWEST)/wheel .
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps $(LOWEST)/wheel/*.whl
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check $(LOWEST)/wheel/*.whl $$($(PYTHON) tests/lowest.py)
	touch $@

SIZE := full
attack: $(VENV)/.ready-dev
	nice $(BIN)/python benchmarks/attack.py --size $(SIZE)

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
	rm -rf $(VENV) $(LOWEST) runs build dist site .mypy_cache .ruff_cache .pytest_cache
