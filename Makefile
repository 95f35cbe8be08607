# `make test` does all the set-up; nothing but Python and make is needed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# Whatever the environment says: compiling everything anew in each of hundreds of processes takes minutes.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "beat needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Try: make test PYTHON=python3.12" >&2; exit 1; }
	@echo "setting up $(VENV) (once; takes about a minute)"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

.PHONY: run
run: $(READY) ## start a private Redis, a scheduler, a worker and the web UI with examples/hello.py; Ctrl-C ends all
	@$(BIN)/beat dev examples/hello.py

.PHONY: test
test: $(READY) ## run the tests
	$(BIN)/pytest -n 9 --dist worksteal --ignore tests/browser tests

.PHONY: test-browser
test-browser: $(READY) ## test the web UI in a real browser: Chromium, from the system's packages
	$(BIN)/pytest -n 2 --dist loadfile tests/browser

.PHONY: lint
lint: $(READY) ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

.PHONY: types
types: $(READY) ## mypy --strict
	$(BIN)/mypy

.PHONY: wheel
wheel: $(READY) ## build the wheel, install it in a clean environment, use it
	sh .ci/wheel $(BIN)/python

.PHONY: compiled
compiled: $(READY) # else each of the tests' processes compiles all of them by itself
	@$(BIN)/pytest -q --collect-only tests > /dev/null

.PHONY: check
check: $(READY) ## all that CI runs
	$(MAKE) -j lint types wheel compiled
	$(MAKE) test
	$(MAKE) guard

.PHONY: sweep
sweep: $(READY) ## every zone around its clock changes of four years, against the oracle (minutes)
	$(BIN)/python -m tests.support.sweep

.PHONY: nemesis
nemesis: $(READY) ## three schedulers, one of them killed with -9 every five seconds, for two minutes
	$(BIN)/python -m tests.resilience.nemesis

.PHONY: soak
soak: $(READY) ## ten minutes with a worker that is killed every twenty seconds: is every tick accounted for?
	$(BIN)/python -m tests.resilience.soak

.PHONY: ledger
ledger: $(READY) ## a thousand runs, beats and workers killed at random: outcomes against the log that the jobs wrote (minutes)
	$(BIN)/python -m tests.resilience.ledger_nemesis

.PHONY: survive
survive: $(READY) ## every trouble that Redis can make, with an absence of a whole minute; every act of an operator under every fault
	LONG_TESTS=1 $(BIN)/pytest -n 4 tests/resilience/test_survival.py tests/resilience/test_control.py tests/resilience/test_overlap.py \
	  tests/resilience/test_interleaving.py tests/resilience/test_place.py tests/resilience/test_commands.py tests/resilience/policies tests/integration/test_routing_histories.py

.PHONY: properties
properties: $(READY) ## every property with all its examples, every pair and every part that the tests leave to chance (minutes)
	LONG_TESTS=1 $(BIN)/pytest -n 4 tests/unit tests/resilience/policies tests/storage tests/integration

.PHONY: compare
compare: $(READY) ## the scripts beside their previous version on 20,000 random items: the same keys and replies? (a minute)
	$(BIN)/python -m tests.resilience.script_comparison --items 20000

.PHONY: mutants
mutants: $(READY) ## beat with one safeguard taken out, one after the other: the tests must notice each (minutes)
	$(BIN)/python -m tests.resilience.mutants

.PHONY: peers
peers: $(READY) ## rq cron, rq-scheduler, RedBeat, Celery beat and beat under the same faults (minutes; installs them)
	$(BIN)/python -m benchmarks.peers.run

.PHONY: bench
bench: $(READY) ## beat beside its peers and what Redis can do, every budget (installs the peers; most of an hour)
	$(BIN)/python -m benchmarks --docs

.PHONY: bench-quick
bench-quick: $(READY) ## the same with less of everything, without policies: under two minutes
	$(BIN)/python -m benchmarks --quick

.PHONY: bench-ticks
bench-ticks: $(READY) ## Cron.after beside croniter and cronsim, shape by shape
	$(BIN)/python -m benchmarks.ticks

.PHONY: guard
guard: $(READY) ## has beat become slow? beside enqueue_many, in one run
	$(BIN)/python -m benchmarks.guard

.PHONY: pictures
pictures: $(READY) ## draw the pictures of the guides to policies anew, from the verdicts of a manual beat
	$(BIN)/python -m docs.pictures

.PHONY: screenshots
screenshots: $(READY) ## every page of the browser into docs/screenshots, light and dark, narrow and wide (two minutes)
	$(BIN)/python -m tests.browser.screenshots

.PHONY: reference
reference: $(READY) ## write docs/reference/api.md anew, from the OpenAPI document
	$(BIN)/python -m tests.web.reference

.PHONY: fuzz-api
fuzz-api: $(READY) ## the JSON API before a fuzzer, for longer (minutes)
	LONG_TESTS=1 $(BIN)/pytest -n 4 tests/web/test_api_fuzz.py

.PHONY: format
format: $(READY) ## let ruff rewrite the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: upgrade
upgrade: ## take the newest versions of everything, and note them in constraints.txt
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@{ echo "# The versions that CI has seen: \`make upgrade\` renews them."; $(BIN)/python -m pip freeze --exclude-editable; } > constraints.txt
	@touch $(READY)

.PHONY: clean
clean: ## remove everything that make made
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
