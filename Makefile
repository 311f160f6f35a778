# Few verbs, so that a fresh machine needs nothing but make and Python 3.11 or later with venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo demo-room test lint bench fuzz soak faults clean

# The main job on the built-in rehearsal: no key, no agent CLI, no model.
demo: $(VENV)/.installed
	$(BIN)/fleet run blueprints/design.yaml "Should we shard the queue?" --runtime rehearsal

# A discussion in a room, and what somebody who comes late reads of it; fails when that is more than promised.
demo-room: $(VENV)/.installed
	$(BIN)/roundtable demo

test: $(VENV)/.dev-installed
	@sh tests/system-packages.sh
	$(BIN)/python -m pytest -n auto --dist loadgroup

lint: $(VENV)/.dev-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.dev-installed
	$(BIN)/python -m tests.bench

# Long runs on demand: random frames and rooms, and the tests that take minutes.
fuzz: $(VENV)/.dev-installed
	$(BIN)/python -m tests.fuzz frames --count 200000
	$(BIN)/python -m tests.fuzz rooms --count 20000

soak: $(VENV)/.dev-installed
	FLEET_SOAK=1 $(BIN)/python -m pytest -s tests/integration/test_kills.py
	$(BIN)/python -m pytest -s -m soak

# Small deliberate faults, each applied to a copy of the code: a test must notice it.
faults: $(VENV)/.dev-installed
	$(BIN)/python -m pytest -n auto -m faults

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.dev-installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.installed
