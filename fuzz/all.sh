#!/usr/bin/env bash
# Runs every target in turn, some side by side, again and again until the time is up; what crashed lies in fuzz/artifacts.
#     fuzz/all.sh SECONDS [SIDE_BY_SIDE] [SECONDS_A_TURN]
set -euo pipefail
cd "$(dirname "$0")"
end=$((SECONDS + $1)) jobs=${2:-2} turn=${3:-300}
cargo +nightly fuzz build >&2
target=${CARGO_TARGET_DIR:-target}/x86_64-unknown-linux-gnu/release
run() {
    mkdir -p "artifacts/$1" "corpus/$1"
    # A fork goes on after a crash, and leaves the input there.
    nice -n 19 "$target/$1" "corpus/$1" -fork=1 -ignore_crashes=1 -ignore_timeouts=1 -ignore_ooms=1 -timeout=20 -rss_limit_mb=3000 \
        -max_len=30000 -max_total_time="$turn" -artifact_prefix="artifacts/$1/" >>"artifacts/$1.log" 2>&1 || true
    echo "$1 $(tail -n 1 "artifacts/$1.log" | cut -c 1-160); crashes: $(find "artifacts/$1" -type f | wc -l)"
}
while [ "$SECONDS" -lt "$end" ]; do
    for source in fuzz_targets/*.rs; do
        [ "$SECONDS" -lt "$end" ] || break
        run "$(basename "$source" .rs)" &
        while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
    done
done
wait
