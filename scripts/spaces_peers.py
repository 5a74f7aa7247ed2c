"""Times Kernel Tuner's and pyATF's construction of search spaces beside ours; see scripts/spaces.sh.

Kernel Tuner: its Searchspace on the parameters and restriction strings of the file, as a user gives them. pyATF: its SearchSpace
(chain of trees, without the list of leaves) on the same parameters in the file's order, each constraint at the last parameter
that it mentions, compiled before the clock starts. Ours: from the text of the file. Every time is the best of its rounds; rounds
of the three alternate.
"""

import contextlib
import io
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from kernel_tuner.searchspace import Searchspace
from pyatf import TP, Set
from pyatf.search_space import SearchSpace

ROUNDS = 7


def read(path):
    space = json.loads(pathlib.Path(path).read_text())["ConfigurationSpace"]
    evaluate = lambda v: list(eval(v)) if isinstance(v, str) else v
    params = {p["Name"]: evaluate(p["Values"]) for p in space["TuningParameters"]}
    return params, [c["Expression"] for c in space.get("Conditions", [])]


def kernel_tuner(params, restrictions):
    start = time.perf_counter()
    space = Searchspace(params, list(restrictions), max_threads=1024)
    return time.perf_counter() - start, space


def pyatf_params(params, restrictions):
    names = list(params)
    by_last = {}
    for text in restrictions:
        used = [n for n in names if re.search(rf"\b{n}\b", text)]
        by_last.setdefault(used[-1], []).append((text, used))
    out = []
    for name, values in params.items():
        constraint = None
        if name in by_last:
            text = " and ".join(f"({t})" for t, _ in by_last[name])
            used = [n for n in names if any(n in u for _, u in by_last[name])]
            constraint = eval(f"lambda {', '.join(used)}: {text}")
        out.append(TP(name, Set(*values), constraint))
    return out


def pyatf(tps):
    with contextlib.redirect_stdout(io.StringIO()):
        start = time.perf_counter()
        space = SearchSpace(*tps, enable_1d_access=False, verbosity=0)
        return time.perf_counter() - start, space


def all_of_pyatf(tps, names):
    with contextlib.redirect_stdout(io.StringIO()):
        space = SearchSpace(*tps, enable_1d_access=True, verbosity=0)
    count = space.constrained_size
    return {tuple(str(c[n]) for n in names) for c in (space.get_configuration(i) for i in range(count))}


def ours(binary, path, folder):
    return json.loads(subprocess.run([binary, "--points", folder, path], check=True, capture_output=True, text=True).stdout)


def main():
    binary, files = sys.argv[1], sys.argv[2:]
    rows = []
    for path in files:
        params, restrictions = read(path)
        names = list(params)
        tps = pyatf_params(params, restrictions)
        best = {"kernel_tuner_s": math.inf, "pyatf_s": math.inf}
        mine = None
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(ROUNDS):
                took, tuner = kernel_tuner(params, restrictions)
                best["kernel_tuner_s"] = min(best["kernel_tuner_s"], took)
                took, tree = pyatf(tps)
                best["pyatf_s"] = min(best["pyatf_s"], took)
                found = ours(binary, path, folder)
                mine = found if mine is None or found["built_s"] < mine["built_s"] else mine
            lines = pathlib.Path(folder, mine["space"] + ".csv").read_text().splitlines()
        points = {tuple(line.split(",")) for line in lines}
        assert len(points) == len(lines) == mine["legal"]
        row = {**mine, **best, "restrictions": len(restrictions)}
        row["equal_kernel_tuner"] = points == {tuple(map(str, config)) for config in tuner.list}
        row["equal_pyatf"] = points == all_of_pyatf(tps, names)
        row["set_over_kernel_tuner"] = best["kernel_tuner_s"] / mine["built_s"]
        row["set_over_pyatf"] = best["pyatf_s"] / mine["built_s"]
        row["list_over_kernel_tuner"] = best["kernel_tuner_s"] / mine["listed_s"]
        rows.append(row)
        print(json.dumps(row), flush=True)
    mean = lambda key: math.exp(sum(math.log(r[key]) for r in rows) / len(rows))
    keys = ["set_over_kernel_tuner", "set_over_pyatf", "list_over_kernel_tuner"]
    print(json.dumps({"geomean": {k: mean(k) for k in keys}, "equal": all(r["equal_kernel_tuner"] and r["equal_pyatf"] for r in rows)}))


if __name__ == "__main__":
    main()
