#!/bin/sh
# Runs load-tests/fairness, which starts what it needs; arguments go to it.
set -eu

ulimit -n 65536 2>/dev/null || ulimit -n "$(ulimit -Hn)"
exec .venv/bin/python load-tests/fairness --binary "${STINT_BINARY:-target/release/stint}" "$@"
