# make lab, make test: both set up everything they need. `make help` lists the rest.

PYTHON ?=
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
NOTEBOOK := notebooks/01_quickstart.ipynb
NBVAL := --nbval-lax --nbval-cell-timeout=300 --nbval-current-env
# three processes, also on two cores: Spark's and the browser's tests wait half of their time
WORKERS ?= 3
XDIST := -n $(WORKERS) --no-loadscope-reorder
PYTEST_ARGS ?=
# the widgets' scripts and their tests; deno fetches nothing
DENO := DENO_NO_UPDATE_CHECK=1 $(BIN)/deno
SCRIPTS := --config tests/javascript/deno.json iceexplore/widgets/static/*.js iceexplore/widgets/static/types.d.ts tests/javascript
FUZZ_ARGS ?=
# the seed is fixed, so that a gate that fails fails again; other seeds are for make fuzz
FUZZ_SEED ?= 1
FUZZ_SECONDS ?= 120
# make evidence EVIDENCE_ARGS="--only commits": one experiment, compared with the results
EVIDENCE_ARGS ?=
LAB_ARGS ?= $(if $(filter 0,$(shell id -u)),--allow-root)

.DEFAULT_GOAL := help
.PHONY: help lab test test-long fuzz fuzz-ci lint types format browsers interop bench bench-commits bench-doctor bench-draft bench-inspect bench-pipeline bench-planning bench-reading bench-scan bench-stores bench-views bench-widgets samples docs doctor-page v4-page constraints check-binder dist evidence hooks clean system

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

lab: $(VENV)/.lab ## open JupyterLab on the quickstart
	$(BIN)/jupyter lab $(LAB_ARGS) $(NOTEBOOK)

test: $(VENV)/.dev system ## run every test, notebooks included (CI=true: nothing is skipped)
	$(BIN)/pytest tests notebooks $(NBVAL) $(XDIST) $(PYTEST_ARGS)

test-long: $(VENV)/.dev system ## run the tests with many more examples per property (hours)
	$(BIN)/pytest tests notebooks $(NBVAL) $(XDIST) --hypothesis-profile=long --timeout=0 $(PYTEST_ARGS)

fuzz: $(VENV)/.dev ## look at 10,000 damaged tables, and check and repair as many (two hours); FUZZ_ARGS: --seed 7 --cases 500
	$(BIN)/python -m scripts.fuzz $(FUZZ_ARGS)
	$(BIN)/python -m scripts.fuzz --doctor $(FUZZ_ARGS)

fuzz-ci: $(VENV)/.dev ## check and repair damaged tables for two minutes, as the gate does
	$(BIN)/python -m scripts.fuzz --doctor --seed $(FUZZ_SEED) --stop-after $(FUZZ_SECONDS)

lint: $(VENV)/.dev ## run ruff, and deno on the widgets' scripts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(DENO) lint $(SCRIPTS)
	$(DENO) fmt --check $(SCRIPTS)

format: $(VENV)/.dev ## fix what ruff and deno can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(DENO) fmt $(SCRIPTS)

types: $(VENV)/.dev ## run mypy --strict, and TypeScript's checker on the widgets' scripts
	$(BIN)/mypy
	cd benchmarks && "$(abspath $(BIN))/mypy" --cache-dir ../.mypy_cache --config-file ../pyproject.toml *.py differences evidence generator
	$(DENO) check --no-remote $(SCRIPTS)

bench: $(VENV)/.dev ## measure time and memory against PyIceberg
	$(BIN)/python benchmarks/metadata.py

bench-commits: $(VENV)/.dev ## measure commits against PyIceberg and v3, and when to flush (PyIceberg's part takes minutes)
	$(BIN)/python benchmarks/commits.py
	$(BIN)/python benchmarks/flush.py

bench-doctor: $(VENV)/.dev ## measure checks of large tables, and of 500 small ones (a million files: minutes, 3 GB of memory)
	$(BIN)/python benchmarks/doctor.py

bench-draft: $(VENV)/.dev ## measure what the V4 draft writes and reads beside the proposal: benchmarks/results/draft.md
	$(BIN)/python benchmarks/draft.py

bench-planning: $(VENV)/.dev ## measure scan planning against PyIceberg (PyIceberg's part takes minutes)
	$(BIN)/python benchmarks/planning.py

bench-scan: $(VENV)/.dev system ## measure scans on Spark against Iceberg's runtime: 20 million rows (a quarter of an hour)
	$(BIN)/python benchmarks/scan.py

bench-inspect: $(VENV)/.dev system ## measure metadata tables of ten million files on Spark (1.6 GB of disk, half an hour)
	$(BIN)/python benchmarks/distributed_metadata.py

bench-pipeline: $(VENV)/.dev system ## run the pipeline notebook at full size: 20 million rows in 100 commits, v3 and V4
	$(BIN)/python benchmarks/pipeline.py

bench-reading: $(VENV)/.dev ## measure reading rows against PyIceberg (20 million rows: 2 GB of disk, half an hour)
	$(BIN)/python benchmarks/reading.py

bench-stores: $(VENV)/.dev ## measure a table in a store that answers after 50 ms, against PyIceberg (minutes)
	$(BIN)/python benchmarks/stores.py

bench-views: $(VENV)/.dev ## measure views of 1,000 and 5,000 versions, and long queries (a minute)
	$(BIN)/python benchmarks/views.py

bench-widgets: $(VENV)/.dev system ## measure the explorer in a real browser: 5,000 nodes, a million files
	$(BIN)/python benchmarks/widgets.py

evidence: $(VENV)/.dev ## measure V4's open questions, v3 beside V4: benchmarks/results/evidence.md (EVIDENCE_TABLES: real tables)
	$(BIN)/python -m benchmarks.evidence $(EVIDENCE_ARGS)

browsers: $(VENV)/.dev ## try every widget in Firefox and WebKit (Debian: firefox-esr, webkit2gtk-driver, xvfb; three minutes)
	$(BIN)/python -m scripts.other_browsers

interop: $(VENV)/.dev system ## find out which readers read labs and saved simulations: docs/interop.md (a quarter of an hour)
	sh scripts/venv.sh .cache/interop "$(PYTHON)"
	.cache/interop/bin/python -m pip --disable-pip-version-check install --quiet --requirement scripts/interop/requirements.txt
	$(BIN)/python -m scripts.interop

samples: $(VENV)/.dev system ## rebuild the package's sample tables with Spark
	$(BIN)/python scripts/make_samples.py

doctor-page: $(VENV)/.dev ## write docs/doctor.md from the registries and the doctor's tests
	$(BIN)/python -m scripts.doctor_page

v4-page: $(VENV)/.dev ## write docs/v4.md and docs/v4-conformance.md from the registries and the points of the proposal
	$(BIN)/python -m scripts.v4_page
	$(BIN)/python -m scripts.v4_conformance

docs: $(VENV)/.dev system doctor-page v4-page ## redraw the pictures of README and docs in a real JupyterLab
	$(BIN)/python -m scripts.screenshots
	$(BIN)/python -m scripts.widget_pictures

# With the oldest Python that is to work, Debian 12's 3.11.2: newest versions may already refuse it.
constraints: ## resolve the newest versions into constraints.txt (PYTHON=/usr/bin/python3 on Debian 12)
	sh scripts/venv.sh .cache/constraints "$(PYTHON)"
	.cache/constraints/bin/python -m pip install --quiet --upgrade --upgrade-strategy eager ".[dev,gcs]"
	sh scripts/constraints.sh .cache/constraints/bin/python > constraints.txt
	rm -rf .cache/constraints

check-binder: ## install as Binder does, from scratch, and run the quickstart
	sh scripts/check_binder.sh "$(PYTHON)"

dist: ## build wheel and sdist, check them, install the wheel in an empty environment and open the sample
	sh scripts/dist.sh "$(PYTHON)"

hooks: $(VENV)/.dev ## run the gate's fast checks before each commit (pre-commit)
	$(PIP) install --quiet pre-commit
	$(BIN)/pre-commit install

clean: ## remove everything that make created
	rm -rf $(VENV) .cache build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

system:
	@sh scripts/system_packages.sh

$(VENV)/bin/python:
	@MAKE_TARGET="$(firstword $(MAKECMDGOALS))" sh scripts/venv.sh $(VENV) "$(PYTHON)"

# Stamps: installed again when what is to be installed changes.
$(VENV)/.lab: pyproject.toml constraints.txt | $(VENV)/bin/python
	sh scripts/install.sh $(BIN)/python --constraint constraints.txt --editable ".[jupyter]"
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	sh scripts/install.sh $(BIN)/python --constraint constraints.txt --editable ".[dev]"
	@touch $@
