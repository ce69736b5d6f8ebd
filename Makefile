# Everything happens in $(VENV), which each target makes and fills by itself; a second call is quick.
# Another Python than `python3`: make quickstart PYTHON=python3.12
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check
PINS := uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --custom-compile-command "make pins"
LETTA_PINS := uv pip compile --quiet --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --custom-compile-command "make letta-pins"
.PHONY: quickstart test check bench docs pins letta-pins

quickstart: $(VENV)/quickstart.installed
	$(BIN)/stateval models pull
	$(BIN)/stateval run examples/fruit-preferences/suite.yaml

test: $(VENV)/test.installed
	$(BIN)/python -m pytest --numprocesses auto

check: $(VENV)/test.installed
	$(BIN)/ruff format --check . && $(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

bench: $(BIN)/python
	$(BIN)/python -m bench

docs: $(VENV)/test.installed
	$(BIN)/python -m typer stateval.cli.main utils docs --name stateval --title "Command line" --output docs/command-line.md
	$(BIN)/python -m pytest --quiet tests/test_documentation.py tests/test_house.py -k documentation

# The pinned versions; needs uv. The quick start gets a part of what the tests get, in the same versions.
pins:
	$(PINS) --all-extras --group build --group test --group check --output-file requirements/test.txt
	$(PINS) --extra embedded --group build --constraint requirements/test.txt --output-file requirements/quickstart.txt

# Two releases of the Letta server as they were installed in their time; the tests run both.
letta-pins:
	$(LETTA_PINS) --exclude-newer 2025-09-15T00:00:00Z --output-file requirements/letta-server-0.11.7.txt requirements/letta-server-0.11.7.in
	$(LETTA_PINS) --exclude-newer 2026-05-15T00:00:00Z --output-file requirements/letta-server-0.16.8.txt requirements/letta-server-0.16.8.in

$(VENV)/%.installed: requirements/%.txt pyproject.toml $(BIN)/python
	$(PIP) --require-hashes --requirement $<
	$(PIP) --no-deps --no-build-isolation --editable . && touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; (3, 11) <= sys.version_info < (3, 14) or sys.exit("stateval needs Python 3.11, 3.12 or 3.13, for instance: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
