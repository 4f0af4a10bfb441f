#!/usr/bin/env bash
# Fuzzes every parser, and short runs of what they read, for SECONDS each (default: FUZZ_SECONDS or 60), or only the targets named after that:
#
#     fuzz/run.sh [SECONDS] [TARGET...]
#
# With FUZZ_INPUTS=N each target runs until it has had N inputs in all, counting earlier calls, or until its seconds are over; the next
# call goes on where this one stopped, also where it was interrupted.
#
# Needs a C++ compiler for libFuzzer; nothing else that the project does not need, no nightly toolchain. What the fuzzer
# learns stays in the build folder and is used the next time. Exit status: 0 nothing found, 1 a crash, whose input is
# kept and named.
set -euo pipefail
cd "$(dirname "$0")"

seconds=${1:-${FUZZ_SECONDS:-60}}
[ $# -gt 0 ] && shift
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(scenario run topology cdf trace parquet queries digests sketch packets captures graphs)

# Sanitizers and coverage need switches that stable compilers keep for themselves; the explicit target keeps them away from build
# scripts and macros.
host=$(rustc -vV | sed -n 's/^host: //p')
build=${CARGO_TARGET_DIR:-$PWD/target}/fuzz
export RUSTC_BOOTSTRAP=1
export RUSTFLAGS="-Zsanitizer=address -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1"
cargo build --release --quiet --locked --target "$host" --target-dir "$build"

# Adds the inputs of the run that the log is of to those of its target.
count() {
    local new
    new=$(grep -aoE '^#[0-9]+' "$build/crashes/$target/log" | tail -n 1 | tr -d '#')
    mkdir -p "$build/inputs"
    echo $((had + ${new:-0})) >"$build/inputs/$target"
}
trap 'count; exit 130' INT TERM

found=0
for target in "${targets[@]}"; do
    learnt="$build/corpus/$target"
    crashes="$build/crashes/$target"
    mkdir -p "$learnt" "$crashes"
    options=(-max_total_time="$seconds" -timeout=20 -rss_limit_mb=3000 -max_len=8192
        -artifact_prefix="$crashes/" -print_final_stats=1)
    # A run starts from scenarios.
    format=${target/run/scenario}
    [ -f "dictionaries/$format.dict" ] && options+=(-dict="dictionaries/$format.dict")
    had=$(cat "$build/inputs/$target" 2>/dev/null || echo 0)
    if [ -n "${FUZZ_INPUTS:-}" ]; then
        [ "$had" -lt "$FUZZ_INPUTS" ] || { echo "== $target: had $had inputs"; continue; }
        options+=(-runs=$((FUZZ_INPUTS - had)))
    fi
    echo "== $target: $seconds s, after $had inputs of earlier calls"
    if "$build/$host/release/$target" "${options[@]}" "$learnt" "corpus/$format" >"$crashes/log" 2>&1; then
        grep -aE 'stat::number_of_executed_units|stat::peak_rss_mb|^Done' "$crashes/log" || true
    elif grep -aq 'run interrupted' "$crashes/log"; then
        count
        echo "== $target: interrupted"
        exit 130
    else
        found=1
        # The reason first, then the way there.
        grep -aE -A25 'panicked at|ERROR:|SUMMARY' "$crashes/log" | head -n 60 || tail -n 60 "$crashes/log"
        echo "== $target: CRASH; its input:" "$(ls -t "$crashes" | grep -v '^log$' | head -n 1 | sed "s|^|$crashes/|")"
    fi
    count
done
exit $found
