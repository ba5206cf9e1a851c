# The one vocabulary of commands, for people and CI alike. `check` never edits; `fix` does.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PATHS := layers/core:functions
export UV_PYTHON_DOWNLOADS := never

.PHONY: run test check fix bench lock install pr clean
.DEFAULT_GOAL := run

## make run: the endpoint on 127.0.0.1:8787, with an embedded store and a built-in demo model
run: $(VENV)/.run vocab
	@PYTHONPATH=$(PATHS) $(BIN)/python -m bastion.local

## make test: everything
test: install node emulators artefact
	$(BIN)/python -m pytest -q

## make check: format, lint, types, architecture, drift of the locks; edits nothing
check: $(VENV)/.dev
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/architecture
	bash infra/lock.sh --check

fix: $(VENV)/.dev
	$(BIN)/ruff check --fix --quiet . || true
	$(BIN)/ruff format --quiet .

## make bench: every measurement, as ratios against a peer in the same run; make bench ONLY="shift proxy"
bench: install emulators node peers
	PYTHONPATH=$(PATHS):tests $(BIN)/python -m benchmarks $(ONLY)

lock: $(VENV)/.dev
	bash infra/lock.sh

pr: check test

install: $(VENV)/.dev vocab

# -- what the commands need, made when its lock changes ------------------------------------------------

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-uv.lock

$(VENV)/.run: requirements.lock | $(BIN)/python
	test $(VENV)/.dev -nt $< || $(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes $< requirements-uv.lock
	@touch $@

$(VENV)/.dev: requirements-dev.lock | $(BIN)/python
	$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes $< requirements-uv.lock
	@touch $@

.PHONY: vocab
vocab: | $(BIN)/python
	@$(BIN)/python layers/vocab/fetch.py

include infra/build.mk
include tests/benchmarks/bench.mk

clean:
	rm -rf .venv* .build .aws-sam .bastion node_modules tests/node/node_modules
