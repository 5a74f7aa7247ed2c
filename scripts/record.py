#!/usr/bin/env python3
"""Runs commands and keeps what they answer as a record, with the commit, the day and the machine.

usage: record.py FILE.json [--note TEXT] [--data FOLDER] [--without LIBRARIES] COMMAND...

Each COMMAND is a line of tilewright's arguments without its name, such as 'select evaluate DATA/mm-a100.csv --method auto';
DATA stands for the folder of data sets, which is not written down. `--json` is added. A record that is there is replaced.
The program is TILEWRIGHT, or target/release/tilewright. A `bench` beside fewer libraries than scripts/baselines.sh installs
says more than it measured: it is refused, unless --without names those that cannot be had, such as `mkl,onednn`.
"""
import argparse
import datetime
import json
import os
import shlex
import subprocess
import sys

# Of a long answer, what nobody quotes.
DROPPED = {"each", "reason", "fits_by_source"}


def trimmed(value, key=None):
    """What is kept of an answer; of a file, where it lies on the machine is nobody's business."""
    if key == "path" and isinstance(value, str):
        return os.path.basename(value)
    if isinstance(value, dict):
        return {k: trimmed(v, k) for k, v in value.items() if k not in DROPPED}
    return [trimmed(v) for v in value] if isinstance(value, list) else value


def answer(program, line, data):
    words = [word.replace("DATA", data) for word in shlex.split(line)]
    found = subprocess.run([program, *words, "--json"], check=False, capture_output=True, text=True)
    if found.returncode != 0:
        sys.exit(f"{line}: exit code {found.returncode}\n{found.stdout}{found.stderr}")
    return json.loads(found.stdout)


def check_libraries(doctor, lines, without):
    """Ends the program where a `bench` would compare with fewer libraries than a reader expects."""
    absent = [library for library in doctor["baselines_missing"] if library["name"] not in without]
    if absent and any(shlex.split(line)[:1] == ["bench"] for line in lines):
        reasons = "; ".join(f"{library['name']}: {library['reason']}" for library in absent)
        sys.exit(f"libraries to compare with are missing ({reasons}): install them, or name them with --without")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("file")
    parser.add_argument("--note")
    parser.add_argument("--data", default="")
    parser.add_argument("--without", default="", help="names of libraries, with commas, that a bench may lack")
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()
    program = os.environ.get("TILEWRIGHT", "target/release/tilewright")
    git = subprocess.run(["git", "describe", "--always", "--dirty"], check=True, capture_output=True, text=True)
    doctor = answer(program, "doctor", "")
    check_libraries(doctor, args.command, args.without.split(","))
    runs = []
    for line in args.command:
        print(f"tilewright {line}", file=sys.stderr, flush=True)
        runs.append({"command": f"tilewright {line}", "report": trimmed(answer(program, line, args.data))})
    record = {"device": doctor["device"], "commit": git.stdout.strip(), "date": datetime.date.today().isoformat()}
    if args.note:
        record["notes"] = args.note
    os.makedirs(os.path.dirname(args.file) or ".", exist_ok=True)
    with open(args.file + ".part", "w") as out:
        json.dump({**record, "runs": runs}, out, indent=1, sort_keys=True)
        out.write("\n")
    os.replace(args.file + ".part", args.file)


if __name__ == "__main__":
    main()
