#!/bin/sh
# What the patience of `guided-stop` is worth that was learned on other kernels, and the patience that all recordings teach.
#
# usage: guided-stop-table.sh [-n REPEATS] [-o RECORD] RECORDING...
#
# `guided-stop` asks what `guided` asks and ends where exp(-w / (patience * sqrt(points))) falls below alpha, w being the evaluations
# without an improvement by more than epsilon (5%). So one guided search a seed, run to 8 * sqrt(points) evaluations, says what any
# patience would have done; a search that a patience would have let run longer counts as ended there. Patience is
# learned at alpha = 2%, 5%, 10%, 20%, 30% and 50%: the least at which the mean share of misses lies below alpha with 95% confidence
# over families (scripts/tables.py says what a family is). The table shows alpha = 10%. -o writes it with its command as JSON.
set -eu
cd "$(dirname "$0")/.."
repeats=20 record=
while getopts n:o: flag; do
    case $flag in
    n) repeats=$OPTARG ;;
    o) record=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || { sed -n 2,11p "$0"; exit 2; }
program=${TILEWRIGHT:-target/release/tilewright}
[ -n "${TILEWRIGHT:-}" ] || cargo build --release --quiet -p tilewright-cli
python3 - "$program" "$repeats" "$record" "$@" <<'PYTHON'
import json, math, subprocess, sys

sys.path.insert(0, "scripts")
from kernel_tuner_costs import name_of, varied_of
from tables import families, interval, mean, said, text, write_record

program, repeats, record = sys.argv[1:4]
files = sys.argv[4:]
EPSILON, LEVELS, SHOWN, LONGEST = 0.05, [0.02, 0.05, 0.1, 0.2, 0.3, 0.5], 0.1, 8
# Quantiles of Student's distribution at 95%, one side, for 1, 2, ... degrees of freedom.
ONE_SIDE = [6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812]
STEPS = [i / 20 for i in range(1, 101)]


def searches(file):
    """The number of points, and by seed [evaluations, fraction of the optimum] at each improvement, and the evaluations in all."""
    def run(budgets, count, *more):
        budget = ",".join(map(str, budgets))
        asked = [program, "search", "--device", f"replay:{file}", "--strategy", "guided", "--budget", budget, "--repeats", count,
                 "--seed", "0", "--json", *more]
        return json.loads(subprocess.run(asked, check=True, capture_output=True, text=True).stdout)

    points = run([1], "1")["points"]
    longest = min(points, math.ceil(LONGEST * math.sqrt(points)))
    found = []
    for curve in run(range(1, longest + 1), repeats, "--each")["each"]:
        steps = [[i + 1, f] for i, f in enumerate(curve) if f > (curve[i - 1] if i else 0.0)]
        found.append((steps, longest))
    return points, found


def end(steps, longest, wait):
    """When a search ends that waits so long for an improvement by more than epsilon, and the fraction that it has found."""
    level, at = 0.0, math.inf
    for evaluations, fraction in steps:
        if evaluations > at + wait:
            break
        if fraction * (1 - EPSILON) > level:
            level, at = fraction, evaluations
    ended = min(at + wait, longest)
    return ended, max((f for e, f in steps if e <= ended), default=0.0)


def judged(space, patience, alpha):
    """The share of searches that miss, and the mean share of the space that they look at."""
    points, found = space
    wait = patience * math.sqrt(points) * math.log(1 / alpha)
    ends = [end(steps, longest, wait) for steps, longest in found]
    return mean([f < 1 - EPSILON for _, f in ends]), mean([e for e, _ in ends]) / points


def by_family(values, family):
    of = {}
    for value, key in zip(values, family):
        of.setdefault(key, []).append(value)
    return [mean(v) for v in of.values()]


def learned(spaces, family):
    def keeps(patience, alpha):
        misses = by_family([judged(s, patience, alpha)[0] for s in spaces], family)
        n = len(misses)
        if n == 1:
            return misses[0] <= alpha / 2
        deviation = math.sqrt(sum((m - mean(misses)) ** 2 for m in misses) / (n - 1))
        quantile = ONE_SIDE[n - 2] if n - 2 < len(ONE_SIDE) else 1.8
        return mean(misses) + quantile * deviation / math.sqrt(n) <= alpha
    return max(next((p for p in STEPS if keeps(p, alpha)), STEPS[-1]) for alpha in LEVELS)


spaces = [searches(f) for f in files]
family = families([varied_of(f) for f in files])
rows = []
print("| space | points | family | patience learned elsewhere | missed | looked at |\n|---|---|---|---|---|---|")
patience = {}
for key in dict.fromkeys(family):
    elsewhere = [i for i, k in enumerate(family) if k != key]
    if elsewhere:
        patience[key] = learned([spaces[i] for i in elsewhere], [family[i] for i in elsewhere])
for file, space, key in zip(files, spaces, family):
    if key not in patience:
        continue
    miss, looked = judged(space, patience[key], SHOWN)
    rows.append({"space": name_of(file), "points": space[0], "family": key, "patience": patience[key], "missed": miss, "looked_at": looked})
    print(f"| {name_of(file)} | {space[0]} | {key} | {patience[key]:.2f} | {miss:.3f} | {looked:.4f} |", flush=True)
total = {"patience": learned(spaces, family)}
if rows:
    misses, looked = [r["missed"] for r in rows], [r["looked_at"] for r in rows]
    total |= {"mean_miss": mean(misses), "worst_miss": max(misses), "mean_looked_at": mean(looked),
              "miss_over_families": interval(by_family(misses, [r["family"] for r in rows]))}
    print(f"| {len(rows)} spaces: means; worst | | | | {mean(misses):.3f}, {max(misses):.3f} | {mean(looked):.4f} |")
    print(f"\nmiss rate, 95% over {len(patience)} families: {text(total['miss_over_families'], 3, '')}")
print(f"learned on all: {total['patience']:.2f}")
if record:
    write_record(record, said("guided-stop-table.sh", ["-n", repeats], files), rows, totals=total)
PYTHON
