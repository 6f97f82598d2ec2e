# Everything a developer types. Each target sets up what it needs, from a bare Python 3.11 on; a second run starts at once.
# Another interpreter: make test PYTHON=python3.13

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV ?= .venv
BIN := $(VENV)/bin
ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	if $$p -c '$(ENOUGH)' >/dev/null 2>&1; then echo $$p; break; fi; done)
WORKERS ?= 2
# The language servers and schema checkers that the tests drive (npm writes this file when it is done).
NODE := tests/schema/node/node_modules
# The extension for VS Code, and what builds it.
EXTENSION := editors/vscode
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help demo test test-scale lint types pytest dogfood wheel extension update walk postgres editors screenshots bench bench-rules bench-lsp bench-scale bench-newcomer bench-vscode setup format clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-16s %s\n", $$1, $$2}'

demo: $(VENV)/.runtime ## check the examples, look at a broken file, run a workflow: all offline
	@bash scripts/demo.sh "$(BIN)"

test: lint types extension pytest dogfood wheel ## everything that CI runs, but for test-scale
	@echo "All checks passed."

lint: $(VENV)/.dev ## format check and lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.dev ## mypy, strict
	$(BIN)/mypy

pytest: $(VENV)/.dev $(NODE)/.package-lock.json $(EXTENSION)/agentloom.vsix editors postgres ## the tests, generated files and documents included
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

test-scale: $(VENV)/.dev ## what takes minutes: kills, lost databases, many runs, hosts (SOAK=10000: the whole soak)
	@SCALE=1 bash scripts/postgres.sh
	$(BIN)/python -m pytest tests/scale --durations 10 $(PYTEST_ARGS)

dogfood: $(VENV)/.runtime ## agentloom's own check over the examples
	$(BIN)/agentloom validate --strict examples

wheel: $(VENV)/.dev ## build the wheel and try it in a fresh environment
	PYTHON="$(PYTHON)" bash scripts/try_wheel.sh "$(BIN)"

extension: $(EXTENSION)/node_modules/.package-lock.json ## check, test and package the extension for VS Code
	@cd $(EXTENSION) && npm run --silent types && npm run --silent lint && npm run --silent unit && npm run --silent package

update: $(VENV)/.dev $(NODE)/.package-lock.json ## write every generated file again: schemas, catalogue, rule pages, golden files, pictures
	$(BIN)/python -m pytest -q --update -m golden -p no:randomly

postgres: ## install PostgreSQL for the tests of durable runs, where that takes no questions
	@bash scripts/postgres.sh

editors: ## install the editors and the browser that the tests drive, where that takes no questions
	@bash scripts/editors.sh

screenshots: $(VENV)/.dev extension editors ## take the pictures of a real VS Code for the documents
	$(BIN)/python scripts/editor_pictures.py

walk: $(VENV)/.dev ## long random work with the language server: WALK=20000 edits in each encoding
	WALK=$(or $(WALK),20000) $(BIN)/python -m pytest tests/lsp/test_random_walk.py tests/lsp/test_random_workspace.py -q --timeout 3600

bench: $(VENV)/.runtime ## measure, beside agentloom 0.4.0 from PyPI
	$(BIN)/python benchmarks/run.py

bench-rules: $(VENV)/.dev ## measure how the time of each rule grows from 500 to 2,000 steps
	$(BIN)/python benchmarks/rules.py

bench-scale: $(VENV)/.dev postgres ## measure runs in a database, beside a file, into docs/scale.md (SOAK=10000: the long run)
	$(BIN)/python benchmarks/scale.py

bench-lsp: $(VENV)/.runtime $(NODE)/.package-lock.json ## measure the language server beside yaml-language-server, into docs/benchmarks.md
	$(BIN)/python benchmarks/lsp.py

bench-newcomer: $(VENV)/.dev extension editors ## time the way from the .vsix to the first green run in VS Code (wants the network)
	$(BIN)/python benchmarks/newcomer.py

bench-vscode: $(VENV)/.runtime extension editors ## measure typing in a real VS Code: key press to squiggle
	$(BIN)/python benchmarks/vscode.py

setup: $(VENV)/.dev ## only set up the development environment

format: $(VENV)/.dev ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## remove environments, caches and build results
	rm -rf $(VENV) .cache $(EXTENSION)/node_modules $(EXTENSION)/dist $(EXTENSION)/dist-tests build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

# One environment, two stages: the demo needs only what users get.
$(VENV)/.python:
	@test -n "$(PYTHON)" && $(PYTHON) -c '$(ENOUGH)' 2>/dev/null || { \
		echo "agentloom needs Python 3.11 or newer; found $$($(or $(PYTHON),python3) --version 2>&1 || echo none)." \
		"Name one: make PYTHON=/path/to/python3.12 …" >&2; exit 1; }
	@echo "Setting up $(VENV) with $$($(PYTHON) --version) …"
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/.runtime: pyproject.toml $(VENV)/.python
	@$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.dev: scripts/dev_requirements.py $(VENV)/.runtime
	@$(BIN)/python scripts/dev_requirements.py > $(VENV)/dev-requirements.txt
	@$(BIN)/python -m pip install --quiet --requirement $(VENV)/dev-requirements.txt
	@touch $@

$(NODE)/.package-lock.json: tests/schema/node/package-lock.json
	@command -v npm >/dev/null || { echo "the schema tests drive a real yaml-language-server; install Node.js 18 or newer with npm" >&2; exit 1; }
	@npm ci --prefix tests/schema/node --silent --no-audit --no-fund
	@touch $@

$(EXTENSION)/agentloom.vsix: $(EXTENSION)/node_modules/.package-lock.json $(wildcard $(addprefix $(EXTENSION)/,src/*.* src/*/*.* media/* walkthrough/* *.json *.mjs *.md))
	@cd $(EXTENSION) && npm run --silent package >/dev/null

$(EXTENSION)/node_modules/.package-lock.json: $(EXTENSION)/package-lock.json
	@command -v npm >/dev/null || { echo "the extension for VS Code is built with Node.js 20 or newer and npm" >&2; exit 1; }
	@npm ci --prefix $(EXTENSION) --silent --no-audit --no-fund
	@touch $@
