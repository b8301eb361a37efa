#!/bin/sh
# Installs Codex and Claude Code, at pinned versions and by their hashes, into .cache/clients (some 800 MB), and runs both
# through a gateway: over a model that is a script, and over providers that bind thoughts to what stood before them.
set -eu

clients=.cache/clients
if ! cmp -s tests/clients/package-lock.json "$clients/installed.json"; then
    echo "stint: installing $clients"
    mkdir -p "$clients"
    cp tests/clients/package.json tests/clients/package-lock.json "$clients"
    # Both are programs of one file each: nothing of theirs has to be run to install them.
    (PATH="$PWD/.venv/bin:$PATH" && cd "$clients" && npm ci --silent --no-fund --no-audit --ignore-scripts)
    cp tests/clients/package-lock.json "$clients/installed.json"
fi
.venv/bin/python tests/clients/run.py "${STINT_BINARY:-target/release/stint}" "$clients/node_modules"
.venv/bin/python tests/clients/binding.py "${STINT_BINARY:-target/release/stint}" "$clients/node_modules"
