#!/bin/sh
# Installs the libraries that `tilewright bench` compares with:
#   OpenBLAS, BLIS and libxsmm from the distribution (Debian and what derives from it); a newer OpenBLAS, Intel MKL and its OpenMP
#   runtime, and oneDNN from PyPI.
# Those of PyPI, and libxsmm as a shared library, go to build/baselines/lib under the repository (not committed; about 950 MB), once.
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
            apt-get install -y -qq --no-install-recommends libopenblas0 libblis4 libxsmm-dev python3 python3-pip
}

# from_pypi PATTERN WHEEL...: puts the libraries of these wheels that match the pattern beside those that are there.
# Wheels are fetched and unpacked by hand: `pip install --target` drops a wheel's data/lib folder,
# which is all that those of MKL contain, and `--prefix` is refused on a managed system Python.
from_pypi() {
    pattern=$1
    shift
    rm -rf "$wheels"
    mkdir -p "$wheels" "$dest/lib" &&
        python3 -m pip download --quiet --no-deps --only-binary=:all: --dest "$wheels" "$@" &&
        unpack "$pattern"
}

unpack() {
    python3 - "$wheels" "$dest/lib" "$1" <<'PY'
import fnmatch, pathlib, shutil, sys, zipfile

wheels, lib, pattern = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
part = lib.with_name("lib.part")
shutil.rmtree(part, ignore_errors=True)
part.mkdir(parents=True)
# NAME.data/data/lib/libX.so.N, NAME/libs/libX.so.N, or NAME/lib/libX.so; nothing deeper and nothing else
places = [("data", "lib"), ("libs",), ("lib",)]
for wheel in sorted(wheels.glob("*.whl")):
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            parts = pathlib.PurePosixPath(entry.filename).parts
            if parts[1:-1] in places and fnmatch.fnmatch(parts[-1], pattern):
                with archive.open(entry) as source, open(part / parts[-1], "wb") as target:
                    shutil.copyfileobj(source, target)
found = sorted(part.iterdir())
for file in found:
    file.rename(lib / file.name)
part.rmdir()
sys.exit(0 if found else f"no {pattern} in what was fetched")
PY
}

# Built for OpenMP, as all that can be told how many threads to use. The newest of these comes with PaddlePaddle, which
# has no wheel for every Python; oneDNN's own package of this kind ends with 3.2, and its later ones are built for SYCL.
onednn_from_pypi() {
    from_pypi 'libdnnl.so*' paddlepaddle || from_pypi 'libdnnl.so*' onednn-cpu-gomp
}

# Some of its wheels hold the Fortran runtime that the library was linked with, which it looks for beside itself.
openblas_from_pypi() {
    from_pypi '*.so*' 'scipy-openblas32>=0.3.34'
}

# Debian has archives only. The version stands in the name, since the library does not tell it.
shared_libxsmm() {
    lib=/usr/lib
    [ -f "$lib/libxsmm.a" ] || { echo "no $lib/libxsmm.a: install libxsmm-dev" >&2; return 1; }
    version=$(dpkg-query -W -f '${Version}' libxsmm-dev 2>/dev/null | sed -n 's/^\([0-9][0-9.]*\).*/\1/p')
    mkdir -p "$dest/lib" &&
        cc -shared -o "$dest/lib/libxsmm.part" -Wl,--whole-archive "$lib/libxsmm.a" "$lib/libxsmmnoblas.a" \
            -Wl,--no-whole-archive -lm -lpthread -ldl -lrt &&
        mv "$dest/lib/libxsmm.part" "$dest/lib/libxsmm.so.${version:-1}"
}

if [ "${1:-}" != "--no-apt" ]; then
    from_apt || missing="$missing OpenBLAS-of-the-distribution BLIS libxsmm-dev"
fi
if ls "$dest"/lib/libxsmm.so* >/dev/null 2>&1; then
    echo "libxsmm is there already: delete $dest to build it anew"
else
    shared_libxsmm || missing="$missing libxsmm"
fi
if ls "$dest"/lib/libscipy_openblas.so >/dev/null 2>&1; then
    echo "OpenBLAS of PyPI is there already: delete $dest to fetch it anew"
else
    openblas_from_pypi || missing="$missing OpenBLAS"
fi
if ls "$dest"/lib/libmkl_rt.so* >/dev/null 2>&1; then
    echo "MKL is there already: delete $dest to fetch it anew"
else
    from_pypi '*.so*' mkl intel-openmp || missing="$missing MKL"
fi
if ls "$dest"/lib/libdnnl.so* >/dev/null 2>&1; then
    echo "oneDNN is there already: delete $dest to fetch it anew"
else
    onednn_from_pypi || missing="$missing oneDNN"
fi
rm -rf "$wheels"
if [ -n "$missing" ]; then
    echo "not installed:$missing" >&2
    exit 1
fi
echo "installed: OpenBLAS, BLIS, libxsmm, MKL and oneDNN; in $dest/lib what the distribution has not"
