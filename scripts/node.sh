#!/bin/sh
# Installs OpenAI's SDK for Node, Vercel's AI SDK and LangChain into tests/node, with the Node of the Python environment that is named.
set -eu

environment=$(cd "$1" && pwd)
cd tests/node
cmp -s package-lock.json node_modules/installed.json && exit 0

echo "stint: installing tests/node"
PATH="$environment/bin:$PATH" npm ci --silent --no-fund --no-audit
cp package-lock.json node_modules/installed.json
