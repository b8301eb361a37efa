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
CARGO_PROFILE_RELEASE_LTO=off build "-Cprofile-generate=$counts" "$folder/counting"
ulimit -n 65536 2>/dev/null || ulimit -n "$(ulimit -Hn)"
python3 load-tests/load scenarios --binary "$folder/counting/$host/release/stint" --databases memory full --seconds 3 \
    --only plain stream-53 prompt-100k thoughts tools auto messages matrix --out "$folder/results"
"$merge" merge --output "$folder/stint.profdata" "$counts"/*.profraw
build "-Cprofile-use=$folder/stint.profdata" "$folder/optimised"
cp "$folder/optimised/$host/release/stint" "$folder/stint"
echo "pgo: $folder/stint"
