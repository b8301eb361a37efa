#!/bin/sh
# Runs load-tests/engine, which builds and makes what it needs; arguments go to it.
set -eu

exec .venv/bin/python load-tests/engine "$@"
