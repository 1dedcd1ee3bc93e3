# Every target sets up .venv by itself the first time and prints what it does.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
PART ?= node
# Every property with a hundred times its examples takes longer than the other soaks.
MINUTES ?= $(if $(filter properties,$(PART)),120,30)
SUITE ?= headline
# Hundreds of short processes run in tests and the demo; none of them should have to compile Python first.
export PYTHONDONTWRITEBYTECODE :=
# Tests that keep to themselves in one process; the others have nodes, clients, JVMs and ports, and stay together by file.
TESTS_ASIDE := tests/sim tests/walks tests/unit
# Tests wait for elections, sessions and processes two thirds of their time: on two cores four keep both busy.
AT_ONCE ?= 4
# What PART=... means; any other part is one file of tests/faults.
SOAK_node := tests/faults
SOAK_groups := tests/sim/groups tests/faults/test_groups.py
SOAK_txn := -s tests/sim/transactions tests/sim/cluster/test_transactions.py tests/faults/transactions tests/unit/coordinators/transactions/test_idle_ids.py
SOAK_spark := tests/faults/spark
SOAK_exactly := tests/sim/exactly tests/faults/exactly tests/faults/spark $(addprefix tests/faults/agent/test_,exactly_once.py crash_list_exactly_once.py)
SOAK_keyed := tests/unit/spark/lake/keyed tests/spark/test_keyed_tables.py
SOAK_quorum := tests/sim/quorum tests/sim/controller
SOAK_sim := tests/sim/cluster
# What it counted and drew is told, so that it can be drawn again.
SOAK_cluster := -s tests/faults/cluster
SOAK_abuse := -s tests/faults/abuse
SOAK_agent := tests/faults/agent tests/faults/agent_network tests/walks/agent
SOAK_postgres := -s tests/faults/postgres
SOAK_demo := tests/demo
# Rates and refusals have their exact bounds here, where nothing else runs.
SOAK_security := -s tests/faults/security $(addprefix tests/clients/test_,quotas.py logins.py bearers.py reauthentication.py)
SOAK_upgrades := -s tests/upgrades
SOAK_life := tests/life
SOAK_properties := -m hypothesis -n 2 --dist worksteal $(TESTS_ASIDE)

.PHONY: help setup demo test lint compat bench soak docs ui wheel clean

help:
	@echo "make demo     a log, an agent, three nodes, Spark and a table, exactly once, three kill -9 in between, every line checked"
	@echo "make test     every test that needs no Apache Kafka (20 minutes at most; Spark's need Java 17)"
	@echo "make lint     ruff, mypy, import contracts"
	@echo "make compat   Apache Kafka's own tools as judges, and every way to install (needs Maven and Java 17)"
	@echo "make bench    figures beside Apache Kafka's (SUITE=$(SUITE); COMPARE=1 names what became slower, KEEP=1 keeps it)"
	@echo "make soak     the full counts (PART=$(PART) MINUTES=$(MINUTES))"
	@echo "make docs     prints the reference pages anew from the code"
	@echo "make ui       builds the console's pages anew (Node 20 or newer; as built they are committed)"
	@echo "make wheel    dist/penstock-….whl with compiled kernels, to install elsewhere with pip"
	@echo "make clean    removes .venv, caches and built files"

setup: $(STAMP)

$(STAMP): pyproject.toml setup.py $(wildcard src/penstock/kernels/*.pyx src/penstock/kernels/*.pxi src/penstock/kernels/*.h)
	@echo "== setting up $(VENV) (once; a minute or two)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Penstock needs Python 3.11 or newer; set PYTHON=...")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) install --upgrade pip
	@$(PIP) install --editable '.[test,lint,bench]'
	@$(BIN)/python -m compileall -q src
	@sh tests/system_packages.sh chromium:chromium initdb:postgresql
	@echo "== kernels: $$($(BIN)/python -c 'import penstock.kernels as k; print(k.IMPLEMENTATION)')"
	@touch $(STAMP)

demo: $(STAMP)
	@echo "== penstock dev --demo (two minutes; Spark needs Java 17)"
	@$(BIN)/penstock dev --demo

# One and the same order of everything that is hashed: a run that fails must fail again.
test: export PYTHONHASHSEED := 0
# What the first run took is told by the second.
test: export PENSTOCK_TOOK := $(VENV)/took
test: $(STAMP)
	@rm -f $(PENSTOCK_TOOK)
	@echo "== tests of modules, walks and simulations, $(AT_ONCE) at a time"
	@$(BIN)/python -m pytest -q --durations=15 -n $(AT_ONCE) --dist worksteal $(TESTS_ASIDE); aside=$$?; \
	echo "== tests with nodes, clients, pages and Spark, $(AT_ONCE) files at a time"; \
	$(BIN)/python -m pytest -q --durations=30 -m "not compat" -n $(AT_ONCE) --dist loadgroup $(TESTS_ASIDE:%=--ignore=%) tests && exit $$aside

lint: $(STAMP)
	@echo "== ruff"
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check . || { echo "not formatted; run $(BIN)/ruff format ."; exit 1; }
	@echo "== mypy"
	@$(BIN)/mypy
	@echo "== import contracts"
	@$(BIN)/lint-imports --no-cache --verbose >$(VENV)/contracts.log 2>&1 || { cat $(VENV)/contracts.log; exit 1; }

compat: $(STAMP)
	@echo "== Apache Kafka's own tools (fetched by Maven into .cache the first time), and every way to install"
	@$(BIN)/python -m pytest -q -m compat tests/compat tests/packaging

# Words for a suite: COMPARE=1, AGAINST=REVISION, KEEP=1 and QUICK=1 are the headline's, MINUTES the soak's; BENCH_ARGS is for any other.
BENCH_headline := $(if $(COMPARE),--compare) $(if $(AGAINST),--against $(AGAINST)) $(if $(KEEP),--keep) $(if $(QUICK),--quick)
BENCH_console := $(if $(KEEP),--keep)
BENCH_soak := --minutes $(MINUTES)

bench: $(STAMP)
	@echo "== benchmark suite $(SUITE)"
	@$(BIN)/python -m bench.$(SUITE) $(BENCH_$(SUITE)) $(BENCH_ARGS)

soak: $(STAMP)
	@echo "== soak: part $(PART), at most $(MINUTES) minutes"
	@PENSTOCK_SOAK=1 PENSTOCK_SOAK_MINUTES=$(MINUTES) $(if $(filter properties,$(PART)),PENSTOCK_PROPERTIES=fresh) $(BIN)/python -m pytest -q -p no:cacheprovider $(or $(SOAK_$(PART)),tests/faults/test_$(PART).py)

docs: $(STAMP)
	@echo "== reference pages"
	@$(BIN)/python -m penstock.cli.reference >docs/reference/cli.md
	@$(BIN)/python -m penstock.client.reference >docs/reference/client.md
	@$(BIN)/python -m penstock.model.config.reference >docs/reference/configuration.md

UI := src/penstock/console/web

# The only target that needs Node: what it builds is committed, so that installing, testing and the demo do without.
ui: $(UI)/node_modules/.package-lock.json
	@echo "== types and pages of the console"
	@cd $(UI) && node_modules/.bin/tsc --noEmit && node build.mjs

$(UI)/node_modules/.package-lock.json: $(UI)/package-lock.json
	@cd $(UI) && npm ci --no-audit --no-fund --loglevel=error

# Needs none of what tests and lint do, so it does not wait for them.
wheel:
	@echo "== building a wheel"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@rm -rf dist
	@$(PIP) wheel --no-deps --wheel-dir dist .
	@for made in dist/*.whl; do echo "$$made ($$(du -h $$made | cut -f1)): pip install '$$made' or, with Spark, pip install '$$made[spark]'"; done

clean:
	@echo "== removing $(VENV), caches and built files"
	@rm -rf $(VENV) .cache build dist *.egg-info src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find src -name '*.so' -delete
	@find src tests bench -name __pycache__ -prune -exec rm -rf {} +
