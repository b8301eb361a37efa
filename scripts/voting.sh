#!/bin/sh
# Runs load-tests/voting.py against a gateway of its own; arguments go to it.
set -eu

data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT
export STINT_CONFIG=load-tests/voting.toml STINT_LISTEN=127.0.0.1:18082 STINT_LEDGER="$data/ledger.db" STINT_LOG=warn
scripts/serve.sh "${STINT_BINARY:-target/release/stint}" \
    .venv/bin/python load-tests/voting.py --base-url "http://$STINT_LISTEN" "$@"
