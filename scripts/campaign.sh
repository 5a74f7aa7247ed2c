#!/bin/sh
# Measures everything worth measuring on a device, with a binary that was built before: a bare machine with a driver will do.
#
#   scripts/campaign.sh OUT [DEVICE [MINUTES [EARLIER [COMPUTATION]]]]
#   scripts/campaign.sh pack BUNDLE [EARLIER]
#   scripts/campaign.sh run RESULTS [DEVICE [MINUTES [COMPUTATION]]]
#
# The first form measures here:
# OUT      folder for the results: flat, files of at most 16 MiB (a folder named `pack` or `run` is written `./pack`)
# DEVICE   cuda:0 unless given; several of one model as cuda:0,cuda:1
# MINUTES  9 unless given
# EARLIER  results of an earlier run, as a folder or as the archive that `run` writes: they are copied to OUT and taken up from
#          there; none if empty
# COMPUTATION  gemm unless given; conv for convolutions
#
# The other two are for a machine that has a driver and nothing else. `pack` writes the binary without its debug information, this
# script and the results of an earlier run as one compressed archive of at most 64 MiB. There
#
#   tar xzf BUNDLE && tilewright-campaign/campaign.sh run RESULTS
#
# goes on from the earlier results. RESULTS is one archive too, written every minute and at the end, so that a run that is killed
# leaves what it has; `pack` takes it as EARLIER for the next run. An interrupt ends the run in order.
#
# Build the binary with `cargo build --release`, or name one in TILEWRIGHT_BIN. Where TILEWRIGHT_PTXAS names an assembler, `pack`
# takes it along, and `run` uses it unless the driver is older than it is.
set -eu

usage="usage: scripts/campaign.sh OUT [DEVICE [MINUTES [EARLIER [COMPUTATION]]]] | pack BUNDLE [EARLIER] | run RESULTS [DEVICE [MINUTES [COMPUTATION]]]"
folder_of_bundle=tilewright-campaign
most_bytes=$((64 << 20))

fail() {
    echo "$1" >&2
    exit 2
}

# Where this script stands: beside the binary once it was unpacked.
here=$(cd "$(dirname "$0")" && pwd)
if [ -n "${TILEWRIGHT_BIN:-}" ]; then
    bin=$TILEWRIGHT_BIN
elif [ -x "$here/tilewright" ]; then
    bin=$here/tilewright
else
    bin=target/release/tilewright
fi

need_binary() {
    [ -x "$bin" ] || fail "no $bin: run cargo build --release, or set TILEWRIGHT_BIN"
}

# Puts the results of an earlier run into a folder.
take_up() {
    if [ -d "$1" ]; then
        cp "$1"/* "$2"/
    elif [ -f "$1" ]; then
        tar xzf "$1" -C "$2"
    else
        fail "EARLIER: $1 is neither a folder nor an archive"
    fi
}

# Refuses an archive that is too large to travel.
expect_small() {
    bytes=$(wc -c <"$1")
    if [ "$bytes" -gt "$most_bytes" ]; then
        fail "$1 has $bytes bytes, at most $most_bytes may travel"
    fi
    echo "$1: $bytes bytes" >&2
}

pack() {
    bundle=$1
    earlier=$2
    need_binary
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    to=$work/$folder_of_bundle
    mkdir "$to"
    if ! strip -o "$to/tilewright" "$bin" 2>/dev/null; then
        echo "no strip here: the binary is packed with its debug information" >&2
        cp "$bin" "$to/tilewright"
    fi
    cp "$0" "$to/campaign.sh"
    chmod +x "$to/tilewright" "$to/campaign.sh"
    if [ -n "${TILEWRIGHT_PTXAS:-}" ]; then
        [ -f "$TILEWRIGHT_PTXAS" ] || fail "TILEWRIGHT_PTXAS: $TILEWRIGHT_PTXAS is no file"
        cp "$TILEWRIGHT_PTXAS" "$to/ptxas"
    fi
    if [ -n "$earlier" ]; then
        mkdir "$to/earlier"
        take_up "$earlier" "$to/earlier"
    fi
    tar cf - -C "$work" "$folder_of_bundle" | gzip -9 >"$bundle.part"
    mv "$bundle.part" "$bundle"
    expect_small "$bundle"
}

# Writes what a folder has now as an archive. What is written to meanwhile is copied first: a record that is cut off is removed by
# the next run.
save() {
    copy=$2.$3
    rm -rf "$copy" "$copy.part"
    cp -r "$1" "$copy"
    tar czf "$copy.part" -C "$copy" .
    mv "$copy.part" "$2"
    rm -rf "$copy"
}

run() {
    results=$1
    need_binary
    folder=$results.d
    if [ ! -d "$folder" ]; then
        mkdir -p "$folder"
        if [ -d "$here/earlier" ]; then
            take_up "$here/earlier" "$folder"
        fi
    fi
    if [ -z "${TILEWRIGHT_PTXAS:-}" ] && [ -f "$here/ptxas" ]; then
        export TILEWRIGHT_PTXAS="$here/ptxas"
    fi
    "$bin" campaign "$4" --device "$2" --minutes "$3" --out "$folder" --json &
    campaign=$!
    trap 'kill -TERM "$campaign" 2>/dev/null || true' INT TERM
    # Apart from our own output, which nobody must wait for longer than for the campaign.
    (while sleep 60; do save "$folder" "$results" now; done) </dev/null >/dev/null 2>&1 &
    saver=$!
    code=0
    wait "$campaign" || code=$?
    # A signal ends the waiting and not the campaign.
    while kill -0 "$campaign" 2>/dev/null; do
        code=0
        wait "$campaign" || code=$?
    done
    kill "$saver" 2>/dev/null || true
    wait "$saver" 2>/dev/null || true
    save "$folder" "$results" end
    rm -rf "$results.now" "$results.now.part"
    expect_small "$results"
    exit "$code"
}

case ${1:?$usage} in
pack)
    pack "${2:?$usage}" "${3:-}"
    ;;
run)
    run "${2:?$usage}" "${3:-cuda:0}" "${4:-9}" "${5:-gemm}"
    ;;
*)
    need_binary
    mkdir -p "$1"
    if [ -n "${4:-}" ]; then
        take_up "$4" "$1"
    fi
    exec "$bin" campaign "${5:-gemm}" --device "${2:-cuda:0}" --minutes "${3:-9}" --out "$1" --json
    ;;
esac
