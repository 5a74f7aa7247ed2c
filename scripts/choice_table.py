#!/usr/bin/env python3
"""How good the variant is that `plan` chooses for inputs that nothing was trained on.

For each input: `plan` decides (add --fresh to its options to decide anew), then `run` times all variants of the computation,
and the libraries found, beside each other. The fraction is the best time over the chosen variant's time.

usage: choice_table.py KERNEL INPUTS [--program P] [--home DIR] [--plan "OPTIONS"] [--run "OPTIONS"] [--json FILE]

INPUTS is a file with one input a line (key=value fields), or `gemm:N:SEED`, or `matrices:N:SEED:FOLDER`, which draws N inputs and
writes Matrix Market files for half of the matrices into the folder.
"""
import argparse, json, math, os, random, shlex, subprocess, sys


def gemm(count, seed):
    """Sizes on a logarithmic scale, at most 2e9 operations, every layout, both precisions."""
    rng = random.Random(seed)
    while count:
        m, n, k = (round(math.exp(rng.uniform(math.log(8), math.log(6000)))) for _ in range(3))
        if 2e5 <= 2 * m * n * k <= 2e9 and (m * k + k * n + m * n) < 8e6:
            yield f"m={m} n={n} k={k} dtype={rng.choice(['f32', 'f64'])} layout={rng.choice(['nn', 'nt', 'tn', 'tt'])}"
            count -= 1


def market(path, rows, cols, entries):
    with open(path, "w") as out:
        out.write("%%MatrixMarket matrix coordinate real general\n")
        out.write(f"{rows} {cols} {len(entries)}\n")
        out.writelines(f"{i + 1} {j + 1} {v:.6f}\n" for (i, j), v in entries.items())


def drawn(kind, rows, rng):
    """Matrices that none of the generators makes."""
    entries = {}
    put = lambda i, j: entries.__setitem__((i, j), rng.uniform(-1, 1))
    if kind == "poisson-permuted":
        side = int(rows**0.5)
        order = list(range(side * side))
        rng.shuffle(order)
        for y in range(side):
            for x in range(side):
                for dy, dx in ((0, 0), (0, 1), (1, 0), (0, -1), (-1, 0)):
                    if 0 <= y + dy < side and 0 <= x + dx < side:
                        put(order[y * side + x], order[(y + dy) * side + x + dx])
        return side * side, side * side, entries
    cols = max(rows // 20, 1) if kind == "tall" else rows
    for i in range(rows):
        put(i, i % cols)
        if kind == "arrow":
            put(0, i), put(i, 0), put(i, rows - 1)
        elif kind == "tree":
            parent = (i - 1) // 2 if i else 0
            put(i, parent), put(parent, i)
        elif kind == "wide-rows":
            for _ in range(rng.choice([1, 2, 3, 60])):
                put(i, rng.randrange(rows))
        elif kind == "two-bands":
            for distance in (1, 2, 37):
                put(i, (i + distance) % rows)
        elif kind == "tall":
            for _ in range(4):
                put(i, rng.randrange(cols))
    return rows, cols, entries


def matrices(count, seed, folder):
    """Every other one a file of a kind that no generator makes, every other one a generator with a seed that training never draws."""
    rng = random.Random(seed)
    os.makedirs(folder, exist_ok=True)
    kinds = ["poisson-permuted", "arrow", "tree", "wide-rows", "two-bands", "tall"]
    for at in range(count):
        rows = round(math.exp(rng.uniform(math.log(2000), math.log(150_000))))
        few, own = rng.randint(2, 24), 9_000_000 + at
        if at % 2 == 0:
            kind = kinds[at // 2 % len(kinds)]
            path = os.path.join(folder, f"{at}-{kind}.mtx")
            market(path, *drawn(kind, rows, rng))
            yield f"matrix={path}"
            continue
        side = rng.randint(40, 350)
        yield rng.choice([
            f"matrix=stencil points=5 side={side}",
            f"matrix=banded rows={rows} half={few} density={rng.choice([0.3, 0.7, 1])} seed={own}",
            f"matrix=diagonals rows={rows} count={few} seed={own}",
            f"matrix=uniform rows={rows} per_row={few} seed={own}",
            f"matrix=power-law rows={rows} mean={few} exponent={rng.choice([2, 2.5, 3])} longest=2000 seed={own}",
            f"matrix=blocks blocks={rows // few} size={few} per_row=3 seed={own}",
            f"matrix=rmat scale={rng.randint(11, 17)} per_row={few} seed={own}",
        ])


def inputs(text):
    kind, *rest = text.split(":")
    if kind == "gemm":
        return list(gemm(int(rest[0]), int(rest[1])))
    if kind == "matrices":
        return list(matrices(int(rest[0]), int(rest[1]), rest[2]))
    with open(text) as lines:
        return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def call(program, home, *arguments):
    done = subprocess.run([program, *arguments, "--json"], capture_output=True, text=True,
                          env={**os.environ, **({"TILEWRIGHT_HOME": home} if home else {})})
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)}: {done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def arguments(doc):
    """What every table takes."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernel")
    parser.add_argument("inputs")
    parser.add_argument("--program", default="target/release/tilewright")
    parser.add_argument("--json")
    return parser


def main():
    parser = arguments(__doc__)
    parser.add_argument("--home")
    parser.add_argument("--plan", default="")
    parser.add_argument("--run", default="")
    options = parser.parse_args()
    rows = []
    for line in inputs(options.inputs):
        fields = line.split()
        plan = call(options.program, options.home, "plan", options.kernel, *fields, *shlex.split(options.plan))
        run = call(options.program, options.home, "run", options.kernel, *fields, *shlex.split(options.run))
        times = {v["name"]: v["time_s"] for v in run.get("variants", []) + run.get("baselines", []) if v["time_s"]}
        if not run.get("variants"):
            times[run["kernel"]] = run["time_s"]
        chosen = plan["kernel"]
        mine = times.get(chosen) or times.get(chosen.rsplit(".", 1)[0].split(".", 1)[-1])
        best = min(times, key=times.get)
        rows.append({"input": line, "chosen": chosen, "best": best, "fraction": times[best] / mine if mine else 0.0,
                     "knowledge": plan["knowledge"], "features_s": run.get("features_s"), "best_s": times[best]})
        last = rows[-1]
        print(f"{last['fraction']:.3f}  {chosen:28} best {best:28} {times[best]:.3e} s  {line}", flush=True)
    fractions = [row["fraction"] for row in rows]
    summary = {"inputs": len(rows), "mean": sum(fractions) / len(rows), "worst": min(fractions),
               "below_0.9": sum(f < 0.9 for f in fractions)}
    print(json.dumps(summary))
    if options.json:
        with open(options.json, "w") as out:
            json.dump({"command": " ".join(sys.argv), **summary, "rows": rows}, out, indent=1)


if __name__ == "__main__":
    main()
