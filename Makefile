# Every target sets up .venv by itself the first time and prints what it does.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PART ?= node
MINUTES ?= 30
SUITE ?= node

.PHONY: demo test lint compat bench soak clean setup help

help:
	@echo "make demo     a node, a million records in and out through a foreign client, checked"
	@echo "make test     every test that needs no Apache Kafka (15 minutes at most)"
	@echo "make lint     ruff, mypy, import contracts"
	@echo "make compat   Apache Kafka's own tools as judges (needs Maven and Java 17)"
	@echo "make bench    figures against Apache Kafka (SUITE=$(SUITE); needs Maven and Java 17)"
	@echo "make soak     the full counts (PART=$(PART) MINUTES=$(MINUTES))"
	@echo "make clean    removes .venv, caches and built files"

setup: $(STAMP)

$(STAMP): pyproject.toml setup.py $(wildcard src/penstock/kernels/*.pyx)
	@echo "== setting up $(VENV) (once)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,lint,bench]'
	@touch $(STAMP)

demo: $(STAMP)
	@echo "== demo: a node, a million keyed records in and out, count, order and checksum verified"
	@$(BIN)/python -m demo.node

test: $(STAMP)
	@echo "== tests"
	@$(BIN)/python -m pytest -q -m "not compat" tests

lint: $(STAMP)
	@echo "== ruff"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@echo "== mypy"
	@$(BIN)/mypy
	@echo "== import contracts"
	@$(BIN)/lint-imports

compat: $(STAMP)
	@echo "== Apache Kafka's own tools (fetched by Maven into .cache the first time)"
	@$(BIN)/python -m pytest -q -m compat tests/compat

bench: $(STAMP)
	@echo "== benchmark suite $(SUITE)"
	@$(BIN)/python -m bench.$(SUITE)

soak: $(STAMP)
	@echo "== soak: part $(PART), at most $(MINUTES) minutes"
	@PENSTOCK_SOAK=1 PENSTOCK_SOAK_MINUTES=$(MINUTES) $(BIN)/python -m pytest -q -p no:cacheprovider $(if $(filter node,$(PART)),tests/faults,tests/faults/test_$(PART).py)

clean:
	rm -rf $(VENV) .cache build dist *.egg-info src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src -name '*.so' -delete
