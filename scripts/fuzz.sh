#!/bin/sh
# Fuzzes every parser in oracle/ as it is, for so many seconds each (60 without an argument), and then each of its copies
# with a planted mistake until that is found. Fails where the parser as it is has a finding, where a mistake is not found,
# and where it cannot look.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}

missing() {
    echo "fuzz: $1; nothing was looked at" >&2
    exit 2
}
cargo +nightly --version >/dev/null 2>&1 || missing "no nightly compiler: rustup toolchain install nightly"
cargo fuzz --version >/dev/null 2>&1 || missing "no cargo-fuzz: cargo install cargo-fuzz --locked"
command -v c++ >/dev/null || missing "no C++ compiler, which libFuzzer is built with: apt-get install g++"

found=$(mktemp -d)
trap 'rm -rf "$found"' EXIT

# One run from the seeds alone, so that each mistake is found anew. What it says lies in $found/log.
fuzz() {
    target=$1
    limit=$2
    rm -rf "$found/corpus" && mkdir "$found/corpus" && cp oracle/corpus/"$target"/* "$found/corpus"
    cargo +nightly fuzz run --fuzz-dir fuzz --sanitizer none "$target" "$found/corpus" -- \
        -max_total_time="$limit" -max_len=512 -seed=1 -print_final_stats=1 -artifact_prefix="$found/" \
        >"$found/log" 2>&1
}
executions() {
    sed -n 's/^stat::number_of_executed_units: *//p' "$found/log"
}

cargo +nightly fuzz build --fuzz-dir fuzz --sanitizer none
for target in scanner tags json; do
    if ! fuzz "$target" "$seconds"; then
        tail -40 "$found/log" >&2
        echo "fuzz: $target has a finding" >&2
        exit 1
    fi
    echo "$target: $(executions) runs in $seconds s, no finding"
    for mistake in oracle/planted/"$target"/*.txt; do
        name=$(basename "$mistake" .txt)
        if STINT_PLANTED=$name fuzz "$target" 60 || ! grep -q "panicked at" "$found/log"; then
            tail -20 "$found/log" >&2
            echo "fuzz: $target $name was planted and not found" >&2
            exit 1
        fi
        echo "  $name: found after $(executions) runs"
    done
done
