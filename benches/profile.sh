#!/usr/bin/env bash
# Prints the source lines in which a workload spends most of its time. `make profile` calls it.
#
#     benches/profile.sh fat320-hpcc            # a workload of this folder
#     benches/profile.sh mine.toml --threads 2  # a scenario, with options of the example `hops`
#
# The clock is sampled, which works on machines that hide their hardware counters. A line that waits for memory is often the one
# behind the load.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
name=${1:?"expected a workload of benches/ or a scenario"}
shift
scenario=$name
if [ ! -f "$scenario" ]; then
    scenario=$here/$name.toml
fi
if [ ! -f "$scenario" ]; then
    known=$(cd "$here" && ls -- *.toml | sed 's/\.toml$//' | tr '\n' ' ')
    echo "profile: no scenario and no workload named $name; known: $known" >&2
    exit 2
fi
if ! command -v perf >/dev/null; then
    echo "profile: perf is missing; such as: apt install linux-perf" >&2
    exit 1
fi
cargo build --release --quiet --manifest-path "$here/../Cargo.toml" --package weftline-sim --example hops
samples=$(mktemp)
trap 'rm -f "$samples"' EXIT
perf record --quiet --event cpu-clock --freq 2000 --output "$samples" "$here/../target/release/examples/hops" "$scenario" "$@" >&2
table() { # title, sort key
    echo "$1"
    perf report --input "$samples" --no-children --sort "$2" --call-graph none 2>/dev/null |
        awk '!/^#/ && NF && lines++ < 10 { sub(/[ -]*$/, ""); print }'
}
table "the ten functions that take most of the time" symbol
table "the ten lines" srcline
