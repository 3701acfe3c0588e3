# The commands of the README are `make run`, `make test`, and with a local model `make run-toon`. Needs git, make and Python 3.11 or newer.

VENV ?= .venv
# The first Python on the PATH that is new enough.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
PIP = $(VENV)/bin/python -m pip --disable-pip-version-check --quiet
# With PYTEST_ARGS one process tests what they name. Without, a process for each core, up to four, tests a file at a time;
# the tests that kill, flood and starve the program come behind them, with the machine for themselves.
PYTEST = $(VENV)/bin/python -m pytest
export VENV

.PHONY: run run-toon test check bench install install-toon install-dev clean

run: install
	@$(VENV)/bin/python scripts/run

run-toon: install-toon
	@$(VENV)/bin/python scripts/run-toon

test: install-dev
ifdef PYTEST_ARGS
	$(PYTEST) $(PYTEST_ARGS)
else
	@failed=0; \
	$(PYTEST) --numprocesses logical --maxprocesses 4 --dist loadfile --ignore tests/anomaly || failed=1; \
	$(PYTEST) tests/anomaly || failed=1; \
	exit $$failed
endif

check: install-dev
	scripts/check

bench: install-dev
	scripts/bench

# Installing is skipped while the lock file and the package's own description stay as they are.
install: $(VENV)/.installed-base
install-toon: $(VENV)/.installed-toon
install-dev: $(VENV)/.installed-dev

$(VENV)/.installed-base: requirements.lock
$(VENV)/.installed-toon: requirements-toon.lock
$(VENV)/.installed-dev: requirements-dev.lock
$(VENV)/.installed-%: pyproject.toml setup.py | $(VENV)/bin/python
	@echo "Installing $(filter %.lock,$^) into $(VENV)"
	@$(PIP) install -r $(filter %.lock,$^)
	@$(PIP) install --no-deps -e .
	@touch $@

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "Sluice needs Python 3.11 or newer on the PATH" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

clean:
	rm -rf $(VENV) .run build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find proxy tests -name __pycache__ -type d -prune -exec rm -rf {} +
