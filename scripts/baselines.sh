#!/bin/sh
# Installs the libraries that `tilewright bench` compares with:
#   OpenBLAS and BLIS from the distribution (Debian and what derives from it), Intel MKL and its OpenMP runtime from PyPI.
# MKL goes to build/baselines/lib under the repository (not committed; about 800 MB), once.
# What cannot be had is said and left out; the exit code is then 1.
# Usage: scripts/baselines.sh [--no-apt]
set -u

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
dest="$root/build/baselines"
wheels="$dest/wheels"
missing=""

from_apt() {
    command -v apt-get >/dev/null || { echo "no apt-get here: install OpenBLAS, BLIS and Python's pip yourself" >&2; return 1; }
    as_root=""
    [ "$(id -u)" -eq 0 ] || as_root=sudo
    $as_root apt-get update -qq &&
        $as_root env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -qq --no-install-recommends libopenblas0 libblis4 python3 python3-pip
}

# Wheels are fetched and unpacked by hand: `pip install --target` drops a wheel's data/lib folder,
# which is all that these two contain, and `--prefix` is refused on a managed system Python.
mkl_from_pypi() {
    mkdir -p "$wheels" &&
        python3 -m pip download --quiet --no-deps --only-binary=:all: --dest "$wheels" mkl intel-openmp &&
        unpack
}

unpack() {
    python3 - "$wheels" "$dest/lib" <<'PY'
import pathlib, shutil, sys, zipfile

wheels, lib = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
part = lib.with_name("lib.part")
shutil.rmtree(part, ignore_errors=True)
part.mkdir(parents=True)
for wheel in sorted(wheels.glob("*.whl")):
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            parts = pathlib.PurePosixPath(entry.filename).parts
            # NAME.data/data/lib/libX.so.N, nothing deeper and nothing else
            if len(parts) == 4 and parts[1:3] == ("data", "lib") and ".so" in parts[3]:
                with archive.open(entry) as source, open(part / parts[3], "wb") as target:
                    shutil.copyfileobj(source, target)
shutil.rmtree(lib, ignore_errors=True)
part.rename(lib)
PY
}

if [ "${1:-}" != "--no-apt" ]; then
    from_apt || missing="$missing OpenBLAS BLIS"
fi
if ls "$dest"/lib/libmkl_rt.so* >/dev/null 2>&1; then
    echo "MKL is there already: delete $dest to fetch it anew"
else
    mkl_from_pypi || missing="$missing MKL"
    rm -rf "$wheels"
fi
if [ -n "$missing" ]; then
    echo "not installed:$missing" >&2
    exit 1
fi
echo "installed: OpenBLAS, BLIS, MKL in $dest/lib"
