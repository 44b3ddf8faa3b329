#!/usr/bin/env python3
"""Compares ways of training at the same privacy budget, with equal tuning effort.

    bench/screen.py --results FILE.jsonl [--cudp build/cudp] [--data-dir data] [--out FOLDER]
        [--presets mnist-hf,adult-logistic,imdb-mean] [--epsilons 1,3] [--ways poisson,allocation]
    bench/screen.py --results FILE.jsonl --rates 0.5 --seeds 31,32,33,34,35 [the same options]
    bench/screen.py --results FILE.jsonl --table

A cell is a preset, an epsilon and a way of training. In each cell every learning rate of a grid is
trained with the tuning seeds. The rate with the highest mean test accuracy is trained with the
seeds, whose mean and standard deviation the table shows. The grids of all ways have the same length.
Epsilon is that of one training: the tuning is not private.

With --rates nothing is tuned: each rate is trained with the seeds, to compare what led a cell with
other seeds.

A finished cell is a line of FILE.jsonl. A cell that is in the file is not trained again.
"""
import argparse
import csv
import itertools
import json
import pathlib
import shutil
import statistics
import subprocess
import sys

# Settings at epsilon 1 that differ from the preset's, and the middle of the grid of learning rates.
# The optimizer is the preset's unless the way has one.
PRESETS = {
    "mnist-hf": {"at 1": ["--batch", "4096", "--epochs", "20"], "momentum": 4.0, "adam": 0.003},
    "fashion-hf": {"at 1": ["--batch", "4096", "--epochs", "20"], "momentum": 4.0, "adam": 0.003},
    "adult-logistic": {"at 1": [], "momentum": 1.0, "adam": 0.05},
    "bank-logistic": {"at 1": [], "momentum": 4.0, "adam": 0.1},
    "imdb-mean": {"at 1": [], "momentum": 20.0, "adam": 0.2},
}
FACTORS = (0.35, 0.7, 1.4, 2.8)
# Optimizer (None: the preset's) and further settings of each way.
WAYS = {
    "poisson": (None, []),
    "allocation": (None, ["--sampling", "allocation"]),
    "momentum": ("momentum", []),
    "adam": ("adam", []),
}


def optimizer_of(preset, way):
    return WAYS[way][0] or ("adam" if preset == "imdb-mean" else "momentum")


def rates(preset, way):
    middle = PRESETS[preset][optimizer_of(preset, way)]
    return [float(f"{middle * f:.2g}") for f in FACTORS]


def sweep(options, preset, epsilon, way, lrs, seeds):
    """Trains every learning rate with every seed. Returns {lr: [test accuracy in %, ...]}."""
    folder = pathlib.Path(options.out) / f"{preset}-{epsilon:g}-{way}-{'-'.join(seeds)}"
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run(
        [options.cudp, "sweep", "--preset", preset, "--data-dir", options.data_dir, "--out", folder,
         "--epsilon", f"{epsilon:g}", *(PRESETS[preset]["at 1"] if epsilon == 1 else []),
         "--optimizer", optimizer_of(preset, way), *WAYS[way][1], "--seed", ",".join(seeds),
         "--lr", ",".join(f"{lr:g}" for lr in lrs), "--jobs", "1", "--quiet"],
        check=True, stdout=subprocess.DEVNULL)
    found = {lr: [] for lr in lrs}
    with open(folder / "private" / "runs.csv", newline="") as file:
        for row in csv.DictReader(file):
            lr = float(row["lr"]) if "lr" in row else lrs[0]
            found[lr].append(100.0 * float(row["test_accuracy"]))
    shutil.rmtree(folder)
    return found


def cell(options, preset, epsilon, way):
    tuned = sweep(options, preset, epsilon, way, rates(preset, way), options.tuning_seeds)
    best = max(tuned, key=lambda lr: statistics.mean(tuned[lr]))
    found = sweep(options, preset, epsilon, way, [best], options.seeds)[best]
    return {"preset": preset, "epsilon": epsilon, "way": way, "tuned": tuned, "lr": best,
            "accuracy": found}


def again(options, preset, epsilon, way, lr):
    """Trains one learning rate with the seeds, without tuning."""
    found = sweep(options, preset, epsilon, way, [lr], options.seeds)[lr]
    return {"preset": preset, "epsilon": epsilon, "way": way, "lr": lr, "seeds": options.seeds,
            "accuracy": found}


def again_text(c):
    a = c["accuracy"]
    return (f"{c['preset']}, epsilon {c['epsilon']:g}, {c['way']}, lr {c['lr']:g}, seeds "
            f"{','.join(c['seeds'])}: {statistics.mean(a):.2f} +- {statistics.stdev(a):.2f}")


def read(path):
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def table(cells):
    trained_again = [again_text(c) for c in cells if "seeds" in c]
    cells = [c for c in cells if "seeds" not in c]
    ways = list(dict.fromkeys(c["way"] for c in cells))
    rows = ["| preset | epsilon | " + " | ".join(ways) + " |", "|---" * (2 + len(ways)) + "|"]
    for preset, epsilon in dict.fromkeys((c["preset"], c["epsilon"]) for c in cells):
        texts = []
        for way in ways:
            found = [c for c in cells if (c["preset"], c["epsilon"], c["way"]) == (preset, epsilon, way)]
            a = found[0]["accuracy"] if found else []
            texts.append(f"{statistics.mean(a):.2f} +- {statistics.stdev(a):.2f} (lr {found[0]['lr']:g})" if a else "")
        rows.append(f"| `{preset}` | {epsilon:g} | " + " | ".join(texts) + " |")
    return "\n".join(rows + trained_again)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    names = lambda text: text.split(",")
    parser.add_argument("--results", required=True, type=pathlib.Path)
    parser.add_argument("--cudp", default="build/cudp")
    parser.add_argument("--data-dir", default="data")
    parser.add_argument("--out", default="screen", help="folder of the trainings, which are deleted")
    parser.add_argument("--presets", type=names, default=["adult-logistic", "imdb-mean", "mnist-hf"])
    parser.add_argument("--epsilons", type=lambda text: [float(e) for e in names(text)], default=[1.0, 3.0])
    parser.add_argument("--ways", type=names, default=["poisson", "allocation"])
    parser.add_argument("--seeds", type=names, default=["1", "2", "3"])
    parser.add_argument("--tuning-seeds", type=names, default=["11"])
    parser.add_argument("--rates", type=lambda text: [float(lr) for lr in names(text)],
                        help="train these learning rates with the seeds, without tuning")
    parser.add_argument("--table", action="store_true", help="print FILE.jsonl as a table")
    options = parser.parse_args()
    if not options.table:
        pathlib.Path(options.out).mkdir(parents=True, exist_ok=True)
        key = lambda c: (c["preset"], c["epsilon"], c["way"], *(
            (c["lr"], *c["seeds"]) if "seeds" in c else ()))
        done = {key(c) for c in read(options.results)}
        for preset, epsilon, way, lr in itertools.product(
                options.presets, options.epsilons, options.ways, options.rates or [None]):
            if (preset, epsilon, way, *((lr, *options.seeds) if lr is not None else ())) in done:
                continue
            result = (cell(options, preset, epsilon, way) if lr is None
                      else again(options, preset, epsilon, way, lr))
            with options.results.open("a") as file:
                file.write(json.dumps(result) + "\n")
    print(table(read(options.results)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
