# Everything that is done with this project, from setting it up to what CI runs.

# What runs: tools of .venv, which `setup` makes from the lock files.
BIN := .venv/bin
PYTEST := $(BIN)/pytest

export PYTHON
ifdef DEMO_SECONDS
export DEMO_SECONDS
endif
ifdef DEMO_NODES
export DEMO_NODES
endif
ifdef CUT
export DEMO_CUT := $(if $(filter 1,$(CUT)),partition,$(CUT))
endif

.PHONY: help setup jars demo test test-all test-second check unit system plans format lock clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile

setup: ## the virtual environment .venv with the locked dependencies
	@sh tools/bootstrap.sh

jars: setup ## the jars of the embedded stack, in the cache outside this tree
	@$(BIN)/python tools/fetch_jars.py

demo: jars ## the toll network on embedded Kafka, Spark and ZooKeeper (DEMO_SECONDS=60 DEMO_NODES=2 CUT=1)
	@$(BIN)/medusa demo

test: setup ## everything that CI runs
	@$(BIN)/python -m tools.run_stages first

test-all: setup ## the same and all faults, a Spark cluster, clients in other languages, many random examples
	@$(BIN)/python -m tools.run_stages all

test-second: setup ## what test-all adds to test (STAGES="matrix-1 cluster" SEED=7)
	@$(BIN)/python -m tools.run_stages second $(STAGES) $(if $(SEED),--seed=$(SEED))

check: setup ## style, types and who imports whom
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: setup ## the tests that need no JVM
	$(PYTEST) tests/tidy tests/unit tests/plans

system: jars ## the first tier of the tests on embedded Kafka, ZooKeeper and Spark
	$(PYTEST) -m "not second_tier" tests/conformance tests/system

plans: setup ## the golden plans; REWRITE=1 writes them anew, to be read in review
	$(PYTEST) tests/plans $(if $(REWRITE),--rewrite)

format: setup ## source files in the project's style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

lock: setup ## the lock files anew, with the newest versions that pyproject.toml allows
	sh tools/lock.sh

clean: ## remove what was made here; the cache of jars stays
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .medusa
