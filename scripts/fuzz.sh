#!/bin/sh
# Fuzzes every parser in oracle/.
#
#   fuzz.sh [SECONDS]     each as it is for so many seconds (60), and then each of its copies with a planted mistake until that
#                         is found
#   fuzz.sh until RUNS    all in turn, as they are, until they had so many runs together; goes on where it was stopped
#   fuzz.sh count         the runs of each so far
#
# Fails where a parser as it is has a finding, where a mistake is not found, and where it cannot look. What the long run keeps, its
# inputs and its counts, is in the folder that STINT_FUZZ_STATE names.
set -eu
cd "$(dirname "$0")/.."
targets="scanner tags calls heads json requests money config images gguf"
state=${STINT_FUZZ_STATE:-.cache/fuzz}
# Seconds for which a target has its turn; what is stopped in the middle is not counted.
turn=60

missing() {
    echo "fuzz: $1; nothing was looked at" >&2
    exit 2
}

build() {
    cargo +nightly --version >/dev/null 2>&1 || missing "no nightly compiler: rustup toolchain install nightly"
    cargo fuzz --version >/dev/null 2>&1 || missing "no cargo-fuzz: cargo install cargo-fuzz --locked"
    command -v c++ >/dev/null || missing "no C++ compiler, which libFuzzer is built with: apt-get install g++"
    cargo +nightly fuzz build --fuzz-dir fuzz --sanitizer none
    # As they are now, whatever is built meanwhile.
    for target in $targets; do
        cp fuzz/target/*/release/"$target" "$found"
    done
    commit=$(git describe --always --dirty)
}

# A target, its inputs, for how long, where its findings go, and the seed. What it says lies in $found/log.
fuzz() {
    "$found/$1" -max_total_time="$3" -max_len=512 -artifact_prefix="$4/" -seed="$5" -print_final_stats=1 "$2" \
        >"$found/log" 2>&1
}

# One run from the seeds alone, so that each mistake is found anew.
fuzz_anew() {
    rm -rf "$found/corpus"
    cp -r oracle/corpus/"$1" "$found/corpus"
    fuzz "$1" "$found/corpus" "$2" "$found" 1
}

executions() {
    sed -n 's/^stat::number_of_executed_units: *//p' "$found/log"
}

# Says what went wrong, with the end of the log, and gives up.
failed() {
    tail -40 "$found/log" >&2
    echo "fuzz: $1" >&2
    exit 1
}

each() {
    for target in $targets; do
        fuzz_anew "$target" "$1" || failed "$target has a finding"
        echo "$target: $(executions) runs in $1 s, no finding"
        for mistake in oracle/planted/"$target"/*.txt; do
            name=$(basename "$mistake" .txt)
            if STINT_PLANTED=$name fuzz_anew "$target" 60 || ! grep -q "panicked at" "$found/log"; then
                failed "$target $name was planted and not found"
            fi
            echo "  $name: found after $(executions) runs"
        done
    done
}

# The target that had the least time. A line of the counts is a target, its runs in a turn, the turn's seconds, and the commit.
next_target() {
    for target in $targets; do
        awk -v target="$target" '$1 == target { sum += $3 } END { printf "%d %s\n", sum, target }' "$state/counts"
    done | sort -n -s -k 1,1 | sed -n '1s/.* //p'
}

until_all_had() {
    mkdir -p "$state"
    touch "$state/counts"
    while :; do
        had=$(awk '{ sum += $2 } END { printf "%.0f", sum }' "$state/counts")
        [ "$had" -lt "$1" ] || return 0
        target=$(next_target)
        [ -d "$state/$target" ] || cp -r oracle/corpus/"$target" "$state/$target"
        fuzz "$target" "$state/$target" "$turn" "$state" 0 || failed "$target has a finding, in $state"
        echo "$target $(executions) $turn $commit" >>"$state/counts"
    done
}

count() {
    [ -s "$state/counts" ] || missing "there are no counts in $state"
    awk '{ runs[$1] += $2; seconds[$1] += $3; all += $2 }
        END { for (target in runs) printf "%s: %.0f runs in %d s\n", target, runs[target], seconds[target]
              printf "all: %.0f runs\n", all }' "$state/counts" | sort
}

found=$(mktemp -d)
trap 'rm -rf "$found"' EXIT
case ${1:-60} in
until)
    build
    until_all_had "${2:-100000000}"
    count
    ;;
count) count ;;
*)
    build
    each "${1:-60}"
    ;;
esac
