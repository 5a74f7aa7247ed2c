#!/usr/bin/env python3
"""Runs Kernel Tuner's simulation mode on recorded spaces and keeps how close to the optimum each run comes.

Called by compare-kernel-tuner.sh. Spaces are cache files (JSON, packed or not) or Tilewright datasets (CSV with its
sidecar). One file a space is written into the folder: a JSON line a seed with the fraction of the optimum at every
improvement, [unique evaluations, fraction], and the seconds the run took. Seeds that are there already are left out, so a
run that was ended goes on where it was.
"""
import argparse
import contextlib
import copy
import io
import json
import os
import random
import tempfile
import time

import numpy
import kernel_tuner
from kernel_tuner.searchspace import Searchspace

from kernel_tuner_costs import load, name_of, seconds


def restrictions(cache, t1):
    """The constraints of the description; without one, membership of the recorded set."""
    if t1:
        return [c["Expression"] for c in t1["ConfigurationSpace"].get("Conditions", [])]
    recorded = set(cache["cache"])
    keys = cache["tune_params_keys"]

    # A lambda would be taken apart as source text.
    def is_recorded(p):
        return ",".join(str(p[k]) for k in keys) in recorded

    return is_recorded


def build_once():
    """Lets all runs on a space share one built space: building it anew for every seed takes longer than the searches."""
    built = {}

    def shared(tune_params, restrictions, *others, **named):
        if not built:
            built["space"] = Searchspace(tune_params, restrictions, *others, **named)
        return copy.copy(built["space"])

    kernel_tuner.interface.Searchspace = shared


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


def improvements(order, optimum):
    best, steps = float("inf"), []
    for i, t in enumerate(order, 1):
        if t < best:
            best = t
            steps.append([i, optimum / t])
    return steps


def done(path):
    if not os.path.exists(path):
        return set()
    with open(path) as f:
        return {json.loads(line)["seed"] for line in f if line.endswith("\n")}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--strategy", default="adaptive_tabu_greywolf")
    ap.add_argument("--budget", type=int, default=400)
    ap.add_argument("--seeds", type=int, default=100)
    ap.add_argument("--t1", default="", help="folder with NAME.T1.json; NAME is the file's name up to the first '-'")
    ap.add_argument("--out", required=True, help="folder of the results")
    ap.add_argument("files", nargs="+")
    a = ap.parse_args()
    os.makedirs(a.out, exist_ok=True)
    for file in a.files:
        name = name_of(file)
        out = os.path.join(a.out, f"{name}.{a.strategy}.jsonl")
        missing = [s for s in range(a.seeds) if s not in done(out)]
        if not missing:
            continue
        cache = load(file)
        t1 = os.path.join(a.t1, name.split("-")[0] + ".T1.json") if a.t1 else ""
        t1 = load_t1(t1) if t1 and os.path.exists(t1) else None
        optimum = min(map(seconds, cache["cache"].values()))
        build_once()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cache.json")
            with open(path, "w") as f:
                json.dump(cache, f)
            for seed in missing:
                start = time.perf_counter()
                order = run(cache, t1, path, a.strategy, a.budget, seed)
                line = {"seed": seed, "steps": improvements(order, optimum), "evaluations": len(order),
                        "seconds": time.perf_counter() - start}
                with open(out, "a") as f:
                    f.write(json.dumps(line) + "\n")


def load_t1(path):
    with open(path) as f:
        return json.load(f)


if __name__ == "__main__":
    main()
