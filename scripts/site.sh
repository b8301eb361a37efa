#!/bin/sh
# Makes the documentation into a site, in target/site, and looks whether its links hold. mdBook is built once, into .cache/mdbook.
set -eu
cd "$(dirname "$0")/.."

version=0.5.4
mdbook=$PWD/.cache/mdbook/bin/mdbook
if ! "$mdbook" --version 2>/dev/null | grep -q "$version"; then
    # Unoptimised: it builds in half the time, and the site still takes seconds.
    CARGO_PROFILE_DEV_DEBUG=false cargo install mdbook --debug --version "$version" --locked --no-default-features --features search --root .cache/mdbook
fi
# Its source is a copy of the pages and of all that they link to, each at its place, so that links hold as they stand.
book=target/book
rm -rf target/site "$book"
mkdir -p "$book/src"
cp book.toml "$book/"
pages="README.md SECURITY.md CONTRIBUTING.md CHANGELOG.md models/README.md load-tests/results/*.md crates/decide/src/estimate/lengths.md"
# shellcheck disable=SC2086 # the pattern is meant
for page in $pages $(find docs -name '*.md'); do
    mkdir -p "$book/src/$(dirname "$page")"
    cp "$page" "$book/src/$page"
    for link in $(grep -oE '\]\([^)# ]+' "$page" | sed 's/^](//' | grep -vE '://|\.md$|^docs/'); do
        beside=$(dirname "$page")/$link
        [ -e "$beside" ] || continue
        mkdir -p "$book/src/$(dirname "$beside")"
        cp -R "$beside" "$book/src/$beside"
    done
done
cp docs/llms.txt "$book/src/"
{
    sed 's|](\([a-z]\)|](docs/\1|; s|](README.md)|](docs/README.md)|; s|](\.\./|](|' docs/SUMMARY.md
    for page in docs/decisions/*.md load-tests/results/*.md crates/decide/src/estimate/lengths.md; do
        [ "$page" = docs/decisions/README.md ] || echo "- [$(sed -n 's/^# //p;/^# /q' "$page")]($page)"
    done
} > "$book/src/SUMMARY.md"
rm "$book/src/docs/SUMMARY.md"
"$mdbook" build "$book" --dest-dir "$PWD/target/site"
# A folder's page is its index there.
find target/site -name '*.html' -exec sed -i 's/README\.html/index.html/g' {} +
python3 scripts/site-links.py target/site
echo "stint: the site is in target/site; open target/site/index.html"
