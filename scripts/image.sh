#!/bin/sh
# The steps of the Dockerfile, so that they can be run, and are tested, without it.
#
#   image.sh build-packages     what building needs
#   image.sh runtime-packages   what running needs
#   image.sh build              the binary, and what it is made of
#   image.sh install FOLDER     the files of the image, below FOLDER
#   image.sh try FOLDER         starts what is below FOLDER as the Dockerfile would, once
#   image.sh all                each of them, into a folder that is removed again
#
# IMAGE_PROFILE=dev takes what tests built, where it matters whether the steps work and not how fast the binary is.
set -eu
cd "$(dirname "$0")/.."

profile=${IMAGE_PROFILE:-release}
case $profile in
dev) built=target/debug beside=--workspace ;;
*) built=target/$profile beside= ;;
esac

# The user that the image runs as.
user=10001

# What the Dockerfile sets in the environment, moved below a folder and to a port that is likely to be free.
environment() {
    sed -n 's/^ENV //p' Dockerfile | sed -e "s|=/|=$1/|" -e 's|:8080|:18080|'
}

tried() {
    folder=$1
    key="$folder/var/lib/stint/first-key"
    [ -s "$key" ] || { echo "stint: the first start made no key at $key" >&2; exit 1; }
    [ "$(stat -c %a "$key")" = 600 ] || { echo "stint: others can read $key" >&2; exit 1; }
    echo "stint: it starts, is healthy, and keeps its key to itself"
}

case $1 in
build-packages)
    scripts/packages.sh gcc libc6-dev ca-certificates
    ;;
runtime-packages)
    scripts/packages.sh libvulkan1 mesa-vulkan-drivers ca-certificates
    ;;
build)
    # shellcheck disable=SC2086 # one option, or none
    cargo build --profile "$profile" --locked $beside --bin stint
    cargo run --locked --package sbom -- "$built/stint.cdx.json"
    ;;
install)
    install -D -m 755 "$built/stint" "$2/usr/local/bin/stint"
    install -D -m 644 "$built/stint.cdx.json" "$2/usr/share/doc/stint/stint.cdx.json"
    install -D -m 644 config/stint.toml "$2/etc/stint/stint.toml"
    install -d -m 700 "$2/var/lib/stint"
    ;;
try)
    # The image's user may not look into this folder, so what it runs goes to where it may.
    install -D -m 755 scripts/serve.sh "$2/tmp/serve.sh"
    as_user=
    if [ "$(id -u)" -eq 0 ]; then
        chown "$user:$user" "$2/var/lib/stint"
        as_user="setpriv --reuid $user --regid $user --clear-groups"
    fi
    # shellcheck disable=SC2086 # one word is one assignment, or one argument
    (settings=$(environment "$2") && cd "$2" && env -i PATH="$PATH" $settings \
        $as_user tmp/serve.sh "$2/usr/local/bin/stint" "$2/usr/local/bin/stint" check)
    tried "$2"
    ;;
all)
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    chmod 755 "$folder"
    for step in build-packages runtime-packages build "install $folder" "try $folder"; do
        echo "stint: image: $step"
        # shellcheck disable=SC2086 # a step is a verb and its argument
        scripts/image.sh $step
    done
    ;;
*)
    echo "usage: image.sh build-packages | runtime-packages | build | install FOLDER | try FOLDER | all" >&2
    exit 2
    ;;
esac
