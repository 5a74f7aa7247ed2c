#!/bin/sh
# How often searches that stop by themselves miss, and how much of each recorded space they look at.
#
# usage: stopping-table.sh [-s STRATEGIES] [-n REPEATS] RECORDING...
#
# The learned rule is fitted for every recording on all the others (leave one space out).
set -eu
cd "$(dirname "$0")/.."
strategies=early-stop,early-stop-vuduc,early-stop-conservative repeats=200
while getopts s:n: flag; do
    case $flag in
    s) strategies=$OPTARG ;;
    n) repeats=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -gt 2 ] || { sed -n 2,6p "$0"; exit 2; }
cargo build --release --quiet -p tilewright
python3 - "$strategies" "$repeats" "$@" <<'PYTHON'
import json, math, subprocess, sys

strategies, repeats, files = sys.argv[1], sys.argv[2], sys.argv[3:]
rows = {}
for file in files:
    others = [f for f in files if f != file]
    run = ["target/release/tilewright", "search", "--device", f"replay:{file}", "--strategy", strategies + ",random",
           "--repeats", repeats, "--json", "--prior", *others]
    answer = json.loads(subprocess.run(run, check=True, capture_output=True, text=True).stdout)
    for row in answer["compared"][:-1]:
        rows.setdefault(row["strategy"], []).append((file, row["miss_rate"], row["stopped_at_fraction"]))
for strategy, found in rows.items():
    print(f"\n| {strategy} | missed | looked at |\n|---|---|---|")
    for file, miss, share in found:
        print(f"| {file.split('/')[-1]} | {miss:.3f} | {share:.4f} |")
    n = len(found)
    share = math.exp(sum(math.log(s) for _, _, s in found) / n)
    print(f"| mean, worst; geomean | {sum(m for _, m, _ in found) / n:.3f}, {max(m for _, m, _ in found):.3f} | {share:.4f} |")
PYTHON
