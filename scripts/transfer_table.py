#!/usr/bin/env python3
"""What `plan` makes of a device that it knows only by its features, beside the same device tuned.

usage: transfer_table.py KERNEL INPUTS --blind DIR --tuned DIR [--device "OPTIONS"] [--program P] [--json FILE]

DIR are homes: `blind` has the repository of other devices and no profile of this one, `tuned` a profile. For each input (see
choice_table.py) `plan --top 0` and `plan --top 5 --budget 0s` are asked of the blind home and `plan` of the tuned one; then all three
answers are timed in turn (`run --config`), three times, and the fraction is the tuned answer's median time over the other's.
"""
import json, shlex, statistics, sys

from choice_table import arguments, call, inputs


def main():
    parser = arguments(__doc__)
    parser.add_argument("--blind", required=True)
    parser.add_argument("--tuned", required=True)
    parser.add_argument("--device", default="")
    options = parser.parse_args()
    device = shlex.split(options.device)
    rows = []
    for line in inputs(options.inputs):
        question = [options.kernel, *line.split(), *device]

        def plan(home, *how):
            return call(options.program, home, "plan", *question, "--fresh", *how)

        answers = {
            "blind": plan(options.blind, "--top", "0"),
            "top5": plan(options.blind, "--top", "5", "--budget", "0s"),
            "tuned": plan(options.tuned),
        }
        times = {name: [] for name in answers}
        for _ in range(3):
            for name, answer in answers.items():
                config = ",".join(f"{k}={v}" for k, v in answer["config"].items())
                named = [answer["kernel"], *question[1:]]
                done = call(options.program, options.blind, "run", *named, "--config", config, "--baselines", "none")
                times[name].append(done["time_s"])
        median = {name: statistics.median(found) for name, found in times.items()}
        row = {"input": line, "knowledge": answers["blind"]["knowledge"], "blind": median["tuned"] / median["blind"],
               "top5": median["tuned"] / median["top5"], "tuned_s": median["tuned"]}
        rows.append(row)
        print(f"{row['blind']:.3f} {row['top5']:.3f}  {row['knowledge']:9} {median['tuned']:.3e} s  {line}", flush=True)
    mean = lambda name: sum(row[name] for row in rows) / len(rows)
    summary = {"inputs": len(rows), "blind": mean("blind"), "top5": mean("top5"),
               "knowledge": sorted({row["knowledge"] for row in rows})}
    print(json.dumps(summary))
    if options.json:
        with open(options.json, "w") as out:
            json.dump({"command": " ".join(sys.argv), **summary, "rows": rows}, out, indent=1)


if __name__ == "__main__":
    main()
