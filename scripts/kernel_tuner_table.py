#!/usr/bin/env python3
"""The table of compare-kernel-tuner.sh: mean fraction of the optimum by space and over all, the part of the remaining gap that
is closed, the paired difference with its standard error, and the score P of the methodology for comparing auto-tuners.

usage: kernel_tuner_table.py THEIRS_FOLDER STRATEGY OURS.jsonl FILE...

P (Willemsen et al.): at each number of evaluations, (baseline - found) / (baseline - optimum) in mean cost, the baseline being
the expectation of random search, computed; averaged up to where the baseline is 95% of the way from the median to the optimum
(at most the largest budget here), then over spaces. 0 is random search, 1 the optimum at once. The clock is evaluations.
"""
import json
import math
import os
import statistics
import sys

from kernel_tuner_costs import costs, name_of

BUDGETS = [25, 50, 100, 200, 400]


def mean(xs):
    return sum(xs) / len(xs)


def theirs(folder, name, strategy):
    """By seed: the fraction of the optimum after 1, 2, ... evaluations; 0 before anything worked."""
    out = {}
    with open(os.path.join(folder, f"{name}.{strategy}.jsonl")) as f:
        for line in f:
            run = json.loads(line)
            curve, steps = [], run["steps"] + [[BUDGETS[-1] + 1, None]]
            for (at, fraction), (until, _) in zip(steps, steps[1:]):
                curve += [0.0] * (at - 1 - len(curve))
                curve += [fraction] * (min(until, BUDGETS[-1] + 1) - 1 - len(curve))
            out[run["seed"]] = curve
    return out


def baseline(times):
    """Expected best of n random configurations, n from 1, given that one of them works; and the optimum and the median."""
    valid = sorted(t for t in times if math.isfinite(t))
    total, out = len(times), []
    for n in range(1, BUDGETS[-1] + 1):
        # The chance that all n lie beyond the first i of the order, from one i to the next.
        beyond, expected, weight = 1.0, 0.0, 0.0
        for i, t in enumerate(valid):
            if total - i - n < 0:
                chance = beyond
            else:
                chance = beyond * n / (total - i)
            expected, weight, beyond = expected + t * chance, weight + chance, beyond - chance
            if beyond < 1e-15:
                break
        out.append(expected / weight)
    return out, valid[0], statistics.median(valid)


def score(curves, expected, optimum, median):
    cut = median + 0.95 * (optimum - median)
    last = next((n for n, e in enumerate(expected) if e <= cut), len(expected) - 1)
    at = sorted({round(1 + (last - 1) * i / 49) for i in range(50)}) if last > 1 else [1]
    points = []
    for n in at:
        found = [optimum / c[n - 1] for c in curves if c[n - 1] > 0.0]
        if found and expected[n - 1] > optimum:
            points.append((expected[n - 1] - mean(found)) / (expected[n - 1] - optimum))
    return mean(points)


def row(label, name, numbers, p):
    return f"| {label} | {name} | " + " | ".join(f"{m:.4f}" for m in numbers) + f" | {p:+.3f} |"


def main():
    folder, strategy, ours, files = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
    with open(ours) as f:
        answers = [json.loads(line) for line in f]
    print("| space | | " + " | ".join(map(str, BUDGETS)) + " | P |\n|" + "---|" * (len(BUDGETS) + 3))
    total = {"theirs": [], "ours": []}
    differences = [[] for _ in BUDGETS]
    fewest = None
    for file, answer in zip(files, answers):
        by_seed = theirs(folder, name_of(file), strategy)
        pairs = [(by_seed[s], c) for s, c in enumerate(answer["each"]) if s in by_seed]
        fewest = min(fewest or len(pairs), len(pairs))
        expected, optimum, median = baseline(costs(file))
        for which, name in enumerate(("theirs", "ours")):
            curves = [p[which] for p in pairs]
            means = [mean([c[b - 1] for c in curves]) for b in BUDGETS]
            p = score(curves, expected, optimum, median)
            total[name].append(means + [p])
            print(row(f"{name_of(file)} ({len(pairs)} seeds)" if which == 0 else "", name, means, p))
        for i, b in enumerate(BUDGETS):
            differences[i].append([o[b - 1] - t[b - 1] for t, o in pairs])
    all_means = {}
    for name, rows in total.items():
        all_means[name] = [mean([r[i] for r in rows]) for i in range(len(BUDGETS) + 1)]
        print(row(f"all {len(rows)}", name, all_means[name][:-1], all_means[name][-1]))
    gaps = [(o - t) / (1 - t) for t, o in zip(all_means["theirs"], all_means["ours"])][:-1]
    print("| | gap closed | " + " | ".join(f"{g:.1%}" for g in gaps) + " | |")
    errors = []
    for by_space in differences:
        # Spaces count the same; seeds within each are independent.
        variance = sum(statistics.pvariance(d) / len(d) for d in by_space) / len(by_space) ** 2
        errors.append(f"{mean([mean(d) for d in by_space]):+.4f} ± {math.sqrt(variance):.4f}")
    print("| | paired difference | " + " | ".join(errors) + " | |")
    print(f"\n{len(files)} spaces, at least {fewest} seeds each")


if __name__ == "__main__":
    main()
