#!/bin/sh
# Installs the libraries that `tilewright bench` compares with, on a Debian machine:
#   OpenBLAS and BLIS from the distribution, Intel MKL and its OpenMP runtime from PyPI.
# MKL goes to build/baselines/lib under the repository (not committed; about 700 MB).
# Usage: scripts/baselines.sh [--no-apt]
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
dest="$root/build/baselines"
wheels="$dest/wheels"

if [ "${1:-}" != "--no-apt" ]; then
    as_root=""
    [ "$(id -u)" -eq 0 ] || as_root=sudo
    $as_root apt-get update -qq
    $as_root apt-get install -y -qq --no-install-recommends libopenblas0 libblis4 python3 python3-pip
fi

# Wheels are fetched and unpacked by hand: `pip install --target` drops a wheel's data/lib folder,
# which is all that these two contain, and `--prefix` is refused on a managed system Python.
mkdir -p "$wheels"
python3 -m pip download --quiet --no-deps --only-binary=:all: --dest "$wheels" mkl intel-openmp
python3 - "$wheels" "$dest/lib" <<'PY'
import pathlib, shutil, sys, zipfile

wheels, lib = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
lib.mkdir(parents=True, exist_ok=True)
for wheel in sorted(wheels.glob("*.whl")):
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            parts = pathlib.PurePosixPath(entry.filename).parts
            # NAME.data/data/lib/libX.so.N, nothing deeper and nothing else
            if len(parts) == 4 and parts[1:3] == ("data", "lib") and ".so" in parts[3]:
                with archive.open(entry) as source, open(lib / parts[3], "wb") as target:
                    shutil.copyfileobj(source, target)
PY
rm -rf "$wheels"
echo "installed in $dest/lib:"; ls "$dest/lib"
