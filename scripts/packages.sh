#!/bin/sh
# Installs the Debian packages named as arguments, those only that are missing. Asks nothing, says what it does.
set -eu

missing=
for package in "$@"; do
    case $(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true) in
        *' installed') ;;
        *) missing="$missing $package" ;;
    esac
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null; then
    echo "stint: this is not Debian; going on without looking for:$missing" >&2
    exit 0
fi
as_root=
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "stint: run this as root or install sudo, it needs:$missing" >&2; exit 1; }
    as_root=sudo
fi
echo "stint: installing$missing"
$as_root apt-get update -q
# shellcheck disable=SC2086 # one word is one package
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $missing
