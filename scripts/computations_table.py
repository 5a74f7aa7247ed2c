#!/usr/bin/env python3
"""What choosing comes to on each recorded device of the six computations when it is left out, in percent of exhaustive search.

usage: computations_table.py FOLDER [--holdout SPEC] [--program P] [--only NAMES] [--targets DEVICES]
                             [--without-cv-dfs] [--json FILE]

FOLDER holds NAME.csv, NAME.schema.json, NAME-profiles.csv and devices.csv. Every device (or those named) is the target of
`transfer evaluate` in turn, and learned from for the other targets:

  native        a model of the target's own training inputs (extremely randomised trees, as in all columns but CV-DFS)
  recommended   `transfer evaluate` without options
  P-DFS         --dfs p --profiles NAME-profiles.csv
  CV-DFS        --dfs cv-accuracy --learner svm: Algorithm 2 as written, with accuracy as judge and support vectors
  CV-DFS ours   --dfs cv --learner forest: the same judged by performance, with a forest
  majority, best fixed, random   what the command prints beside the recommended model
  nearest       the winner of another device on the very input that is chosen for, which was measured there: of the device
                whose features are nearest (logarithms, standardised). It needs no model, and is not possible for an unseen input.
  with features and choice   the recommended model, where the times of computing the features of the input (recorded) and of a
                choice (`select evaluate --method extra-trees`, on the target) are added to the time of every chosen variant. Every
                input is taken to lose the mean share.
"""
import argparse, csv, json, math, os, statistics, subprocess, sys, time

NAMES = ["histogram", "spmv", "sort", "bfs", "solver", "transpose"]
COLUMNS = ["native", "recommended", "P-DFS", "CV-DFS", "CV-DFS ours", "majority", "best fixed", "random", "nearest",
           "with features and choice"]
RECOMMENDED = {"native": "native", "recommended": "fraction_of_oracle", "majority": "majority", "best fixed": "fixed_best",
               "random": "random"}


def ask(options, *words):
    done = subprocess.run([options.program, *words, "--holdout", options.holdout, "--json"], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def times_of(path):
    """For every device and input the times of the variants that ran, and the time of the features."""
    found, features = {}, {}
    with open(path) as file:
        for row in csv.DictReader(file):
            where = (row["device"], row["input"])
            features[where] = float(row["features_s"])
            if row["status"] == "ok":
                found.setdefault(where, {})[row["variant"]] = float(row["time_s"])
    return found, features


def nearest(devices, target):
    """The other device with the nearest features."""
    logs = {name: [math.log(float(v)) for k, v in row.items() if k != "device"] for name, row in devices.items()}
    spreads = [statistics.pstdev(column) or 1.0 for column in zip(*logs.values())]
    far = lambda name: sum(((a - b) / s) ** 2 for a, b, s in zip(logs[name], logs[target], spreads))
    return min((name for name in devices if name != target), key=far)


def share_of_winner(found, target, other):
    shares = []
    for (device, name), times in found.items():
        there = found.get((other, name))
        if device == target and there:
            winner = min(there, key=there.get)
            shares.append(min(times.values()) / times[winner] if winner in times else 0.0)
    return statistics.mean(shares)


def with_costs(found, features, target, fraction, choice_s):
    own = [(min(times.values()), features[where]) for where, times in found.items() if where[0] == target]
    return statistics.mean(best / (best / fraction + cost + choice_s) for best, cost in own)


def row(options, name, target, devices, found, features, choice_s):
    file = os.path.join(options.folder, f"{name}.csv")
    known = ["--device-features", os.path.join(options.folder, "devices.csv")]
    transfer = lambda *more: ask(options, "transfer", "evaluate", file, "--target", target, *known, *more)
    begun = time.time()
    recommended = transfer()
    out = {column: recommended[field] for column, field in RECOMMENDED.items()}
    profiles = os.path.join(options.folder, f"{name}-profiles.csv")
    fraction = lambda *more: transfer(*more)["fraction_of_oracle"]
    out["P-DFS"] = fraction("--dfs", "p", "--profiles", profiles)
    if not options.without_cv_dfs:
        out["CV-DFS"] = fraction("--dfs", "cv-accuracy", "--learner", "svm")
        out["CV-DFS ours"] = fraction("--dfs", "cv", "--learner", "forest")
    other = nearest(devices, target)
    out["nearest"] = share_of_winner(found, target, other)
    out["with features and choice"] = with_costs(found, features, target, out["recommended"], choice_s)
    return {"computation": name, "target": target, "nearest_device": other, "choice_s": choice_s,
            "features": recommended["features"], "seconds": time.time() - begun, "shares": out}


def line(name, rows):
    def mean(column):
        shares = [r["shares"][column] for r in rows if column in r["shares"]]
        return f"{100 * statistics.mean(shares):.1f}" if shares else ""

    return "| " + " | ".join([name, *map(mean, COLUMNS)]) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--holdout", default="group:0.4")
    parser.add_argument("--program", default="target/release/tilewright")
    parser.add_argument("--only", default=",".join(NAMES))
    parser.add_argument("--targets")
    parser.add_argument("--without-cv-dfs", action="store_true", help="leave out what fits hundreds of models a target")
    parser.add_argument("--json")
    options = parser.parse_args()
    with open(os.path.join(options.folder, "devices.csv")) as file:
        devices = {row["device"]: row for row in csv.DictReader(file)}
    targets = options.targets.split(",") if options.targets else list(devices)
    rows = []
    print("| | " + " | ".join(COLUMNS) + " |")
    print("|" + "---|" * (len(COLUMNS) + 1))
    for name in options.only.split(","):
        file = os.path.join(options.folder, f"{name}.csv")
        found, features = times_of(file)
        timed = ask(options, "select", "evaluate", file, "--method", "extra-trees")["devices"]
        choices = {device["device"]: device["predict_ns"] * 1e-9 for device in timed}
        own = [row(options, name, target, devices, found, features, choices[target]) for target in targets]
        rows += own
        print(line(name, own), flush=True)
        if options.json:
            with open(options.json, "w") as out:
                json.dump({"command": " ".join(sys.argv), "holdout": options.holdout, "rows": rows}, out, indent=1)
    print(line("mean", rows))


if __name__ == "__main__":
    main()
