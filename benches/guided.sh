#!/usr/bin/env bash
# Builds the native module by profile: once with counters, which short runs of the standard workloads fill, and once more by what
# they counted. Needs llvm-profdata of the compiler's own version (rustup component add llvm-tools). `make guided` calls it.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$PWD/.venv
tools=$(rustc --print target-libdir)/../bin
profdata=$tools/llvm-profdata
if [ ! -x "$profdata" ]; then
    echo "guided: $(rustc --version) has no llvm-profdata; such as: rustup component add llvm-tools" >&2
    exit 1
fi
counts=$PWD/target/guided/counts
rm -rf "$counts"

build() { # RUSTFLAGS, target folder
    RUSTFLAGS=$1 CARGO_TARGET_DIR=$2 VIRTUAL_ENV=$venv "$venv/bin/maturin" develop --release --quiet
}

build "-Cprofile-generate=$counts" target/guided/counting
runs=$(mktemp -d)
trap 'rm -rf "$runs"' EXIT
count() { # workload, settings
    "$venv/bin/weftline" run "benches/$1.toml" --quiet --out "$runs/$1" "${@:2}"
}
count fat320-hpcc --set workload.0.duration=200us
count fat320-dctcp --set workload.0.duration=200us
count p8 --set workload.0.size=1MB
count w8-0.5 --set workload.0.duration=300us
count imc10-phost --set workload.0.duration=2ms
count imc10-pfabric --set workload.0.duration=2ms
count row11-fifo --set run.until=3s
"$profdata" merge -o "$counts/all.profdata" "$counts"
build "-Cprofile-use=$counts/all.profdata" target/guided/built
touch "$venv/.native"
echo "the native module is built by profile; 'weftline bench' shows what it gives"
