#!/usr/bin/env python3
"""The table of compare-kernel-tuner.sh: mean fraction of the optimum by space and over all, the part of the remaining gap that
is closed, the difference paired by seed with its confidence interval, over seeds (others on the same spaces) and over spaces (others of the same
kernels), and the score P of the methodology for comparing auto-tuners. Kernels are shown apart where there are several.

usage: kernel_tuner_table.py RECORD|"" OPTIONS THEIRS_FOLDER STRATEGY OURS.jsonl FILE...

P (Willemsen et al.): at each number of evaluations, (baseline - found) / (baseline - optimum) in mean cost, the baseline being
the expectation of random search, computed; averaged up to where the baseline is 95% of the way from the median to the optimum
(at most the largest budget here), then over spaces. 0 is random search, 1 the optimum at once. The clock is evaluations.
"""
import json
import math
import os
import statistics
import sys

from kernel_tuner_costs import costs, name_of, varied_of
from tables import families, interval, mean, said, student, text, write_record

BUDGETS = [25, 50, 100, 200, 400]


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


def of_seed(curve, expected, optimum, median):
    """The score of one search; its mean over seeds is the space's, but for searches that found nothing at first."""
    return score([curve], expected, optimum, median)


def row(label, name, numbers, p):
    return f"| {label} | {name} | " + " | ".join(f"{m:.4f}" for m in numbers) + f" | {p:+.3f} |"


class Space:
    """What both did on one recording, seed by seed."""

    def __init__(self, file, pairs):
        self.name, self.varied, self.seeds = name_of(file), varied_of(file), len(pairs)
        known = baseline(costs(file))
        self.means, self.by_seed = {}, {}
        for which, name in enumerate(("theirs", "ours")):
            curves = [p[which] for p in pairs]
            self.means[name] = [mean([c[b - 1] for c in curves]) for b in BUDGETS] + [score(curves, *known)]
            self.by_seed[name] = [[c[b - 1] for b in BUDGETS] + [of_seed(c, *known)] for c in curves]

    def difference(self, column):
        return [o[column] - t[column] for t, o in zip(self.by_seed["theirs"], self.by_seed["ours"])]


def over_seeds(spaces, of):
    """The mean over spaces, and 95% where other seeds would be drawn on the same spaces."""
    columns = [of(s) for s in spaces]
    m = mean([mean(c) for c in columns])
    variance = sum(statistics.variance(c) / len(c) for c in columns) / len(columns) ** 2
    half = student(sum(len(c) - 1 for c in columns)) * math.sqrt(variance)
    return m, m - half, m + half


def summary(label, spaces):
    """The rows of a group of spaces, printed and for the record."""
    out = {"group": label, "spaces": len(spaces), "budgets": BUDGETS}
    for name in ("theirs", "ours"):
        means = [mean([s.means[name][i] for s in spaces]) for i in range(len(BUDGETS) + 1)]
        ends = [over_seeds(spaces, lambda s: [r[i] for r in s.by_seed[name]])[1:] for i in range(len(BUDGETS) + 1)]
        out[name] = {"fraction_of_optimum": means[:-1], "P": means[-1], "ends_over_seeds": ends}
        print(row(label, name, means[:-1], means[-1]))
        print(f"| | {name}, 95% over seeds | " + " | ".join(f"{low:.4f} to {high:.4f}" for low, high in ends) + " |")
    columns = range(len(BUDGETS) + 1)
    out["difference_over_seeds"] = [over_seeds(spaces, lambda s: s.difference(i)) for i in columns]
    out["difference_over_spaces"] = [interval([mean(s.difference(i)) for s in spaces]) for i in columns]
    for name in ("seeds", "spaces"):
        cells = " | ".join(text(d) for d in out[f"difference_over_{name}"])
        print(f"| | paired difference, 95% over {name} | {cells} |")
    gaps = [(o - t) / (1 - t) for t, o in zip(out["theirs"]["fraction_of_optimum"], out["ours"]["fraction_of_optimum"])]
    print("| | gap closed | " + " | ".join(f"{g:.1%}" for g in gaps) + " | |")
    return out


def main():
    record, options, folder, strategy, ours, files = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5], sys.argv[6:]
    with open(ours) as f:
        answers = [json.loads(line) for line in f]
    print("| space | | " + " | ".join(map(str, BUDGETS)) + " | P |\n|" + "---|" * (len(BUDGETS) + 3))
    spaces = []
    for file, answer in zip(files, answers):
        by_seed = theirs(folder, name_of(file), strategy)
        space = Space(file, [(by_seed[s], c) for s, c in enumerate(answer["each"]) if s in by_seed])
        spaces.append(space)
        for name in ("theirs", "ours"):
            label = f"{space.name} ({space.seeds} seeds)" if name == "theirs" else ""
            print(row(label, name, space.means[name][:-1], space.means[name][-1]))
    kernel = families([s.varied for s in spaces])
    groups = [summary(f"all {len(spaces)}", spaces)]
    for key in dict.fromkeys(kernel) if len(set(kernel)) > 1 else ():
        members = [s for s, k in zip(spaces, kernel) if k == key]
        groups.append(summary(f"{members[0].name.split('-')[0]} ({len(members)})", members))
    print(f"\n{len(files)} spaces, at least {min(s.seeds for s in spaces)} seeds each; theirs is {strategy}")
    if record:
        rows = [{"space": s.name, "seeds": s.seeds, "who": name, "budgets": BUDGETS, "fraction_of_optimum": m[:-1], "P": m[-1]}
                for s in spaces for name, m in s.means.items()]
        write_record(record, said("compare-kernel-tuner.sh", options.split(), files), rows, totals=groups, theirs=strategy)


if __name__ == "__main__":
    main()
