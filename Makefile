# The commands of a developer's day. `make help` lists them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Where the built native module ends up; newer than every source when it is fresh.
NATIVE := $(VENV)/.native
RUST_SOURCES := Cargo.toml Cargo.lock pyproject.toml $(shell find crates benches -name '*.rs' -o -name 'Cargo.toml' -o -name '*.toml' -o -name '*.cdf' 2>/dev/null)

# The experiments of `make validate`: all that compare with published results, except the table that takes a day.
EXPERIMENTS := $(filter-out own/demo own/scale cebinae/table,$(patsubst experiments/%/experiment.toml,%,$(wildcard experiments/*/*/experiment.toml)))
# Packages of an extra of pyproject.toml, one a line.
EXTRA = $(PYTHON) -c 'import sys, tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"][sys.argv[1]], sep="\n")'

.DEFAULT_GOAL := help
.PHONY: help demo wheel release release-test test test-rust test-python lab lab-objects lab-programs trials random clusters loom check instructions bench profile guided fuzz fuzz-long tables measured docs notebooks validate clean

help: ## list these commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

demo: $(NATIVE) ## build, then measure numbers of five papers: a table here, a page in out/demo/report.html
	$(BIN)/weftline demo

test: test-rust test-python ## run every test

test-rust: ## tests of the Rust crates
	cargo test --workspace --quiet

test-python: $(NATIVE) $(VENV)/.dev ## tests of the Python package and the command line
	$(BIN)/python -m pytest -q --disable-warnings -n auto --dist loadfile -m "not alone"
	$(BIN)/python -m pytest -q --disable-warnings -m alone

lab: $(NATIVE) $(VENV)/.dev ## scenarios on real packets of this machine: installs what is missing, then the lab's tests (as root, Linux)
	(command -v ip && command -v tc && command -v ping) > /dev/null || (apt-get update && apt-get install -y iproute2 iputils-ping)
	(command -v clang && command -v bpftool) > /dev/null || (apt-get update && apt-get install -y clang libbpf-dev bpftool)
	$(MAKE) lab-objects
	$(VENV)/bin/weftline lab doctor
	WEFTLINE_LAB=1 $(VENV)/bin/python -m pytest -q python/tests/lab

# eBPF: what a switch that runs Linux loads. Nothing else needs clang.
OBJECTS := $(or $(CARGO_TARGET_DIR),target)/bpf
$(OBJECTS)/%.bpf.o: crates/dataplane/bpf/%.bpf.c $(wildcard crates/dataplane/bpf/*.h crates/pint/c/*.h)
	@mkdir -p $(OBJECTS)
	clang -O2 -g -target bpf -ffreestanding -Wall -Wextra -Werror -I/usr/include/$(shell uname -m)-linux-gnu \
		-Icrates/pint/c -Icrates/dataplane/bpf -c $< -o $@

lab-objects: $(patsubst crates/dataplane/bpf/%.bpf.c,$(OBJECTS)/%.bpf.o,$(wildcard crates/dataplane/bpf/*.bpf.c)) ## tc programs in eBPF (needs clang and libbpf-dev)

lab-programs: lab-objects ## every tc program against the Rust implementation on random packets (as root, Linux; needs bpftool)
	WEFTLINE_LAB=1 cargo test --release --quiet -p weftline-dataplane -- --ignored --nocapture

trials: $(NATIVE) $(VENV)/.dev ## the cases of trials/ at their full length: each once gave a wrong or misleading answer
	WEFTLINE_TRIALS=1 $(BIN)/python -m pytest -q python/tests/trials

random: $(NATIVE) $(VENV)/.dev ## scenarios drawn from the schema (N=1000, SEED=1), checked from outside; failures are kept in trials/random
	$(BIN)/python python/tests/random_scenarios --n $(or $(N),1000) --seed $(or $(SEED),1)

clusters: $(NATIVE) $(VENV)/.dev ## sweeps on a real Ray of several nodes of this machine that die, freeze, come late (5 minutes)
	WEFTLINE_CLUSTERS=1 $(BIN)/python -m pytest -q python/tests/sweeps/test_ray_clusters.py python/tests/test_cluster_page.py

notebooks: $(NATIVE) $(VENV)/.dev ## run the notebooks of examples/ and store what their cells show
	$(BIN)/python python/tests/notebooks.py

loom: ## every order in which threads can hand over work, tried with loom (a build of its own, then seconds)
	RUSTFLAGS='--cfg loom' cargo test --quiet --config profile.dev.opt-level=0 --target-dir target/loom -p weftline-sim --lib -- engine::worker_pool engine::shared_memory

check: $(VENV)/.dev ## format, lints, instructions per packet-hop, what grows with the network
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	cargo check --manifest-path fuzz/Cargo.toml --target-dir target --quiet
	$(BIN)/ruff check python examples benches
	$(BIN)/ruff format --check python examples benches
	$(BIN)/mypy
	$(PYTHON) benches/instructions.py
	$(PYTHON) benches/at_scale.py

instructions: ## instructions per packet-hop against benches/instructions.json (ACCEPT=--accept stores them)
	$(PYTHON) benches/instructions.py $(ACCEPT)

bench: $(NATIVE) ## packet-hops per CPU second on the standard workloads
	$(BIN)/weftline bench

profile: ## the functions and source lines that take most of the time of a workload (WORKLOAD=k32; needs perf)
	benches/profile.sh $(or $(WORKLOAD),fat320-hpcc)

guided: $(NATIVE) ## build the native module again with profile-guided optimisation, for the last 3 to 6 % of speed (two builds)
	benches/guided.sh

fuzz: ## fuzz every parser for a minute each (FUZZ_SECONDS)
	fuzz/run.sh

fuzz-long: ## the collector's parsers on 100 million packets and 10 million captures, in at most 3 hours; continues where it was stopped
	FUZZ_INPUTS=100000000 fuzz/run.sh 5400 packets
	FUZZ_INPUTS=10000000 fuzz/run.sh 5400 captures

tables: $(NATIVE) ## write the tables of parameters of the documentation
	$(BIN)/python docs/reference.py --write

measured: $(NATIVE) $(VENV)/.base ## measure the numbers of README and docs again, on an idle machine (ONLY="demo which": only those)
	$(BIN)/python docs/measured.py $(ONLY)

docs: $(NATIVE) $(VENV)/.docs ## build the documentation into site/
	$(BIN)/mkdocs build --strict

validate: $(NATIVE) $(VENV)/.dev ## the long comparisons with published results
	cargo test --release -p weftline-sim --test runs -- --ignored --nocapture distributions::
	cargo test --release -p weftline-sim --test runs -- --ignored --nocapture cebinae_fifo:: balancing::
	cargo test --release -p weftline-sim --test runs -- --ignored --nocapture phost:: pfabric:: fastpass::
	cargo test --release -p weftline-pint -- --ignored --nocapture
	PROPTEST_CASES=10000 cargo test --release -p weftline-sim --test runs regions::
	WEFTLINE_WALKS=1 $(BIN)/python -m pytest -q python/tests/test_walks.py
	for experiment in $(EXPERIMENTS); do $(BIN)/weftline reproduce $$experiment || exit 1; done

wheel: $(VENV)/.base ## one wheel in dist/ for Python 3.11 or later on any Linux since 2014 (zig links it)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'maturin[zig]>=1.16,<2'
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/maturin build --release --zig --compatibility manylinux2014 --out dist

TARGETS ?= x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu
release: $(VENV)/.base ## wheels (TARGETS), source distribution, checksums and bill of materials in dist/
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'maturin[zig]>=1.16,<2'
	rm -rf dist
	PATH="$(abspath $(BIN)):$$PATH" sh -e release/wheels.sh $(TARGETS)
	$(BIN)/python release/bill_of_materials.py dist
	cd dist && sha256sum * > SHA256SUMS

release-test: ## install the wheel of this machine into an empty environment and run the demo
	$(PYTHON) release/try_wheel.py dist

clean: ## remove everything that was built
	rm -rf target $(VENV) site out dist

$(VENV)/.base: pyproject.toml
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "weftline needs Python 3.11 or newer"'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'maturin>=1.16,<2' 'vl-convert-python>=1.9'
	touch $@

$(VENV)/.dev: $(VENV)/.base
	$(EXTRA) dev | $(BIN)/python -m pip install --quiet --disable-pip-version-check -r /dev/stdin
	touch $@

$(VENV)/.docs: $(VENV)/.base
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'mkdocs>=1.6,<2' 'mkdocs-material>=9.5'
	touch $@

$(NATIVE): $(VENV)/.base $(RUST_SOURCES)
	@echo "Building the native engine (a few minutes the first time)..."
	VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --release --quiet
	touch $@
