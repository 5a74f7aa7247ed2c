#!/bin/sh
# Installs Kernel Tuner from PyPI, for the tests of its formats: the package itself, and what it imports to tune C on the host, to
# simulate and to check its schemas (not what its models and plots need).
# It goes to build/kernel_tuner under the repository (not committed; about 250 MB).
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
dest="$root/build/kernel_tuner"
# Compiled packages are for one version of Python: the mark of a complete folder names it.
python=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
[ "$(cat "$dest/complete" 2>/dev/null)" = "$python" ] && exit 0
rm -rf "$dest"
install() {
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --only-binary=:all: --upgrade --target "$dest" "$@"
}
install --no-deps 'kernel_tuner==1.5.*'
install 'numpy>=2' 'scipy>=1.14.1' 'python-constraint2>=2.5' jsonschema xmltodict packaging
echo "$python" >"$dest/complete"
