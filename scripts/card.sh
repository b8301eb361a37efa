#!/bin/sh
# Runs models/card.py against a gateway of its own; arguments go to it.
set -eu

data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT
export STINT_CONFIG=models/card.toml STINT_LISTEN=127.0.0.1:18081 STINT_LEDGER="$data/ledger.db" STINT_LOG=warn
scripts/serve.sh target/release/stint \
    .venv/bin/python models/card.py --base-url "http://$STINT_LISTEN" "$@"
