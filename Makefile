# Everything needs `make setup` and runs it by itself. PYTHON chooses the interpreter of the environment.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help setup demo test packages types suite test-fast test-lowest lint format bench bench-collect bench-columns bench-detection bench-large bench-report bench-scale docs fuzz gold bundle release picture clean

help:            ## show this list
	@grep -hE '^[a-z-]+: .*##|^[a-z-]+:  +##' Makefile | sed -E 's/:[^#]*##/\t/' | expand -t 20

setup: .venv/.stamp

COMPILED := $(wildcard cluster_analysis/sources/compiled/*)

# pip writes a path for Python, not a finder in Python: that would cost each start of each command 14 ms.
EDITABLE := PIP_CONFIG_SETTINGS=editable_mode=compat

.venv/.stamp: pyproject.toml setup.py $(COMPILED) requirements/collect.txt requirements/analysis.txt tools/setup.sh
	@$(EDITABLE) PYTHON=$(PYTHON) bash tools/setup.sh
	@touch $@

demo: setup      ## simulate a job, collect it over real SSH, analyse it
	@bash tools/system_packages.sh ssh
	@$(BIN)/python -m demo

# Where the environment forbids Python to keep what it compiled, each process would compile all anew.
unexport PYTHONDONTWRITEBYTECODE

test: setup      ## the whole test suite, lint and types
	@$(MAKE) --no-print-directory -k -j3 types suite

packages:
	@bash tools/system_packages.sh ssh slurm browser prometheus postgresql fuzz

# In a fresh clone each of pytest's workers would compile all tests by itself, and look for constants in all modules.
tests/__pycache__:
	-@$(BIN)/pytest -qq --collect-only >/dev/null

# For macOS, what runs on workstations, with the standard library's types alone: those of other libraries are the
# same there, and would have to be read once more.
DARWIN := --platform darwin --cache-dir .mypy_cache/darwin --follow-imports=skip --allow-subclassing-any \
          --no-warn-return-any --no-warn-unused-ignores -p cluster_collect -p cluster_run

# Beside each other: mypy keeps one processor busy; installing, and tests of servers, mostly wait.
types:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy $(DARWIN)

# Real servers and browsers answer late on a machine with too much to do: what fails is tried once more, and listed
# as RERUN. A test that stands there twice is a defect.
suite: packages tests/__pycache__
	@$(BIN)/python -c 'import helm_python, kubernetes_validate, torch_tb_profiler' 2>/dev/null || $(EDITABLE) PYTHON=$(PYTHON) bash tools/setup.sh dev,k8s-test torch-tb-profiler
	$(BIN)/pytest -n auto --reruns 1 -m "slow or not slow"

test-fast: setup tests/__pycache__ ## all but the slow tests: two minutes, no second try
	$(BIN)/pytest -n auto

# Libraries that are old say of new ones what these no longer like: no error of ours.
test-lowest: setup tests/__pycache__ ## the fast tests with the lowest versions that pyproject.toml allows; PYTHON=python3.10
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@$(BIN)/uv venv --quiet --clear --python $(PYTHON) build/lowest
	@$(BIN)/uv pip install --quiet --resolution lowest-direct --config-settings editable_mode=compat \
	  --python build/lowest/bin/python --editable '.[dev]'
	build/lowest/bin/pytest -n auto -W default::DeprecationWarning

lint: setup      ## style and types only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup    ## put the code into its form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

gold: setup      ## renew the gold files; read the difference before you commit it
	RENEW_GOLD=1 $(BIN)/pytest -q tests/analysis/reports
	$(BIN)/python -m tools.renew_readme
	$(BIN)/python -m tools.renew_commands
	$(BIN)/python -m tools.renew_fields
	$(BIN)/python -m tools.renew_modules
	$(BIN)/python -m tools.renew_tutorial

docs: setup      ## the site of the documents, strictly and without network: build/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

fuzz: setup      ## hostile texts for the compiled reader, under sanitizers, and hostile columns; FUZZ_S=3600 for an hour
	@$(BIN)/python -m tools.fuzz $(or $(FUZZ_S),60)

picture: setup   ## take all pictures of README and docs anew, from the demo's job
	@bash tools/system_packages.sh browser fonts
	$(BIN)/python -m tools.renew_picture

bundle: setup    ## dist/bundle-VERSION: all wheels for clusters without network (x86_64 and aarch64, Python 3.10 to 3.13)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check ziglang auditwheel wheel  # compile for both machines
	@$(BIN)/python -m tools.bundle dist

release: setup   ## dist/release-VERSION: sdist, wheels for both machines, SBOM, checksums; CLUSTER_PROFILER_URL is the repository's address
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check ziglang auditwheel wheel twine
	@$(BIN)/python -m tools.release dist

bench: setup     ## the whole analysis against the peer's script, at 64 and 256 ranks
	@$(BIN)/python -m benchmarks.engine

bench-scale: setup ## cost a rank, from 64 to 10 240 ranks
	@$(BIN)/python -m benchmarks.scale

bench-large: setup ## captures that are large another way: 3076 steps, 100 MB of kernel_details.csv a rank, files too large to move
	@bash tools/system_packages.sh ssh bench
	@$(BIN)/python -m benchmarks.large

bench-report: setup ## size and load time of report.html, against other ways to draw the same
	@bash tools/system_packages.sh browser
	@$(BIN)/python -m benchmarks.report

bench-detection: setup ## precision, recall and cost error on faults of the simulator and of independent models, and on a real trace
	@nice $(BIN)/python -m benchmarks.detection

bench-collect: setup ## collecting against scp, sftp, rsync, ssh tar and paramiko, over real servers
	@bash tools/system_packages.sh ssh bench
	@$(BIN)/python -m benchmarks.collect

bench-columns: setup ## collecting and analysing columns against files: 1024 ranks of 128 hosts over real servers
	@bash tools/system_packages.sh ssh bench
	@$(BIN)/python -m benchmarks.columns

clean:           ## remove what setup, the demo and the tests made
	rm -rf .venv build demo-out .mypy_cache .ruff_cache .pytest_cache .hypothesis
