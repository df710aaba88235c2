# What a developer does daily. `make` alone lists it.

# First line of every recipe: one sentence and an end, where something to build with is missing.
CHECK = @$(SHELL) scripts/check-toolchain

.DEFAULT_GOAL := help
.PHONY: help run test lint bench bench-peers fuzz conformance fmt clean

help: ## say what each command does (this text)
	@while IFS= read -r line; do case "$$line" in \
	    [a-z]*": "*"## "*) printf '  make %-11s %s\n' "$${line%%:*}" "$${line#*## }" ;; \
	esac; done <Makefile

run: ## start the showcase
	$(CHECK)
	cargo run --release -p playfield-showcase

test: ## run all tests, those in the documentation too
	$(CHECK)
	cargo test --workspace
	@if command -v node >/dev/null 2>&1; then node --test crates/playfield/web/playfield.test.mjs; \
	else echo "playfield: node is missing, so the test of the browser's client (crates/playfield/web) is left out."; fi

lint: ## check format, clippy and documentation; a warning is an error
	$(CHECK) fmt clippy
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

bench: ## run the benchmarks
	$(CHECK)
	cargo run --release -p playfield-bench -- bench

bench-peers: ## measure the codecs beside others', in the same run
	$(CHECK)
	scripts/bench-peers

# How long each target is fed, in seconds.
FUZZ_SECONDS ?= 60

fuzz: ## feed both ends arbitrary input, each target for a minute (FUZZ_SECONDS=60)
	$(CHECK)
	scripts/fuzz $(FUZZ_SECONDS)

conformance: ## hold both ends of the WebSocket against the Autobahn test suite (CASES='6.*,12.1.1' STRICT=1)
	$(CHECK)
	conformance/autobahn/run $(if $(CASES),--cases '$(CASES)') $(if $(filter 1,$(STRICT)),--strict)

fmt: ## format all code
	$(CHECK) fmt
	cargo fmt --all

clean: ## remove what was built
	$(CHECK)
	cargo clean
