#!/bin/sh
# Runs a command beside a gateway that it starts and stops: serve.sh BINARY COMMAND…
# The gateway is configured by the environment; STINT_LISTEN must be set.
set -eu

binary=$1
shift
"$binary" serve &
server=$!
trap 'kill "$server" 2>/dev/null || true' EXIT

waited=0
# Its own words are no part of what the command writes.
until "$binary" health >/dev/null 2>&1; do
    kill -0 "$server" 2>/dev/null || { echo "stint: the server ended before it was ready" >&2; exit 1; }
    [ "$waited" -lt 120 ] || { echo "stint: the server was not ready after a minute" >&2; exit 1; }
    waited=$((waited + 1))
    sleep 0.5
done
"$@"

# A clean end is part of what is tried.
trap - EXIT
kill -TERM "$server"
wait "$server"
