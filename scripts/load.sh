#!/bin/sh
# Runs load-tests/load, which starts what it needs; arguments go to it.
set -eu

ulimit -n 65536 2>/dev/null || ulimit -n "$(ulimit -Hn)"
exec .venv/bin/python load-tests/load "$@"
