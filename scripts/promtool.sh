#!/bin/sh
# Puts Prometheus and its promtool into the folder that is named, for the tests of /metrics, of the dashboard and of the alerts. The
# package is only unpacked, not installed: that would start a server.
set -eu

folder=$1
[ ! -x "$folder/promtool" ] || [ ! -x "$folder/prometheus" ] || exit 0
if [ -x /usr/bin/promtool ] && [ -x /usr/bin/prometheus ]; then
    mkdir -p "$folder"
    ln -sf /usr/bin/promtool "$folder/promtool"
    ln -sf /usr/bin/prometheus "$folder/prometheus"
    exit 0
fi
echo "stint: fetching Prometheus and promtool"
unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT
cd "$unpacked"
if ! apt-get download -q prometheus 2>/dev/null; then
    if [ "$(id -u)" -eq 0 ]; then apt-get update -q; else sudo apt-get update -q; fi
    apt-get download -q prometheus
fi
dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin/promtool ./usr/bin/prometheus
cd - >/dev/null
mkdir -p "$folder"
mv "$unpacked/usr/bin/promtool" "$unpacked/usr/bin/prometheus" "$folder/"
