# Every target works in a fresh clone on a machine that has Python 3.11+, make and git.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
PYTEST_ARGS ?=

.PHONY: help demo test check format bench lock clean

help:
	@echo "make demo    a real fleet on this machine: a commit, an apply, and jobs on the workers (KEEP=1 keeps it)"
	@echo "make test    all tests, on real clusters"
	@echo "make check   format, lint, types"
	@echo "make bench   measurements, as ratios"
	@echo "make format  write the format instead of checking it"
	@echo "make lock    choose new versions for requirements.lock"

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "kfleet needs Python 3.11 or newer; choose one with make PYTHON=...")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c 'import uv' 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(READY)
	@$(BIN)/kfleet demo $(if $(KEEP),--keep)

test: $(READY)
	@$(BIN)/kfleet sandbox build
	@$(BIN)/pytest $(PYTEST_ARGS)

check: $(READY)
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

format: $(READY)
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(READY)
	@$(BIN)/kfleet sandbox build
	@$(BIN)/python benchmarks/run.py

# A plain list with hashes: it names no package index, so it installs from a mirror as well.
lock: $(READY)
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --annotation-style line \
	  --extra sandbox --group dev --no-header --output-file requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) build dist
