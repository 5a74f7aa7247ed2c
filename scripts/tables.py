"""What the scripts that print tables have in common: intervals, families of kernels, and records."""
import datetime
import json
import math
import os
import subprocess

# Quantiles of Student's distribution at 97.5% for 1, 2, 3 degrees of freedom; the expansion below is right to 1% from 4.
FEW = [12.706, 4.303, 3.182]


def student(freedom):
    """Half the width, in standard errors, of an interval of 95%."""
    if freedom <= len(FEW):
        return FEW[freedom - 1] if freedom > 0 else math.inf
    z, n = 1.95996, freedom
    return z + (z**3 + z) / (4 * n) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n * n)


def mean(xs):
    return sum(xs) / len(xs)


def interval(xs):
    """Mean, low and high end of 95% of independent observations; without ends for one."""
    m = mean(xs)
    if len(xs) < 2:
        return m, None, None
    variance = sum((x - m) ** 2 for x in xs) / (len(xs) - 1)
    half = student(len(xs) - 1) * math.sqrt(variance / len(xs))
    return m, m - half, m + half


def text(of, digits=4, sign="+"):
    """An interval as the command prints it."""
    m, low, high = of
    ends = "" if low is None else f" ({low:{sign}.{digits}f} to {high:{sign}.{digits}f})"
    return f"{m:{sign}.{digits}f}{ends}"


def families(varied):
    """Numbers the kernels of recordings, given the names of the parameters that vary in each.

    Recordings are of one kernel, whatever their files are called, if they share more than half of all their names, however these are
    written. Who is of one kernel with a third is of one kernel with its kin: a variant with a parameter more is no other kernel.
    """
    names = [{n.lower() for n in v} for v in varied]
    family = list(range(len(names)))
    for i, a in enumerate(names):
        for j, b in enumerate(names[:i]):
            if 2 * len(a & b) > len(a | b):
                old, new = family[i], family[j]
                family = [new if f == old else f for f in family]
    return family


def by_family(rows):
    """Of the rows of each strategy and family: how many, and for missed and looked_at the mean, the worst and the geometric mean."""
    groups = {}
    for row in rows:
        groups.setdefault((row.get("strategy"), row["family"]), []).append(row)
    out = []
    for (strategy, _), own in groups.items():
        group = {"strategy": strategy, "first": own[0]["space"], "spaces": len(own)}
        for key in ("missed", "looked_at"):
            values = [row[key] for row in own]
            group[key] = {"mean": mean(values), "worst": max(values)}
            if min(values) > 0:
                group[key]["geomean"] = math.exp(mean([math.log(v) for v in values]))
        out.append(group)
    return out


def write_record(path, command, rows, **more):
    """Writes rows with the commit, the date and the command that made them."""
    def git(*of):
        return subprocess.run(["git", *of], check=True, capture_output=True, text=True).stdout.strip()

    if rows and "family" in rows[0]:
        more["families"] = by_family(rows)
    commit = git("rev-parse", "--short", "HEAD") + (", changed" if git("status", "--porcelain", "-uno") else "")
    record = {"commit": commit, "date": datetime.date.today().isoformat(), "command": command, **more, "rows": rows}
    with open(path, "w") as f:
        json.dump(record, f, indent=1)
        f.write("\n")


def said(script, options, files):
    """A command without the folders of the machine that it ran on."""
    return " ".join([f"scripts/{script}", *options, *(f"DATA/{os.path.basename(f)}" for f in files)])
