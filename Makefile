# Each target works on a fresh machine with Python 3.11–3.14 and make: no root, no other service.
PYTHON ?= python3
BIN := .venv/bin
# More than there are processors: half of the tests wait for processes of their own.
TEST_WORKERS ?= 6
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test check up bench faults lock

.venv/bin/python:
	$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 11) <= v < (3, 15) else f"Engram needs Python 3.11 to 3.14, this is {v[0]}.{v[1]}: make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv

.venv/.installed: requirements.txt | .venv/bin/python
	@echo "Installing into .venv (about a minute the first time) …"
	$(PIP) -r requirements.txt
	@touch $@

.venv/.installed-dev: requirements-dev.txt .venv/.installed
	@echo "Installing what tests and checks need (another minute the first time) …"
	$(PIP) -r requirements-dev.txt
	@touch $@

demo: .venv/.installed  ## live through a sample life and print what is believed before and after a change
	$(BIN)/python manage.py demo

up: .venv/.installed  ## the whole stack until Ctrl-C, restarting what dies
	$(BIN)/python manage.py up

test: .venv/.installed-dev  ## the whole suite in parallel, each worker with a real database and broker of its own
	$(BIN)/python -m pytest --numprocesses $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder

check: .venv/.installed-dev  ## lint, types, import contracts, settings, migrations in sync
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	SECRET_KEY=$$($(BIN)/python -c 'import secrets; print(secrets.token_urlsafe(64))') DEBUG=0 ENGRAM_HTTPS=1 \
		$(BIN)/python -W error::RuntimeWarning manage.py check --deploy --fail-level WARNING
	$(BIN)/python -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run  # no database is running here

bench: .venv/.installed-dev  ## benchmarks, as ratios within one run; CONVERSATIONS="FILE…" adds what consolidation costs
	$(BIN)/python -m benchmarks --conversations "$(CONVERSATIONS)"

faults: .venv/.installed-dev  ## the fault suite three times at real time-outs, in random order; keeps docs/faults.md
	$(BIN)/python -m tests.faults

lock: .venv/.installed-dev  ## make the requirement files from pyproject.toml
	$(BIN)/uv pip compile --quiet --python-version 3.11 --no-header --no-annotate pyproject.toml -o requirements.txt
	$(BIN)/uv pip compile --quiet --python-version 3.11 --no-header --no-annotate --extra otel -c requirements.txt pyproject.toml -o requirements-otel.txt
	$(BIN)/uv pip compile --quiet --python-version 3.11 --no-header --no-annotate --extra local -c requirements.txt pyproject.toml -o requirements-local.txt
	$(BIN)/uv pip compile --quiet --python-version 3.11 --no-header --no-annotate --group dev --extra otel --extra local -c requirements-otel.txt -c requirements-local.txt pyproject.toml -o requirements-dev.txt
