# Every target builds .venv by itself; a second call does no set-up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: audit test test-full bench docs lint chromium clean
audit: $(VENV)/.core  ## a real audit of a real DP-SGD training
	@$(BIN)/epsilometer audit $(ARGS)

lint: $(VENV)/.dev  ## style, types, layering
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

chromium:  ## for tests of reports in a real browser: Debian's, where there is none and it can be had
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || test -n "$$CHROMIUM" \
	|| { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && echo "installing Chromium, once" >&2 \
	&& { apt-get -qq update; DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends chromium; } </dev/null >/dev/null; } \
	|| echo "NO BROWSER: tests of reports in a real browser will be skipped; install Chromium, or set CHROMIUM to its path" >&2

# One process more than CI has cores: many tests wait for programs that they start, kill or watch.
test: lint chromium  ## everything that CI runs
	$(BIN)/python -m pytest -n 3 -m "not full"

test-full: lint chromium  ## also the long statistical tests
	$(BIN)/python -m pytest -n 3

bench: $(VENV)/.dev  ## side by side with peers, one table a subject
	$(BIN)/python benchmarks/engine.py --write benchmarks/RESULTS.md
	$(BIN)/python benchmarks/scaling.py
	$(BIN)/python benchmarks/bounds.py
	$(BIN)/python benchmarks/runs.py
	$(BIN)/python benchmarks/report.py

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
