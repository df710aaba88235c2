# What a developer does daily. `make` alone lists it.

# First line of every recipe: one sentence and an end, where something to build with is missing.
CHECK = @$(SHELL) scripts/check-toolchain
# Where something else is missing: a line, and in CI an end.
MISSING = scripts/missing

CARGO_DENY_VERSION = 0.20.2
TYPOS_VERSION = 1.52.0

.DEFAULT_GOAL := help
.PHONY: help run check test python test-python test-python-long python-programs \
    cpp test-cpp test-cpp-quick cpp-connections \
    fuzz-cpp typescript test-typescript test-browser test-console test-new first-game laws simulate \
    kills rollbacks cuts lint tools spelling \
    package bench bench-record bench-peers bench-python bench-typescript counts fuzz conformance fmt clean

help: ## say what each command does (this text)
	@while IFS= read -r line; do case "$$line" in \
	    [a-z]*": "*"## "*) printf '  make %-12s %s\n' "$${line%%:*}" "$${line#*## }" ;; \
	esac; done <Makefile

run: ## start the showcase
	$(CHECK)
	cargo run --release -p playfield-showcase

check: ## check the format, clippy and the unit tests of the crates that differ from main
	$(CHECK) fmt clippy
	scripts/check

# How many suites run side by side. Most tests wait for sockets and processes, not for a core.
TOGETHER ?= 2

# Integration tests begin with every letter: two halves, which take the same time.
test: export RUST_TEST_THREADS ?= 6
# What the first step builds, so that no suite builds it with the features of one package.
test: export TEST_BUILT = $(abspath $(or $(CARGO_TARGET_DIR),target)/debug)
test: ## run all tests, those in the documentation too (TOGETHER=2)
	$(CHECK)
	@scripts/together 2 "cargo test --workspace --no-run" \
	    'scripts/nats-server >/dev/null || $(MISSING) "nats-server is missing, so the tests of clusters are left out."'
	@scripts/together $(TOGETHER) \
	    "cargo test --no-fail-fast --workspace --test '[m-z]*'" \
	    "cargo test --no-fail-fast --workspace --test '[a-l]*'" \
	    "$(MAKE) test-python" \
	    "cargo test --no-fail-fast --workspace --lib --bins" \
	    "$(MAKE) test-cpp-quick" \
	    "$(MAKE) test-typescript" \
	    "cargo test --no-fail-fast --workspace --doc"

# A Python of version 3.10 or later, with the module venv.
PYTHON ?= python3

python: ## build the Python package into a virtual environment, target/python
	$(CHECK)
	scripts/python $(PYTHON)

test-python: ## run the tests of the Python package
	$(CHECK)
	@if $(PYTHON) -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then \
	scripts/python $(PYTHON) test && scripts/python-tests; \
	else $(MISSING) "Python 3.10 with venv is missing, so the tests of the Python package are left out."; fi

# How many messages of each kind are checked to leave nothing behind.
LONG_MESSAGES ?= 1000000

test-python-long: ## check that a million messages of each kind leave no memory behind in Python
	$(CHECK)
	scripts/python $(PYTHON)
	cd sdk/python && PLAYFIELD_LONG_MESSAGES=$(LONG_MESSAGES) ../../target/python/bin/python -m pytest -q tests/test_long.py

python-programs: ## run programs written for `websockets` with the Python package in its place
	$(CHECK)
	scripts/python $(PYTHON)
	target/python/bin/python sdk/python/compat/programs.py

typescript: ## build the TypeScript package, sdk/typescript, and print the sizes of the client
	scripts/typescript build

test-typescript: ## run the tests of the TypeScript package, and of the client that nodes serve
	$(CHECK)
	@if command -v npm >/dev/null 2>&1; then \
	cargo build --package playfield-web && scripts/typescript test && scripts/console check; \
	else $(MISSING) "Node.js with npm is missing, so the tests of the TypeScript package are left out."; fi

test-browser: ## run the tests and the conformance scenarios of the TypeScript package in Chromium
	$(CHECK)
	scripts/typescript test-browser

test-console: ## drive the console's page in Chromium, and make its screenshots
	$(CHECK)
	scripts/console test

test-new: ## make a game of each template, and run its tests; with Node.js, open the page in React, too
	$(CHECK)
	scripts/test-new

# How often the game's handler is saved at the end.
SAVES ?= 3

first-game: ## follow the README from an empty folder to two tabs in Chromium, timed (SAVES=3)
	$(CHECK)
	scripts/first-game $(SAVES)

# Without Node.js it is an error here, as in CI: the packages have what it bundles.
package: ## make the packages of all crates and of the TypeScript client, and compile the crates from them
	$(CHECK)
	CI=1 cargo build --package playfield-web
	cargo publish --workspace --dry-run
	scripts/typescript build
	cd sdk/typescript && npm pack --dry-run

cpp: ## build the library and the examples for C and C++ into target/cpp/release
	$(CHECK)
	cd sdk/cpp && cmake --preset release && cmake --build --preset release

# asan: address and undefined behavior; tsan: threads.
SANITIZER ?= asan

test-cpp: ## run the tests of the C++ client under sanitizers (SANITIZER=asan or tsan)
	$(CHECK)
	cd sdk/cpp && cmake --preset $(SANITIZER) && cmake --build --preset $(SANITIZER) && \
	    ctest --preset $(SANITIZER) --label-exclude long

# What CMake needs to build for C++20: a compiler that has coroutines.
HAS_CPP = cmake --version >/dev/null 2>&1 && \
    echo '\#include <coroutine>' | $${CXX:-c++} -std=c++20 -fsyntax-only -x c++ - 2>/dev/null

test-cpp-quick: ## run the tests of the C++ client that take seconds
	$(CHECK)
	@if $(HAS_CPP); then cd sdk/cpp && cmake --preset plain >/dev/null && \
	cmake --build --preset plain && ctest --preset plain; \
	else $(MISSING) "CMake or a compiler for C++20 is missing, so the tests of the C++ client are left out."; fi

# Without a sanitizer: those keep memory that was freed.
cpp-connections: ## open and close 1,000 connections of the C++ client 100 times
	$(CHECK)
	cd sdk/cpp && cmake --preset long && cmake --build --preset long --target test_connections && \
	    ctest --preset long --tests-regex connections_long

fuzz-cpp: ## make arbitrary calls of the C ABI for a minute
	$(CHECK)
	cd sdk/cpp && cmake --preset asan && cmake --build --preset asan --target test_arbitrary && \
	    ctest --preset asan --tests-regex arbitrary_long

# How many cases each law is tested with.
LAW_CASES ?= 1200

laws: ## test the laws of state for millions of steps, optimized (LAW_CASES=1200)
	$(CHECK)
	PLAYFIELD_LAW_CASES=$(LAW_CASES) cargo test --release -p playfield-state -p playfield-room -p playfield-server laws

# How many clusters are simulated, each with 200 faults.
SEEDS ?= 10000

simulate: ## simulate 10,000 clusters with faults, and check the laws after every step (SEEDS=10000)
	$(CHECK)
	PLAYFIELD_SEEDS=$(SEEDS) cargo test --release -p playfield-cluster --test laws -- --nocapture

# How often a process that saves is killed.
KILLS ?= 1000

kills: ## kill processes that save and journal 1,000 times, and check what is there (KILLS=1000)
	$(CHECK)
	PLAYFIELD_KILLS=$(KILLS) cargo test -p playfield-store kill -- --nocapture
	PLAYFIELD_KILLS=$(KILLS) cargo test -p playfield --test journal kill -- --nocapture

# How many bots play during the rollbacks.
BOTS ?= 50

rollbacks: ## deploy and roll back twice under 50 bots, and check every save (BOTS=50)
	$(CHECK)
	PLAYFIELD_ROLLBACK_BOTS=$(BOTS) cargo test -p playfield --test rollback -- --nocapture

# How often connections between clients and a node are cut.
CUTS ?= 10000

cuts: ## cut 10,000 connections of each client, and check that nothing is lost (CUTS=10000)
	$(CHECK)
	PLAYFIELD_CUTS=$(CUTS) PLAYFIELD_SCENARIOS=play cargo test -p playfield-conformance -- --nocapture
	scripts/python $(PYTHON) test && PLAYFIELD_CUTS=$(CUTS) scripts/python-tests -k random_plays
	cd sdk/cpp && cmake --preset $(SANITIZER) && cmake --build --preset $(SANITIZER) && \
	    PLAYFIELD_CUTS=$(CUTS) ctest --preset $(SANITIZER) --tests-regex conformance

lint: ## check format, clippy, documentation, dependencies and spelling; a warning is an error
	$(CHECK) fmt clippy
	cargo fmt --all --check
	cargo clippy --workspace --all-features --all-targets -- -D warnings
	cargo clippy --package playfield-client --no-default-features -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --all-features --no-deps
	@if cargo deny --version >/dev/null 2>&1; then cargo deny --log-level error check bans licenses sources; \
	else echo "playfield: cargo-deny is missing, so dependencies are not checked; 'make tools' installs it."; fi
	@if command -v typos >/dev/null 2>&1; then typos; \
	else $(MISSING) "typos is missing, so spelling is not checked; 'make spelling' installs it."; fi

# Without optimization: they run for a second.
tools: spelling ## install what `make lint` needs and is missing, some minutes
	$(CHECK)
	cargo deny --version >/dev/null 2>&1 || cargo install --debug --locked cargo-deny@$(CARGO_DENY_VERSION)

spelling: ## install what `make lint` checks spelling with
	typos --version >/dev/null 2>&1 || pip install --quiet typos==$(TYPOS_VERSION) || \
	    cargo install --debug --locked typos-cli@$(TYPOS_VERSION)

bench: ## run the benchmarks, and write target/bench.html and target/bench.jsonl
	$(CHECK)
	cargo run --release -p playfield-bench -- bench

# The suites that are recorded; all of docs/benchmarks/suites.json, if none is named.
SUITES ?=

bench-record: ## run benchmarks, write docs/benchmarks/*.json and the tables of documents (SUITES='sync worlds')
	$(CHECK)
	cargo build --release -p playfield-bench
	target/release/playfield-bench record $(SUITES)

counts: ## count the instructions of a message in a shard, with valgrind
	$(CHECK)
	scripts/counts

# The peers that are measured, all if none is named, and options of `playfield-bench bench peers`.
PEERS ?=
PEERS_BENCH ?=

bench-peers: ## measure other projects beside ours, in the same run (PEERS='colyseus mpacket')
	$(CHECK)
	PEERS='$(PEERS)' scripts/bench-peers $(PEERS_BENCH)

# Options of `make bench-python`; a wrong one is refused with a list.
PYTHON_BENCH ?=

bench-python: ## measure the Python package's WebSocket beside others' (PYTHON_BENCH='--row sync-rr --rounds 5')
	$(CHECK)
	scripts/python $(PYTHON) bench
	@target/python/bin/python sdk/python/bench/run.py $(PYTHON_BENCH)

bench-typescript: ## measure decoding in V8 beside Colyseus' client, and React's hooks in Chromium
	$(CHECK)
	cargo run --quiet --release --package playfield-bench --example patches >target/patches.json
	scripts/typescript bench

# How long each target is fed, in seconds.
FUZZ_SECONDS ?= 60

fuzz: ## feed both ends arbitrary input, each target for a minute (FUZZ_SECONDS=60)
	$(CHECK)
	scripts/fuzz $(FUZZ_SECONDS)

conformance: ## run the Autobahn suite against both ends of the WebSocket, and a node (CASES='6.*,12.1.1' STRICT=1)
	$(CHECK)
	conformance/autobahn/run $(if $(CASES),--cases '$(CASES)') $(if $(filter 1,$(STRICT)),--strict)

fmt: ## format all code
	$(CHECK) fmt
	cargo fmt --all

clean: ## remove what was built
	$(CHECK)
	cargo clean
