"""Recorded spaces for the scripts that run Kernel Tuner: its cache files (JSON, packed or not) and Tilewright datasets."""
import contextlib
import csv
import gzip
import json
import os
import sys


def name_of(path):
    return os.path.basename(path).removesuffix(".gz").removesuffix(".json").removesuffix(".csv")


def load(path):
    """A recording as a cache."""
    if path.endswith(".csv"):
        return from_dataset(path)
    opened = gzip.open(path, "rt") if path.endswith(".gz") else open(path)
    with opened as f:
        return slim(json.load(f))


def slim(cache):
    """The cache without single run times, which the search does not read and which make loading slow."""
    keep = {k: {f: x for f, x in v.items() if f != "times"} for k, v in cache["cache"].items()}
    return {**cache, "cache": keep}


def value(text):
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def from_dataset(path):
    """A dataset of one device and one input as a cache."""
    with open(path.removesuffix(".csv") + ".schema.json") as f:
        columns = json.load(f)["columns"]
    keys, clock, status = columns["config"], columns["time"]["column"], columns.get("status")
    entries = {}
    with open(path) as f:
        for row in csv.DictReader(f):
            config = {k: value(row[k]) for k in keys}
            failed = row[clock] == "" or (status and row[status["column"]] != str(status["ok"]))
            took = "RuntimeFailedConfig" if failed else float(row[clock])
            entries[",".join(str(v) for v in config.values())] = {**config, "time": took}
    params = {k: sorted({e[k] for e in entries.values()}) for k in keys}
    return {"device_name": "recorded", "kernel_name": name_of(path), "tune_params_keys": keys, "tune_params": params,
            "cache": entries}


def varied_of(path):
    """The names of the parameters that take more than one value."""
    return {k for k, values in load(path)["tune_params"].items() if len(set(map(str, values))) > 1}


def seconds(entry):
    """The time of an entry, infinite where it failed."""
    t = entry.get("time")
    return t if isinstance(t, (int, float)) and 0 < t < 1e19 else float("inf")


def costs(path):
    """The times of all configurations, infinite where one failed."""
    return [seconds(e) for e in load(path)["cache"].values()]


def twins(paths):
    """Pairs of files that hold one recording."""
    seen, out = {}, []
    for path in paths:
        key = tuple(sorted(costs(path)))
        out += [(seen[key], path)] if key in seen else []
        seen.setdefault(key, path)
    return out


if __name__ == "__main__":
    for one, other in twins(sys.argv[1:]):
        sys.exit(f"{one} and {other} are the same recording")
