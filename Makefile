# Every target works in a fresh clone on a machine that has Python 3.11+, make and git.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
# The tests to run: a folder, a file, or one test by its name.
T ?= tests
# Tests that run side by side, each with clusters of its own; `auto` is what cores and memory carry (tests/machine.py).
WORKERS ?= auto
PYTEST_ARGS ?=
# Where Python may not keep what it compiled, every process compiles 1,000 modules again, and pytest all tests.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo unit shuffled test soak coverage mutants mutants-apply check docs format bench screenshots lock dist chart sbom clean

help:
	@echo "make demo    a real fleet on this machine: a commit, an apply, and jobs on the workers (KEEP=1 keeps it)"
	@echo "make unit    the tests that need no server: a minute"
	@echo "make shuffled  the same in a random order; ORDER=N repeats the order that a run printed"
	@echo "make test    all tests, on real clusters; T=tests/cluster/... for a part, WORKERS=1 for one after the other"
	@echo "make soak    random walks of commits, jobs and faults on real clusters, for an hour (SECONDS=, SEED=, STEPS=, RUN=1 under a controller, KUBESTELLAR=1)"
	@echo "make coverage  which lines and branches the tests of make unit reach"
	@echo "make mutants   whether tests notice small changes of what decides (some minutes)"
	@echo "make mutants-apply  the same of what writes, on real clusters (an hour)"
	@echo "make check   format, lint, types"
	@echo "make docs    write the files that are generated: docs/lint.md, docs/reference.md, deploy/*/rights.yaml"
	@echo "make bench   measurements, as ratios"
	@echo "make screenshots  pictures of the page in docs/images, from the example view"
	@echo "make dist    the wheel and the sdist in dist/, the same bytes for the same commit"
	@echo "make chart   lint the Helm chart and pack it into dist/ (HELM=, default: the helm on the PATH)"
	@echo "make sbom    the parts that an installation has, as CycloneDX, in dist/"
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

unit: $(READY)
	@$(BIN)/pytest -n logical --dist worksteal $(PYTEST_ARGS) tests/unit

# No test may depend on another one. The seed is the same for all workers, and pytest prints it.
ORDER ?= $(shell date +%s)
shuffled: $(READY)
	@$(BIN)/pytest -n logical --dist worksteal --random-order-bucket=global --random-order-seed=$(ORDER) $(PYTEST_ARGS) tests/unit

test: $(READY)
	@$(BIN)/kfleet sandbox build
	@$(BIN)/pytest -n $(WORKERS) --dist loadgroup $(PYTEST_ARGS) $(T)

# Walk after walk from SEED on; a walk that broke a rule is printed step by step.
SECONDS ?= 3600
SEED ?= 1
STEPS ?= 30
soak: $(READY)
	@$(BIN)/kfleet sandbox build
	@$(BIN)/python -m tests.soak --seconds $(SECONDS) --seed $(SEED) --steps $(STEPS) $(if $(RUN),--run) $(if $(KUBESTELLAR),--kubestellar)

coverage: $(READY)
	@$(BIN)/pytest -n logical --dist loadgroup --cov --cov-report=term:skip-covered $(PYTEST_ARGS) tests/unit

# Small changes of the code that tests should notice; those that none notices are printed.
mutants: $(READY)
	@$(BIN)/python -m tests.mutation --count 300 --seed 1 reconciler/plan reconciler/state reconciler/capacity

# The same of what writes, against tests on one fleet that stays up for all changes.
mutants-apply: $(READY)
	@$(BIN)/kfleet sandbox build
	@$(BIN)/python -m tests.mutation --count 150 --seed 1 --tests tests/unit/apply tests/cluster/apply -- reconciler/apply

check: $(READY)
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

docs: $(READY)
	@$(BIN)/python -m tests.generated

format: $(READY)
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(READY)
	@$(BIN)/kfleet sandbox build
	@$(BIN)/python benchmarks/run.py

screenshots: $(READY)
	@$(BIN)/python -m tests.screenshots docs/images

# A plain list with hashes: it names no package index, so it installs from a mirror as well.
lock: $(READY)
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --annotation-style line \
	  --extra sandbox --group dev --no-header --output-file requirements.lock pyproject.toml

# The time of the commit instead of now; hatchling sorts files and leaves out modes.
dist: $(READY)
	@rm -f dist/kfleet-*.whl dist/kfleet-*.tar.gz
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m hatchling build -d dist

HELM ?= helm
chart: $(READY)
	@$(HELM) lint --strict deploy/chart
	@version=$$($(BIN)/python deploy/version.py --semver) && \
	  $(HELM) package deploy/chart --version "$$version" --app-version "$$version" --destination dist

sbom: $(READY)
	@mkdir -p dist
	@$(BIN)/uv tool run --quiet --from cyclonedx-bom==7.5.0 cyclonedx-py requirements deploy/requirements.lock \
	  --output-reproducible -o dist/kfleet.cdx.json

clean:
	rm -rf $(VENV) build dist
