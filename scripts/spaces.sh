#!/bin/sh
# Builds the spaces of T1 descriptions with Kernel Tuner 1.5, with pyATF 0.0.13 and with ours, in one run on this machine:
# equal sets, and the times side by side. The two come from PyPI into build/peers/venv (not committed), once.
# Usage: scripts/spaces.sh FILE.T1.json...
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
venv="$root/build/peers/venv"
if [ ! -e "$venv/spaces-complete" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check 'kernel_tuner==1.5.*' 'pyatf==0.0.13'
    touch "$venv/spaces-complete"
fi
cd "$root"
cargo build --quiet --release -p tilewright-sampler --example spaces
target=${CARGO_TARGET_DIR:-$root/target}
exec "$venv/bin/python" scripts/spaces_peers.py "$target/release/examples/spaces" "$@"
