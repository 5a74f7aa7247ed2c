#!/usr/bin/env python3
"""Runs Kernel Tuner's simulation mode on cache files and records how close to the optimum it comes.

Called by compare-kernel-tuner.sh. One JSON line a file: the fraction of the optimum after each budget of unique
evaluations, one list a seed, and the seconds a run took.
"""
import argparse
import contextlib
import gzip
import io
import json
import os
import random
import tempfile
import time

import numpy
import kernel_tuner


def load(path):
    opened = gzip.open(path, "rt") if path.endswith(".gz") else open(path)
    with opened as f:
        return json.load(f)


def slim(cache):
    """The cache without single run times, which the search does not read and which make loading slow."""
    keep = {k: {f: x for f, x in v.items() if f != "times"} for k, v in cache["cache"].items()}
    return {**cache, "cache": keep}


def seconds(entry):
    t = entry.get("time")
    return t if isinstance(t, (int, float)) else float("inf")


def restrictions(cache, t1):
    """The constraints of the description; without one, membership of the recorded set."""
    if t1:
        return [c["Expression"] for c in t1["ConfigurationSpace"].get("Conditions", [])]
    recorded = set(cache["cache"])
    keys = cache["tune_params_keys"]
    return lambda p: ",".join(str(p[k]) for k in keys) in recorded


def run(cache, t1, path, strategy, budget, seed):
    random.seed(seed)
    numpy.random.seed(seed)
    params = {k: list(cache["tune_params"][k]) for k in cache["tune_params_keys"]}
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        results, _ = kernel_tuner.tune_kernel(
            cache["kernel_name"], "", cache.get("problem_size", 1), [], params,
            restrictions=restrictions(cache, t1), strategy=strategy,
            strategy_options={"max_fevals": budget}, cache=path, simulation_mode=True, verbose=False, quiet=True,
        )
    seen, order = set(), []
    for r in results:
        key = ",".join(str(r[k]) for k in cache["tune_params_keys"])
        if key not in seen:
            seen.add(key)
            order.append(seconds(r))
    return order


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--strategy", default="adaptive_tabu_greywolf")
    ap.add_argument("--budgets", default="25,50,100,200,400")
    ap.add_argument("--seeds", type=int, default=100)
    ap.add_argument("--t1", default="", help="folder with NAME.T1.json; NAME is the file's name up to the first '-'")
    ap.add_argument("files", nargs="+")
    a = ap.parse_args()
    budgets = [int(b) for b in a.budgets.split(",")]
    for file in a.files:
        cache = slim(load(file))
        name = os.path.basename(file).removesuffix(".gz").removesuffix(".json")
        t1 = os.path.join(a.t1, name.split("-")[0] + ".T1.json") if a.t1 else ""
        t1 = load(t1) if t1 and os.path.exists(t1) else None
        optimum = min(map(seconds, cache["cache"].values()))
        fractions, took = [], []
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cache.json")
            with open(path, "w") as f:
                json.dump(cache, f)
            for seed in range(a.seeds):
                start = time.perf_counter()
                order = run(cache, t1, path, a.strategy, max(budgets), seed)
                took.append(time.perf_counter() - start)
                fractions.append([optimum / min(order[:b]) for b in budgets])
        line = {"space": name, "strategy": a.strategy, "budgets": budgets, "fractions": fractions,
                "seconds_a_run": sum(took) / len(took)}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
