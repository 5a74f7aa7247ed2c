#!/bin/sh
# Compares a strategy with Kernel Tuner's best in its simulation mode, on the recordings given: cache files, or datasets.
#
# usage: compare-kernel-tuner.sh [-s STRATEGY] [-n SEEDS] [-t T1_FOLDER] [-o RECORD] CACHE.json[.gz]|DATASET.csv...
#
# Kernel Tuner is installed into build/peers/kernel-tuner (a virtual environment). Both sides get the same budgets of unique
# evaluations and the same number of seeds; the mean fraction of the optimum is printed by space and over all, and the
# score P of the methodology beside it. Two files with the same configurations and times are refused: one recording counts once.
# -o writes the table with its command as JSON.
set -eu
cd "$(dirname "$0")/.."
strategy=auto seeds=100 t1= record=
while getopts s:n:t:o: flag; do
    case $flag in
    s) strategy=$OPTARG ;;
    n) seeds=$OPTARG ;;
    t) t1=$OPTARG ;;
    o) record=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || { sed -n 2,9p "$0"; exit 2; }
venv=build/peers/kernel-tuner
if [ ! -x "$venv/bin/python" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet 'kernel_tuner==1.5.*'
fi
"$venv/bin/python" scripts/kernel_tuner_costs.py "$@"
program=${TILEWRIGHT:-target/release/tilewright}
[ -n "${TILEWRIGHT:-}" ] || cargo build --release --quiet -p tilewright-cli
runs=build/peers/kernel-tuner-runs
theirs=adaptive_tabu_greywolf
# Seeds that were run before are kept; delete the folder to run them again.
"$venv/bin/python" scripts/kernel_tuner_runs.py --strategy "$theirs" --seeds "$seeds" --t1 "$t1" --out "$runs" "$@"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for file in "$@"; do
    "$program" search --device "replay:$file" --strategy "$strategy" --budget "$(seq -s, 1 400)" \
        --repeats "$seeds" --seed 0 --each --json | tr -d '\n'
    echo
done >"$out/ours.jsonl"
options="-s $strategy -n $seeds${t1:+ -t T1}"
"$venv/bin/python" scripts/kernel_tuner_table.py "$record" "$options" "$runs" "$theirs" "$out/ours.jsonl" "$@"
