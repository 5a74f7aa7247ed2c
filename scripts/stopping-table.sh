#!/bin/sh
# How often searches that stop by themselves miss, how much of each recorded space they look at, and how that compares with
# what a searcher who knew the distribution would have needed.
#
# usage: stopping-table.sh [-f] [-s STRATEGIES] [-n REPEATS] [-p PRIOR]... [-o RECORD] RECORDING...
#
# The learned rule is fitted for every recording on all the others (leave one space out); with -f on those of other kernels only
# (leave one family out: scripts/tables.py says what a family is); with -p on the given recordings, without the one that is searched,
# and with -f without its kernel. Needed: so many random evaluations that one within epsilon (5%) of the optimum is among them with
# probability 1 - alpha (90%). -o writes the table with its command as JSON.
set -eu
cd "$(dirname "$0")/.."
strategies=early-stop,early-stop-vuduc,early-stop-conservative repeats=200 family=no prior= record=
while getopts fs:n:p:o: flag; do
    case $flag in
    f) family=yes ;;
    s) strategies=$OPTARG ;;
    n) repeats=$OPTARG ;;
    p) prior="$prior $OPTARG" ;;
    o) record=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || { sed -n 2,10p "$0"; exit 2; }
program=${TILEWRIGHT:-target/release/tilewright}
[ -n "${TILEWRIGHT:-}" ] || cargo build --release --quiet -p tilewright-cli
python3 - "$program" "$strategies" "$repeats" "$family" "$prior" "$record" "$@" <<'PYTHON'
import json, math, subprocess, sys

sys.path.insert(0, "scripts")
from kernel_tuner_costs import costs, name_of, varied_of
from tables import families, interval, mean, said, text, write_record

program, strategies, repeats, by_family, prior, record = sys.argv[1:7]
files = sys.argv[7:]
prior = prior.split() or files
known = list(dict.fromkeys(files + prior))
kernel = dict(zip(known, families([varied_of(f) for f in known])))


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


def over_families(rows, field):
    of = {}
    for row in rows:
        of.setdefault(row["family"], []).append(row[field])
    return interval([mean(xs) for xs in of.values()])


rows = []
for file in files:
    others = [f for f in prior if f != file and not (by_family == "yes" and kernel[f] == kernel[file])]
    run = [program, "search", "--device", f"replay:{file}", "--strategy", strategies + ",random",
           "--repeats", repeats, "--json", *(["--prior", *others] if others else [])]
    answer = json.loads(subprocess.run(run, check=True, capture_output=True, text=True).stdout)
    good, share = needed(file)
    for row in answer["compared"][:-1]:
        rows.append({"strategy": row["strategy"], "space": name_of(file), "family": kernel[file], "learned_on": len(others),
                     "within_5_percent": good, "needed": share, "looked_at": row["stopped_at_fraction"],
                     "missed": row["miss_rate"]})
print("families: " + "; ".join(", ".join(name_of(f) for f in files if kernel[f] == k) for k in dict.fromkeys(kernel[f] for f in files)))
totals = []
for strategy in strategies.split(","):
    found = [r for r in rows if r["strategy"] == strategy]
    print(f"\n| {strategy} | within 5% | needed | looked at | times needed | missed |\n|---|---|---|---|---|---|")
    for r in found:
        print(f"| {r['space']} | {r['within_5_percent']} | {r['needed']:.4f} | {r['looked_at']:.4f} "
              f"| {r['looked_at'] / r['needed']:.2f} | {r['missed']:.3f} |")
    total = {"strategy": strategy, "spaces": len(found), "mean_miss": mean([r["missed"] for r in found]),
             "worst_miss": max(r["missed"] for r in found), "mean_looked_at": mean([r["looked_at"] for r in found]),
             "geomean_looked_at": geomean([r["looked_at"] for r in found]),
             "geomean_times_needed": geomean([r["looked_at"] / r["needed"] for r in found]),
             "miss_over_families": over_families(found, "missed")}
    totals.append(total)
    print(f"| {len(found)} spaces: geomeans; mean and worst | | {geomean([r['needed'] for r in found]):.4f} "
          f"| {total['geomean_looked_at']:.4f} | {total['geomean_times_needed']:.2f} "
          f"| {total['mean_miss']:.3f}, {total['worst_miss']:.3f} |")
    print(f"miss rate, 95% over {len(set(r['family'] for r in found))} families: {text(total['miss_over_families'], 3, '')}", flush=True)
if record:
    given = [] if prior == files else [x for f in prior for x in ("-p", "DATA/" + f.split("/")[-1])]
    options = [*(["-f"] if by_family == "yes" else []), "-s", strategies, "-n", repeats, *given]
    write_record(record, said("stopping-table.sh", options, files), rows, totals=totals)
PYTHON
