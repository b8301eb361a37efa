#!/bin/sh
# Puts Prometheus's promtool into the folder that is named, for the tests of /metrics. The package is only
# unpacked, not installed: that would start a Prometheus server.
set -eu

folder=$1
[ ! -x "$folder/promtool" ] || exit 0
if [ -x /usr/bin/promtool ]; then
    mkdir -p "$folder"
    ln -sf /usr/bin/promtool "$folder/promtool"
    exit 0
fi
echo "stint: fetching promtool"
unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT
cd "$unpacked"
if ! apt-get download -q prometheus 2>/dev/null; then
    if [ "$(id -u)" -eq 0 ]; then apt-get update -q; else sudo apt-get update -q; fi
    apt-get download -q prometheus
fi
dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin/promtool
cd - >/dev/null
mkdir -p "$folder"
mv "$unpacked/usr/bin/promtool" "$folder/promtool"
