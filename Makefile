# Two commands for a newcomer: `make demo` and `make test`. The environment is .venv in the checkout.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup java redis browser kafka demo package ready test test-slow bench bench-event-stream bench-spark bench-stream bench-stream-rules bench-approx-stream bench-stores bench-serving bench-kafka lint docs clean

setup: $(STAMP)

java: setup  # Spark needs Java 17 or newer: found, installed where that can be done, or asked for
	@PYTHON=$(BIN)/python sh tools/java.sh

redis:  # the tests of stores start a Redis server of their own
	@sh tools/redis.sh

browser:  # the tests of reports look at them
	@sh tools/chromium.sh

kafka: java  # a broker and Spark's connector, for tests, examples and benchmarks
	@$(BIN)/python -m tools.kafka_jars >/dev/null

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "windrow needs Python 3.11 or newer: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: java
	$(BIN)/windrow demo

package: setup  # wheel and sdist, in dist/
	rm -rf dist
	$(BIN)/python -m build --no-isolation

ready: lint java redis browser kafka

test:
	@$(MAKE) --no-print-directory --jobs=3 ready  # installing waits for the network
	$(BIN)/python -m pytest -q -n 2

test-slow: java redis browser kafka
	WINDROW_TESTS=slow $(BIN)/python -m pytest -q -n 2

lint: setup
	$(BIN)/ruff format --check -q .
	$(BIN)/ruff check -q .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m tools.generate_docs --check

BENCHES := values columns numeric quantiles sharing filters rules approx

bench: $(BENCHES:%=bench-%) bench-event-stream

$(BENCHES:%=bench-%): bench-%: setup
	$(BIN)/python -m benchmarks.$*

bench-event-stream: setup
	$(BIN)/python -m benchmarks.event_stream

bench-spark: java
	$(BIN)/python -m benchmarks.spark

bench-stream: java
	$(BIN)/python -m benchmarks.streams

bench-stream-rules: java
	$(BIN)/python -m benchmarks.stream_rules

bench-approx-stream: java
	$(BIN)/python -m benchmarks.approx_stream

bench-serving: setup redis
	$(BIN)/python -m benchmarks.serving

bench-kafka: setup kafka redis
	$(BIN)/python -m benchmarks.end_to_end

bench-stores: setup redis
	$(BIN)/python -m benchmarks.stores

docs: setup  # the pages that follow from the code, then the site: build/site/index.html
	$(BIN)/python -m tools.generate_docs
	$(BIN)/python -m tools.site

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
