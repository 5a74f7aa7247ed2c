#!/usr/bin/env python3
"""Fills fuzz/corpus with valid texts for every target: the tests' own files, and what `tilewright tune` left in a home folder.

    fuzz/seeds.py [HOME_FOLDER]    (default: TILEWRIGHT_HOME)

Models are read from `*.json` in the home folder, where `tilewright model fit ... --layers 3 --out HOME/small.json` puts one.
"""

import json
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORPUS = ROOT / "fuzz" / "corpus"
# A seed above this is cut or left out: the fuzzer works through short texts faster.
LONGEST = 30_000

T1 = """{"General": {"BenchmarkName": "x"}, "ConfigurationSpace": {"TuningParameters": [
{"Name": "a", "Type": "int", "Values": "[1, 2] + list(range(32, 96+1, 32))"},
{"Name": "b", "Type": "int", "Values": "[2**i for i in range(0, 4)]"}, {"Name": "c", "Type": "int", "Values": [1, 2.5, true, "nn"]}],
"Conditions": [{"Expression": "a % b == 0 and not (a == 1 or b > 4)", "Parameters": []}, {"Expression": "32 <= a * b <= 128"}]}}"""
CACHE = """{"device_name": "D", "kernel_name": "k", "tune_params_keys": ["x", "y"], "tune_params": {"x": [1, 2], "y": [1, 2]},
"cache": {"1,1": {"x": 1, "y": 1, "time": 1.5, "times": [1.5]}, "1,2": {"x": 1, "y": 2, "time": "InvalidConfig"}}}"""
T4 = """{"results": [{"configuration": {"x": 1}, "invalidity": "correct", "correctness": 1, "measurements":
[{"name": "time", "value": 1.5, "unit": "ms"}], "objectives": ["time"]}], "schema_version": "1.0.0"}"""
CONSTRAINTS = ["8 % ((x * y) / x) == 0", "x in range(2, 5) and y not in (1, 2)", "max([x, y]) - min(x, y) == abs(x - y)",
               "(2 if x > y else 4) > 2.5", "int(x / 3) == len([1, 2])", "-7 // x == -4 or x ** 2 == 64", "1 < x <= y < 8"]
RULES = ["m % 4 == 0 && ks * kg <= ceil(k / u)", "if(a > b, max(a, 2.5), min(b, 3))", "log2(n) * floor(n / 3) - -7 % m",
         "!(x == 'nn') || y != \"t\"", "2 ^ k + abs(j) * 1e-3"]
WORDS = ["m=500 n=300 k=200 dtype=f64 layout=tn alpha=2 beta=0", "m=1,n=2,k=3", "batch=3 m=4 n=4 k=4 stride_a=16", "m_r=4,n_r=2"]
MATRICES = ["%%MatrixMarket matrix coordinate real general\n% c\n3 3 2\n1 1 1.5\n3 2 -2e3\n",
            "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n1 1\n3 2\n",
            "%%MatrixMarket matrix array integer skew-symmetric\n2 2\n1\n", "%%MatrixMarket matrix array real general\n2 1\n1\n2\n"]
DEVICES = ["device,cores,clock,vendor\nA100,108,1.41,nvidia\nMI100,120,,amd\n", json.dumps({
    "name": "x", "compute_capability": "9.0", "warp_size": 32, "max_threads_per_block": 1024, "max_registers_per_block": 65536,
    "max_shared_per_block": 232448, "max_warps_per_sm": 64, "max_blocks_per_sm": 32, "registers_per_sm": 65536,
    "shared_per_sm": 233472})]
FRAME = b"".join([b"TWf1", (2).to_bytes(8, "little"), (1).to_bytes(4, "little"), (3).to_bytes(8, "little"), b"{}", b"abc"])


def write(target, seeds):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds):
        seed = seed.encode() if isinstance(seed, str) else seed
        if len(seed) <= LONGEST:
            (folder / f"seed-{number}").write_bytes(seed)


def under(home, pattern):
    return [path.read_bytes() for path in sorted(home.glob(pattern))] if home else []


def enveloped(files):
    """The files themselves, and header and body without the envelope: the targets make a sound one around any contents."""
    return files + [b"\n".join(file.split(b"\n")[2:]) for file in files]


def main():
    named = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("TILEWRIGHT_HOME")
    home = pathlib.Path(named) if named else None
    data = ROOT / "crates/datasets/tests/data"
    table, sidecar = (data / "blur.csv").read_bytes(), (data / "blur.schema.json").read_bytes()
    ptx = [path.read_bytes() for path in sorted((ROOT / "crates").glob("*/tests/**/*.ptx"))]
    logs = under(home, "logs/*.log")
    lines = [b"\n".join(line[26:] for line in log.split(b"\n")[1:8]) for log in logs]
    segments = [b"\n".join(line[:6000] for line in s.split(b"\n")[1:6] if len(line) < 6000) for s in under(home, "repository/*/*/*.seg")]
    records = [b"\n".join(json.dumps(json.loads(line[17:])["record"]).encode() for line in s.split(b"\n") if line) for s in segments]
    profiles = under(home, "profiles/*.profile")
    # What `model fit --out` wrote: a perceptron of few neurons is short enough.
    models = [json.loads(file) for file in under(home, "*.json") if b'"checksum"' in file]
    bare = [json.dumps(model["model"]) for model in models]
    small = [b"\n".join([p.split(b"\n")[2], json.dumps(model).encode()]) for p in profiles for model in models]
    write("expression", RULES + CONSTRAINTS)
    write("t1", [T1, *CONSTRAINTS])
    write("words", WORDS)
    write("dataset", [table + b"\0" + sidecar, table])
    write("kernel_tuner", [CACHE, T4])
    write("ktt", [(data / "ktt.json").read_bytes()])
    write("clblast", [path.read_bytes() for path in sorted(data.glob("clblast_*.json"))])
    write("log", [b"\n".join(log.split(b"\n")[:6]) + b"\n" for log in logs] + lines)
    write("plan", enveloped(under(home, "plans/*/*.plan")))
    write("profile", small)
    write("selector", enveloped(under(home, "profiles/*.selector")))
    write("model", bare)
    write("linear", bare)
    write("ptx", ptx)
    write("matrix", MATRICES)
    write("devices", DEVICES)
    write("frame", [FRAME])
    write("records", segments + records)
    for folder in sorted(CORPUS.iterdir()):
        print(f"{folder.name:14} {len(list(folder.iterdir()))} files")


if __name__ == "__main__":
    main()
