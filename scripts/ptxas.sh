#!/bin/sh
# Installs NVIDIA's assembler and disassembler from PyPI, for the tests of generated PTX:
#   ptxas 12.9 for sm_50 to sm_72, ptxas 13 and nvdisasm for newer targets.
# They go to build/ptxas under the repository (not committed; about 250 MB; NVIDIA's licence).
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
dest="$root/build/ptxas"
install() {
    # A folder that is complete has its mark.
    [ -e "$dest/$1/complete" ] && return 0
    rm -rf "${dest:?}/$1"
    folder="$dest/$1"
    shift
    python3 -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --target "$folder" "$@"
    touch "$folder/complete"
}
install cu12 'nvidia-cuda-nvcc-cu12==12.9.*'
install cu13 'nvidia-cuda-nvcc==13.*' 'nvidia-cuda-nvdisasm==13.*'
