#!/bin/sh
# Builds an earlier version, and runs load-tests/upgrade with both: upgrade.sh [COMMIT] [OPTIONS…]. Without a commit it is the last tag;
# before the first release, the commit before the newest migration of PostgreSQL, which is the nearest with another schema.
# STINT_BINARY is the new version; STINT_OLD_BINARY spares building the old one; STINT_PROFILE=dev builds it without optimising.
set -eu

commit=
case "${1:-}" in
    '' | -*) ;;
    *) commit=$1; shift ;;
esac
if [ -z "$commit" ]; then
    commit=$(git describe --tags --abbrev=0 2>/dev/null) ||
        commit=$(git log --diff-filter=A -1 --format=%H -- migrations/postgres)^
fi

old=${STINT_OLD_BINARY:-}
if [ -z "$old" ]; then
    profile=${STINT_PROFILE:-release}
    commit=$(git rev-parse --short=12 "$commit^{commit}")
    tree=target/upgrade/tree
    git worktree prune
    [ ! -d "$tree" ] || git worktree remove --force "$tree"
    git worktree add --quiet --detach "$tree" "$commit"
    trap 'git worktree remove --force "$tree"' EXIT
    target=$PWD/target/upgrade
    (cd "$tree" && CARGO_TARGET_DIR=$target STINT_COMMIT=$commit cargo build --profile "$profile" --locked)
    old=$target/$([ "$profile" = dev ] && echo debug || echo "$profile")/stint
    echo "the old version is $commit" >&2
fi
.venv/bin/python load-tests/upgrade --old "$old" --new "${STINT_BINARY:-target/release/stint}" "$@"
