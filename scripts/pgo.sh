#!/bin/sh
# Builds the release binary as it runs fastest: target/pgo/stint. A first build counts what runs under the load of load-tests/load; the
# second is optimised by those counts. Two builds and two minutes of load. What it brings: docs/measured.md.
set -eu
cd "$(dirname "$0")/.."

commit=$(git rev-parse --short=12 HEAD 2>/dev/null || true)
host=$(rustc -vV | sed -n 's/^host: //p')
# Counts are read by a tool of the compiler's own LLVM.
llvm=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
scripts/packages.sh "llvm-$llvm" python3 util-linux
merge=$(command -v "llvm-profdata-$llvm" || command -v llvm-profdata) || { echo "pgo: llvm-profdata of LLVM $llvm is missing" >&2; exit 1; }

folder=$PWD/target/pgo
counts=$folder/counts
rm -rf "$counts"
mkdir -p "$counts"

# With a target named, the flags are for what runs in the gateway, and not for what only builds it.
build() {
    STINT_COMMIT=$commit RUSTFLAGS="$1" CARGO_TARGET_DIR="$2" cargo build --release --locked --package stint --target "$host"
}

cargo build --release --locked --package loader
# Both builds have the same settings. Counts are found by the names of functions, and the names depend on the settings, link-time
# optimisation among them.
build "-Cprofile-generate=$counts" "$folder/counting"
ulimit -n 65536 2>/dev/null || ulimit -n "$(ulimit -Hn)"
python3 load-tests/load scenarios --binary "$folder/counting/$host/release/stint" --databases memory full --seconds 3 \
    --only plain stream-53 prompt-100k thoughts tools auto messages matrix --out "$folder/results"
"$merge" merge --output "$folder/stint.profdata" "$counts"/*.profraw
# What runs often stands together: spread over all of the text, it would take ten times the pages.
build "-Cprofile-use=$folder/stint.profdata -Clink-arg=-Wl,-z,keep-text-section-prefix" "$folder/optimised"
counted=$("$merge" show --topn=1000 "$folder/stint.profdata" | grep -o '_ZN5stint[^,]*' || true)
if [ -z "$counted" ] || ! nm "$folder/optimised/$host/release/stint" | grep -qF "$counted"; then
    echo "pgo: nothing that was counted is in the second build" >&2
    exit 1
fi
cp "$folder/optimised/$host/release/stint" "$folder/stint"
echo "pgo: $folder/stint"
