#!/bin/sh
# How close guided searches come that begin from recordings of the same kernel on other devices, leaving each device out.
#
# usage: warm-start-table.sh [-s STRATEGY] [-n REPEATS] SIDE SIDE...
#
# A SIDE is one recording, or several of near clones separated by commas: a device is searched with the recordings of all
# other sides. The fraction of the optimum after 25, 50, 100, 200 and 400 evaluations is printed, with and without the others.
set -eu
cd "$(dirname "$0")/.."
strategy=guided repeats=100
while getopts s:n: flag; do
    case $flag in
    s) strategy=$OPTARG ;;
    n) repeats=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -gt 1 ] || { sed -n 2,7p "$0"; exit 2; }
cargo build --release --quiet -p tilewright-cli
python3 - "${TILEWRIGHT:-target/release/tilewright}" "$strategy" "$repeats" "$@" <<'PYTHON'
import json, subprocess, sys

program, strategy, repeats = sys.argv[1:4]
sides = [side.split(",") for side in sys.argv[4:]]
rows = {"cold": [], "warm": []}
print("| recording | | 25 | 50 | 100 | 200 | 400 |\n|---|---|---|---|---|---|---|")
for side in sides:
    others = [f for other in sides if other is not side for f in other]
    for file in side:
        for name, more in (("cold", []), ("warm", ["--warm-start", *others])):
            run = [program, "search", "--device", f"replay:{file}", "--strategy", strategy, "--repeats", repeats, "--seed", "0",
                   "--budget", "25,50,100,200,400", "--json", *more]
            answer = json.loads(subprocess.run(run, check=True, capture_output=True, text=True).stdout)
            rows[name].append(answer["fraction_of_optimum"])
            label = file.split("/")[-1] if name == "cold" else ""
            print(f"| {label} | {name} | " + " | ".join(f"{x:.4f}" for x in rows[name][-1]) + " |", flush=True)
for name, found in rows.items():
    means = [sum(column) / len(found) for column in zip(*found)]
    print(f"| all {len(found)} | {name} | " + " | ".join(f"{x:.4f}" for x in means) + " |")
PYTHON
