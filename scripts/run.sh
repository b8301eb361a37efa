#!/bin/sh
# Serves: what the arguments say, and without any the embedded model, and beside it a small chat model where that could be fetched.
#
#     CHAT_MODEL=FILE run.sh [ARGUMENT ...]
set -eu

mkdir -p "$(dirname "$CHAT_MODEL")"
stint=target/release/stint
if [ $# -eq 0 ] && [ -z "${STINT_CONFIG:-}" ] && [ "${STINT_CHAT:-yes}" != no ]; then
    [ -f "$CHAT_MODEL" ] || $stint models pull smollm2 --to "$(dirname "$CHAT_MODEL")" >/dev/null 2>"$CHAT_MODEL.log" ||
        echo "stint: no chat model could be fetched, so only arithmetic is answered: $(tail -n 1 "$CHAT_MODEL.log")" >&2
    if [ -f "$CHAT_MODEL" ]; then
        # A model of this size is quicker on all processors than on one.
        [ "${LP_NUM_THREADS:-0}" != 0 ] || export LP_NUM_THREADS="$(nproc)"
        set -- --config config/first-run.toml
    fi
fi
exec $stint serve "$@"
