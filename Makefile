# Draftlight. `make help` lists what there is.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ENVIRONMENT := packaging/environment.py
OUT ?= out
# Two for a core: while one waits for a worker or a child, the other computes.
TEST_PROCESSES ?= 4
SCHEME ?= light
CLIENTS := $(OUT)/clients

# The packaging tools are a package of their own, beside the app's.
BUNDLE := PYTHONPATH=packaging $(BIN)/python -m

.DEFAULT_GOAL := help
.PHONY: help setup libraries run test test-sweeps test-slow test-clients e2e screens check lint types contracts smoke screenshot bench lock clean
.PHONY: test-cluster tour schemas mutants bench-prefill bench-quality attack models-table settings-doc messages-doc handbook starter-verdict
.PHONY: wheel-check app app-check app-linux fresh

help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Make the environment and install the locked dependencies
	@$(BIN)/python $(ENVIRONMENT) --check $(VENV) 2>/dev/null || { \
	  $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 6))' 2>/dev/null || { \
	    echo "Draftlight needs Python 3.11, 3.12 or 3.13; '$(PYTHON)' is not that."; \
	    echo "Install one and run: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }; \
	  $(PYTHON) $(ENVIRONMENT) $(VENV); }

# Qt aborts without a message where a library is missing; pytest-qt imports it before any test.
libraries: setup
	@$(BIN)/python -m app.launch.libraries offscreen

run: setup ## Open Draftlight
	@$(BIN)/draftlight

# Compiled files are kept, whatever the shell says: hundreds of processes are started.
TESTS := PYTHONDONTWRITEBYTECODE= OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -p no:cacheprovider \
  -n $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder

test: libraries ## Run all tests but the sweeps (5 minutes)
	@$(TESTS)

test-sweeps: libraries ## Run the sweeps: every architecture and drafter, campaigns, the starter model (10 minutes)
	@$(TESTS) -m "sweep and not slow"

test-slow: libraries ## Run the longest sweeps
	@$(TESTS) -m slow

e2e: libraries ## Try it as people do, on a virtual display; saves pictures (needs Xvfb and xdotool; 6 minutes; OUT=dir)
	@DRAFTLIGHT_E2E_PICTURES=$(OUT)/e2e $(BIN)/python -m pytest -q -rs -m e2e tests/app/e2e

test-clients: libraries $(CLIENTS)/clients/.installed $(CLIENTS)/aider/.installed ## Ask a real server by the real clients (installs them once, under OUT; Python 3.11 or 3.12)
	@CLIENTS_ENVIRONMENTS=$(CLIENTS) $(BIN)/python -m pytest -q -p no:cacheprovider -m clients tests/clients

test-cluster: libraries ## Run models over several machines, as processes of this one (a quarter of an hour)
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -p no:cacheprovider -m cluster tests/core/cluster

# Environments of their own: what clients depend on is nothing of Draftlight's.
$(CLIENTS)/%/.installed: tests/clients/%.lock
	@echo "Installing tests/clients/$*.lock (about a minute, once)"
	@$(PYTHON) -m venv --clear $(CLIENTS)/$*
	@$(CLIENTS)/$*/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $<
	@touch $@

attack: libraries ## Attack it: kills, damaged files, hostile documents and more (an hour at most; OUT=dir)
	@$(BIN)/python -m tests.attack --out $(OUT)/attack

mutants: setup ## Put faults into the code and count those the tests catch (hours; installs cosmic-ray; OUT=dir)
	@test -x $(OUT)/cosmic-ray/bin/cosmic-ray || { \
	  $(PYTHON) -m venv --clear $(OUT)/cosmic-ray && $(OUT)/cosmic-ray/bin/pip install --quiet cosmic-ray==8.7.0; }
	@$(OUT)/cosmic-ray/bin/python -m tests.attack.mutants --python $(BIN)/python --out $(OUT)/mutants

schemas: setup ## Answers by the schemas of the public JSON Schema test suite, which it downloads (half an hour; OUT=dir)
	@mkdir -p $(OUT)/schemas
	@$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --no-binary jsonschema \
	  -d $(OUT)/schemas jsonschema==4.26.0
	@$(BIN)/python -m tests.attack.schemas --suite $(OUT)/schemas/jsonschema-4.26.0.tar.gz --out $(OUT)/schemas

models-table: libraries ## Try every model type on tiny models and write docs/models.md (half an hour; OUT=dir)
	@$(BIN)/python -m tests.attack architectures --out $(OUT)/attack
	@$(BIN)/python -m tests.attack.models_table $(OUT)/attack/architectures.jsonl

settings-doc: setup ## Write docs/settings.md from the declarations
	@$(BIN)/python -m core.cli settings --markdown > docs/settings.md

handbook: libraries ## Write the document that the first page offers, from the docs
	@$(BIN)/python -m tests.app.chat.first_page.handbook_text

messages-doc: libraries ## Write docs/messages.md from the window's tables
	@QT_QPA_PLATFORM=offscreen $(BIN)/python -m tests.app.controllers.messages_doc

starter-verdict: setup ## Try the starter model out anew and write the verdict that ships
	@$(BIN)/python -m tests.attack.support.starter_verdict

check: lint types contracts ## Style, types and import contracts

lint: setup
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

# For the Python of the environment, and for both systems; a cache each, as one would discard the other's.
types: setup
	@for system in linux darwin; do \
	  echo "mypy for $$system"; \
	  $(BIN)/mypy --platform $$system --cache-dir .mypy_cache/$$system || exit 1; done

contracts: setup
	@$(BIN)/lint-imports --no-cache

smoke: libraries ## Open the window off-screen, ask one question, check the answer's tokens
	@QT_QPA_PLATFORM=offscreen $(BIN)/draftlight --smoke

screenshot: libraries ## Save a picture of the window in mid-answer (OUT=dir SCHEME=light|dark)
	@mkdir -p $(OUT)
	@QT_QPA_PLATFORM=offscreen $(BIN)/draftlight --screenshot $(OUT)/main-$(SCHEME).png --scheme $(SCHEME)

screens: libraries ## Save a picture of every screen, light and dark, in three sizes and two text sizes (OUT=dir; 10 minutes)
	@QT_QPA_PLATFORM=offscreen $(BIN)/python -m app.bench.screens --out $(OUT)/screens \
	  --sizes 1440x900 1024x700 1920x1080 --zooms 100 150

bench: setup ## Measure decode speed against mlx-lm (about 15 minutes; keep the machine quiet)
	@$(BIN)/draftlight bench decode --out $(OUT)/bench-decode

bench-prefill: setup ## Measure sparse reading of 8,000 tokens against mlx-lm (hours; keep the machine quiet)
	@$(BIN)/draftlight bench prefill --out $(OUT)/bench-prefill

bench-quality: setup ## Measure what sparse reading costs in answers (hours; can be stopped and goes on)
	@$(BIN)/draftlight bench quality --out $(OUT)/bench-quality

tour: setup ## Record the README's moving picture (needs ImageMagick; OUT=dir)
	@$(BIN)/python -m app.bench.tour --out $(OUT)/tour.gif

wheel-check: setup ## Install the wheel into an empty environment and smoke it
	@$(BUNDLE) bundle.wheel_check

app: setup ## On a Mac: build, sign and smoke Draftlight.app and its dmg
	@$(BUNDLE) bundle.build

app-check: setup ## Assemble the app's tree with the real macOS wheels and verify it, here
	@$(BUNDLE) bundle.check

app-linux: setup ## Build the packager's Linux output and smoke it on a virtual display
	@$(BUNDLE) bundle.linux

fresh: ## Set up, run and test Draftlight on minimal Debian 12 and 13 (needs root and debootstrap)
	@packaging/fresh/run

lock: ## Resolve the dependencies again (needs uv)
	@uv pip compile --universal --generate-hashes --no-header --extra dev --extra starter --upgrade \
	  pyproject.toml -o requirements.lock
	@uv pip compile --universal --generate-hashes --no-header --python-version 3.11 --upgrade \
	  packaging/packager.in -o packaging/packager.lock
	@for name in clients aider; do uv pip compile --universal --generate-hashes --no-header --upgrade \
	  --python-version 3.11 tests/clients/$$name.in -o tests/clients/$$name.lock; done

clean: ## Remove the environment and everything made here
	@rm -rf $(VENV) $(OUT) build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis
