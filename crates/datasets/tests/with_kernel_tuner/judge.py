"""What Kernel Tuner itself says of files, as one JSON document on standard output.

    judge.py tune FOLDER          tunes a function in C on this host: writes theirs.json and theirs.t4.json into the folder
    judge.py read FILE...         caches (simulated, all configurations) and T4 results (*.t4.json): best, counts, what is wrong
"""
import contextlib
import json
import pathlib
import shutil
import sys
import warnings

import jsonschema
import kernel_tuner
import numpy
from kernel_tuner import file_utils, util

# The time that a function in C returns is what Kernel Tuner takes as measured. It skips configurations that "use too much shared
# data", and stops at other faults of the compiler.
SOURCE = """
#if block == 64
#error uses too much shared data
#endif
extern "C" float f(float *a) { return 100.0f / block + 3 * unroll + scale / 8; }
"""
PARAMS = {"unroll": [4, 2, 1], "block": [16, 32, 64, 128], "scale": [0.5, 2.0, 1e-05]}

# What a result has beside its parameters.
FIELDS = {"time", "times", "compile_time", "verification_time", "benchmark_time", "strategy_time", "framework_time", "timestamp"}


def summary(results):
    """Counts, and the best configuration, by Kernel Tuner's own choice."""
    best = util.get_best_config(results, "time")
    return {
        "configs": len(results),
        "failures": sum("__error__" in result for result in results),
        "errors": sorted(str(result["__error__"]) for result in results if "__error__" in result),
        "time_ms": float(best["time"]),
        "best": {name: value for name, value in best.items() if name in results[0] and name not in FIELDS},
    }


def tune(folder):
    data = numpy.zeros(4, dtype=numpy.float32)
    cache = str(folder / "theirs.json")
    results, _ = kernel_tuner.tune_kernel("f", SOURCE, 100, [data], PARAMS, lang="C", compiler="cc", cache=cache, quiet=True)
    file_utils.store_output_file(str(folder / "theirs.t4.json"), results, PARAMS)
    return summary(results)


def simulate(path):
    """Brute force over a cache: every configuration that it has, and no other."""
    cache = util.read_cache(str(path), open_cache=False)
    keys = cache["tune_params_keys"]
    named = util.infer_args_from_cache(cache)

    # A lambda would be taken apart as source text.
    def is_recorded(p):
        return ",".join(str(p[key]) for key in keys) in cache["cache"]

    results, env = kernel_tuner.tune_kernel(
        **named, restrictions=is_recorded, cache=str(path), simulation_mode=True, strategy="brute_force", quiet=True
    )
    found = summary(results)
    found |= {"device": env["device_name"], "kernel": named["kernel_name"], "problem_size": list(named["problem_size"])}
    found |= {"simulated_ms": env["simulated_time"], "goes_on": goes_on(path)}
    file_utils.store_output_file(str(path.with_suffix(".simulated.t4.json")), results, named["tune_params"])
    return found


def goes_on(path):
    """Whether Kernel Tuner can add an entry to the file and close it again."""
    copy = str(path.with_suffix(".more"))
    shutil.copy(path, copy)
    cache = util.read_cache(copy)["cache"]
    before = len(cache)
    util.store_cache("new", {"time": 1.0}, copy, cache)
    util.close_cache(copy)
    return len(json.loads(pathlib.Path(copy).read_text())["cache"]) == before + 1


def t4(path):
    """T4 results by the schemas of the package."""
    document = json.loads(path.read_text())
    for target in ["results", "metadata"]:
        _, schema = file_utils.output_file_schema(target)
        jsonschema.validate(document, schema)
    good = [result for result in document["results"] if result["invalidity"] == "correct"]
    times = [next(m["value"] for m in result["measurements"] if m["name"] == "time") for result in good]
    best = times.index(min(times))
    return {
        "configs": len(document["results"]),
        "failures": len(document["results"]) - len(good),
        "errors": sorted(result["invalidity"] for result in document["results"] if result["invalidity"] != "correct"),
        "time_ms": times[best],
        "best": good[best]["configuration"],
        "unit": document["metadata"]["timeunit"],
    }


# Neither a device nor thread blocks are what this is about.
warnings.simplefilter("ignore")


def main():
    what, *rest = sys.argv[1:]
    paths = [pathlib.Path(path) for path in rest]
    with contextlib.redirect_stdout(sys.stderr):
        if what == "tune":
            answer = tune(paths[0])
        else:
            answer = [t4(path) if path.name.endswith(".t4.json") else simulate(path) for path in paths]
    print(json.dumps(answer))


main()
