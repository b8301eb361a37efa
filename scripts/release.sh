#!/bin/sh
# Makes a release of this working tree: scripts/release.sh 1.2.3
#
# It dates the changelog's Unreleased section, sets the version, commits, builds, packs, and tags. Nothing is pushed: look at
# target/release-1.2.3 first, then `git push --follow-tags`.
set -eu
cd "$(dirname "$0")/.."

fail() {
    echo "release: $*" >&2
    exit 1
}

version=${1:-}
printf '%s' "$version" | grep -Eq '^[0-9]+\.[0-9]+\.[0-9]+$' || fail "name a version, like: make release ARGS=1.2.3"
[ -z "$(git status --porcelain)" ] || fail "there are changes that are not committed"
! git rev-parse --quiet --verify "refs/tags/v$version" >/dev/null || fail "v$version is there already"

# What stands under Unreleased, without the blank lines around it.
notes=$(awk '/^## /{inside = ($2 == "Unreleased"); next} inside' CHANGELOG.md | sed '/./,$!d')
[ -n "$notes" ] || fail "nothing stands under Unreleased in CHANGELOG.md"

today=$(date -u +%Y-%m-%d)
sed -i "s/^## Unreleased\$/## Unreleased\\n\\n## $version, $today/" CHANGELOG.md
sed -i "0,/^version = \".*\"/s//version = \"$version\"/" Cargo.toml
cargo update --quiet --offline --workspace
git commit --quiet --all --message "Version $version"

make pgo sbom
binary=target/pgo/stint
[ "$($binary --version)" = "stint $version" ] || fail "the binary says that it is $($binary --version)"

name=stint-$version-$(uname -m)-linux
folder=target/release-$version
rm -rf "$folder"
mkdir -p "$folder/$name/completions" "$folder/$name/man"
cp -R "$binary" LICENSE README.md CHANGELOG.md SECURITY.md config deploy "$folder/$name/"
for shell in bash zsh fish; do
    $binary completions "$shell" >"$folder/$name/completions/stint.$shell"
done
$binary man --into "$folder/$name/man"
# The same content makes the same archive.
stamp=$(git log -1 --format=%ct)
tar --create --gzip --sort=name --mtime="@$stamp" --owner=0 --group=0 --numeric-owner \
    --directory "$folder" --file "$folder/$name.tar.gz" "$name"
rm -r "${folder:?}/$name"
cp target/release/stint.cdx.json "$folder/$name.cdx.json"
printf '%s\n' "$notes" >"$folder/CHANGES.md"
(cd "$folder" && sha256sum "$name.tar.gz" "$name.cdx.json" CHANGES.md >SHA256SUMS)

git tag --annotate "v$version" --message "Version $version"
echo "release: $folder has"
ls -l "$folder"
echo "release: look at it, then git push --follow-tags"
