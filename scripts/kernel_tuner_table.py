#!/usr/bin/env python3
"""The table of compare-kernel-tuner.sh: theirs, ours, and the paired difference with its standard error."""
import json
import math
import sys


def read(path):
    with open(path) as f:
        return [json.loads(line) for line in f]


def mean(xs):
    return sum(xs) / len(xs)


def main():
    theirs, ours = read(sys.argv[1]), read(sys.argv[2])
    budgets = theirs[0]["budgets"]
    head = "| space | | " + " | ".join(map(str, budgets)) + " |"
    print(head + "\n|" + "---|" * (len(budgets) + 2))
    total = {"theirs": [], "ours": []}
    differences = [[] for _ in budgets]
    for t, o in zip(theirs, ours):
        for name, runs in (("theirs", t["fractions"]), ("ours", o["each"])):
            means = [mean([r[i] for r in runs]) for i in range(len(budgets))]
            total[name].append(means)
            label = t["space"] if name == "theirs" else ""
            print(f"| {label} | {name} | " + " | ".join(f"{m:.4f}" for m in means) + " |")
        for i in range(len(budgets)):
            differences[i] += [b[i] - a[i] for a, b in zip(t["fractions"], o["each"])]
    all_means = {}
    for name, rows in total.items():
        all_means[name] = [mean([r[i] for r in rows]) for i in range(len(budgets))]
        print(f"| all {len(rows)} | {name} | " + " | ".join(f"{m:.4f}" for m in all_means[name]) + " |")
    gaps = [(o - t) / (1 - t) for t, o in zip(all_means["theirs"], all_means["ours"])]
    print("| | gap closed | " + " | ".join(f"{g:.1%}" for g in gaps) + " |")
    errors = []
    for d in differences:
        m = mean(d)
        errors.append(f"{m:+.4f} ± {math.sqrt(mean([(x - m) ** 2 for x in d]) / len(d)):.4f}")
    print("| | paired difference | " + " | ".join(errors) + " |")


if __name__ == "__main__":
    main()
