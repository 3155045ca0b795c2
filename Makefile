# Two commands are enough: `make demo` shows the main job on a scratch brain, `make test` passes the tests.
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
unexport PYTHONDONTWRITEBYTECODE  # a thousand processes of the tests would compile the program anew

.PHONY: install lock clients demo quick test lint fix docs bench clean

install: $(VENV)/.installed

lock:  ## requirements.lock anew, of releases that are a week old
	$(PYTHON) -m venv $(VENV)/lock
	$(VENV)/lock/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(VENV)/lock/bin/uv pip compile --quiet --upgrade --exclude-newer '7 days' --universal --python-version 3.11 \
		--all-extras --generate-hashes --no-emit-index-url --no-header --output-file requirements.lock pyproject.toml

clients: $(VENV)/.installed  ## programs of others that tests/live/test_openai_api.py speaks with, and axe-core, by which test_window.py judges pages
	# llm wants another openai than litellm, so that it gets an environment of its own
	$(PYTHON) -m venv $(VENV)/clients/llm
	$(VENV)/clients/llm/bin/python -m pip install --quiet --disable-pip-version-check llm
	! command -v npm || npm install --no-audit --no-fund --prefix $(VENV)/clients openai @modelcontextprotocol/inspector axe-core@4.14.1

demo: $(VENV)/.installed  ## the real daemon on a scratch brain, every line read from disk
	@$(BIN)/python examples/demo.py

quick: lint  ## lint and unit tests: before each commit
	$(BIN)/python -m pytest tests/unit -n auto --dist loadfile -m "not slow"

test: $(VENV)/.installed  ## the whole test suite: crashes, live daemons, editors
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

fix: $(VENV)/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.installed  ## the pages that are generated from the code
	$(BIN)/python docs/generate.py

bench: $(VENV)/.installed
	@ls benchmarks/*.py

$(VENV)/.installed: pyproject.toml requirements.lock
	$(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes --requirement requirements.lock
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
