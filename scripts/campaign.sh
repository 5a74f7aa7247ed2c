#!/bin/sh
# Measures everything worth measuring on a device, with a binary that was built before: a bare machine with a driver will do.
#
#   scripts/campaign.sh OUT [DEVICE [MINUTES [EARLIER [COMPUTATION]]]]
#
# OUT      folder for the results: flat, files of at most 16 MiB
# DEVICE   cuda:0 unless given; several of one model as cuda:0,cuda:1
# MINUTES  9 unless given
# EARLIER  folder of an earlier run: its results are copied to OUT and taken up from there; none if empty
# COMPUTATION  gemm unless given; conv for convolutions
#
# Build the binary with `cargo build --release`, or name one in TILEWRIGHT_BIN.
set -eu

out=${1:?usage: scripts/campaign.sh OUT [DEVICE [MINUTES [EARLIER [COMPUTATION]]]]}
device=${2:-cuda:0}
minutes=${3:-9}
earlier=${4:-}
computation=${5:-gemm}
bin=${TILEWRIGHT_BIN:-target/release/tilewright}

if [ ! -x "$bin" ]; then
    echo "no $bin: run cargo build --release, or set TILEWRIGHT_BIN" >&2
    exit 2
fi
mkdir -p "$out"
if [ -n "$earlier" ]; then
    cp "$earlier"/* "$out"/
fi
exec "$bin" campaign "$computation" --device "$device" --minutes "$minutes" --out "$out" --json
