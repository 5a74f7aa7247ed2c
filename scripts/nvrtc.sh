#!/bin/sh
# Installs NVRTC, NVIDIA's compiler of CUDA C++ as a library, and the headers that kernels include, from PyPI. It needs neither a driver
# nor a GPU. They go to build/nvrtc under the repository (not committed; about 300 MB; NVIDIA's licence), where `tilewright` looks when
# it runs from there; TILEWRIGHT_NVRTC names the folder elsewhere.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
dest="$root/build/nvrtc"
# A folder that is complete has its mark.
[ -e "$dest/complete" ] && exit 0
rm -rf "${dest:?}"
python3 -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --target "$dest" \
    'nvidia-cuda-nvrtc-cu12==12.9.*' 'nvidia-cuda-runtime-cu12==12.9.*'
touch "$dest/complete"
