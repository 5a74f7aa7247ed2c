#!/bin/sh
# How often searches that stop by themselves miss, how much of each recorded space they look at, and how that compares with
# what a searcher who knew the distribution would have needed.
#
# usage: stopping-table.sh [-f] [-s STRATEGIES] [-n REPEATS] [-p PRIOR]... RECORDING...
#
# The learned rule is fitted for every recording on all the others (leave one space out); with -f on those of other kernels only
# (leave one family out: kernels are one family whose parameters have the same names, whatever the files are called); with -p on the given recordings, without the one that is searched.
# Needed: so many random evaluations that one within epsilon (5%) of the optimum is among them with probability 1 - alpha (90%).
set -eu
cd "$(dirname "$0")/.."
strategies=early-stop,early-stop-vuduc,early-stop-conservative repeats=200 family=no prior=
while getopts fs:n:p: flag; do
    case $flag in
    f) family=yes ;;
    s) strategies=$OPTARG ;;
    n) repeats=$OPTARG ;;
    p) prior="$prior $OPTARG" ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || { sed -n 2,9p "$0"; exit 2; }
program=${TILEWRIGHT:-target/release/tilewright}
[ -n "${TILEWRIGHT:-}" ] || cargo build --release --quiet -p tilewright-cli
python3 - "$program" "$strategies" "$repeats" "$family" "$prior" "$@" <<'PYTHON'
import json, math, subprocess, sys

sys.path.insert(0, "scripts")
from kernel_tuner_costs import costs, family_of, name_of

program, strategies, repeats, by_family, prior = sys.argv[1:6]
files = sys.argv[6:]
prior = prior.split() or files


def needed(file):
    """The share of the space after which all points within 5% of the optimum are missed with at most 10%."""
    times = costs(file)
    best = min(times)
    good = sum(best / t >= 0.95 for t in times)
    total, missed, seen = len(times), 1.0, 0
    while missed > 0.1:
        missed *= max(total - good - seen, 0) / (total - seen)
        seen += 1
    return good, seen / total


def geomean(xs):
    return math.exp(sum(map(math.log, xs)) / len(xs))


rows = {}
for file in files:
    others = [f for f in prior if f != file and not (by_family == "yes" and family_of(f) == family_of(file))]
    run = [program, "search", "--device", f"replay:{file}", "--strategy", strategies + ",random",
           "--repeats", repeats, "--json", *(["--prior", *others] if others else [])]
    answer = json.loads(subprocess.run(run, check=True, capture_output=True, text=True).stdout)
    good, share = needed(file)
    for row in answer["compared"][:-1]:
        rows.setdefault(row["strategy"], []).append((file, good, share, row["miss_rate"], row["stopped_at_fraction"]))
for strategy, found in rows.items():
    print(f"\n| {strategy} | within 5% | needed | looked at | times needed | missed |\n|---|---|---|---|---|---|")
    for file, good, share, miss, looked in found:
        print(f"| {name_of(file)} | {good} | {share:.4f} | {looked:.4f} | {looked / share:.2f} | {miss:.3f} |")
    misses = [f[3] for f in found]
    print(f"| {len(found)} spaces: geomeans; mean and worst | | {geomean([f[2] for f in found]):.4f} | {geomean([f[4] for f in found]):.4f} "
          f"| {geomean([f[4] / f[2] for f in found]):.2f} | {sum(misses) / len(misses):.3f}, {max(misses):.3f} |", flush=True)
PYTHON
