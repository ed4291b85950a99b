# Every target builds .venv by itself; a second call does no set-up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: audit test test-full bench docs lint clean
audit: $(VENV)/.core  ## a real audit of a real DP-SGD training
	@$(BIN)/epsilometer audit $(ARGS)

lint: $(VENV)/.dev  ## style, types, layering
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

test: lint  ## everything that CI runs
	$(BIN)/python -m pytest -n 2 -m "not full"

test-full: lint  ## also the long statistical tests
	$(BIN)/python -m pytest -n 2

bench: $(VENV)/.dev  ## side by side with peers, one table a subject
	$(BIN)/python benchmarks/engine.py --write benchmarks/RESULTS.md
	$(BIN)/python benchmarks/scaling.py
	$(BIN)/python benchmarks/bounds.py
	$(BIN)/python benchmarks/runs.py

docs: $(VENV)/.docs  ## HTML in docs/_build
	$(BIN)/sphinx-build -q -W -b html docs docs/_build

clean:
	rm -rf $(VENV) docs/_build

$(VENV)/.core: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed; make PYTHON=/path/to/python3.11 …")'
	@echo "setting up $(VENV), once" >&2
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	@$(PIP) --editable '.[dev]'
	@touch $@

$(VENV)/.docs: $(VENV)/.core
	@$(PIP) --editable '.[docs]'
	@touch $@
