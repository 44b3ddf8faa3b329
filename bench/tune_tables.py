#!/usr/bin/env python3
"""What `cudp tune` gains or loses, beside settings that were not tuned and those of its own grid.

    bench/tune_tables.py --program build/cudp --data DATA --work FOLDER --out FILE [--only patients,mnist-cnn] [--table]

- patients, shares: tables of bench/generate_table.py (seed 1; 20,000 rows, 3.5 and 30 % positive). `tune`
  has epsilon 1 at delta 1e-6 for everything, a private row count, and scores its default grid on private
  rows that it holds out. `defaults` is one training with the same budget and no flag. `grid` is one
  training of each candidate of that grid with the same budget, so that its best one was chosen outside of
  epsilon. All are measured on 10,000 test rows that none of them saw.
- adult, bank: the same with DATA/adult and DATA/bank as tables of one's own, with the model and settings of
  adult-logistic and bank-logistic (`defaults`), delta 1e-5 and a grid around them. BANK's rows are shuffled
  once, and a fifth are test rows.
- mnist: DATA/mnist, the preset mnist-hf with MNIST_EPOCHS epochs (the preset has 25, and other settings that
  were tuned outside of epsilon), epsilon 3 at delta 1e-5. The test images are public and score the
  candidates, so that the accuracy of the chosen one is that of a maximum.
- mnist-cnn: the same with the preset mnist-cnn. `defaults` is the preset as it stands, with its 40 epochs.
  Tuning and grid have CNN_EPOCHS epochs; the grid has the preset's own rate and clipping norm as a candidate.

Seeds are SEEDS (tables) and MNIST_SEEDS. FILE has one JSON line a training or tuning; what it
has is not run again. --table prints the means and standard deviations of FILE.
"""
import argparse
import gzip
import itertools
import json
import pathlib
import random
import shutil
import statistics
import subprocess
import sys

SEEDS = range(1, 11)
MNIST_SEEDS = range(1, 6)
MNIST_EPOCHS = 8
CNN_EPOCHS = 8
TABLES = {"patients": "0.035", "shares": "0.3"}
# Learning rate of the preset, and the grid around it.
REAL_TABLES = {"adult": "0.5", "bank": "4"}
REAL_GRIDS = {"adult": {"lr": ["0.1", "0.5", "2"], "clip": ["0.1", "0.5"]},
              "bank": {"lr": ["1", "4", "16"], "clip": ["0.1", "0.5"]}}
TABLE_GRID = {"clip": ["0.1", "0.5", "2"], "schedule": ["constant", "cosine"]}
MNIST_GRID = {"lr": ["1", "4", "16"], "clip": ["0.1", "0.4"]}
CNN_GRID = {"lr": ["0.1", "0.5", "2"], "clip": ["0.1", "0.4"]}
# Expected number of trainings of a tuning.
RUNS, MNIST_RUNS = 10, 5


def cells(grid):
    for values in itertools.product(*grid.values()):
        yield dict(zip(grid, values))


def flags_of(settings):
    return [word for key, value in settings.items() for word in (f"--{key}", value)]


class Bench:
    def __init__(self, args):
        self.args = args
        self.work = pathlib.Path(args.work)
        self.work.mkdir(parents=True, exist_ok=True)
        self.file = pathlib.Path(args.out)
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        self.rows = [json.loads(line) for line in lines]

    def run(self, *words):
        done = subprocess.run([self.args.program, *map(str, words)], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(map(str, words))}: {done.stderr}")
        return json.loads(done.stdout) if done.stdout else {}

    def measure(self, data, what, seed, words, measures, settings=None):
        """Runs a training or a tuning, unless FILE has it. measures: returns its figures."""
        key = {"data": data, "what": what, "seed": seed, "settings": settings or {}}
        if any(all(row[k] == v for k, v in key.items()) for row in self.rows):
            return
        out = self.work / "run"
        shutil.rmtree(out, ignore_errors=True)
        result = self.run(*words, "--seed", seed, "--out", out, "--json", "--device", "cpu")
        row = {**key, **measures(out, result)}
        if what == "tune":
            row |= {"chosen": result["settings"], "score": result["score"],
                    "candidate_epsilon": result["candidate_epsilon"]}
        self.rows.append(row)
        with self.file.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def table(self, name):
        import generate_table  # beside this file

        base = self.work / f"{name}.csv"
        if not base.exists():
            subprocess.run([sys.executable, generate_table.__file__, str(self.work), name, "--rows", "20000",
                            "--positive", TABLES[name], "--seed", "1"], check=True)
        data = ["--dataset", base, "--schema", self.work / f"{name}.toml", "--epsilon", "1", "--delta", "1e-6"]

        def figures(out, _):
            test = self.run("eval", out, "--dataset", self.work / f"{name}.test.csv", "--json", "--device", "cpu")
            return {"auc": test["auc"], "accuracy": test["test_accuracy"]}

        for seed in SEEDS:
            self.measure(name, "defaults", seed, ["train", *data], figures)
            self.measure(name, "tune", seed, ["tune", *data, "--runs", RUNS], figures)
            for cell in cells(TABLE_GRID):
                self.measure(name, "grid", seed, ["train", *data, *flags_of(cell)], figures, cell)

    def real_table(self, name):
        folder, base = pathlib.Path(self.args.data) / name, self.work / f"{name}.csv"
        test = self.work / f"{name}.test.csv"
        if name == "adult":
            base.write_bytes(gzip.decompress((folder / "adult.data.gz").read_bytes()))
            test.write_bytes(gzip.decompress((folder / "adult.test.gz").read_bytes()))
        else:
            rows = gzip.decompress((folder / "BANK.dat.gz").read_bytes()).splitlines(keepends=True)
            random.Random(1).shuffle(rows)
            test.write_bytes(b"".join(rows[:len(rows) // 5]))
            base.write_bytes(b"".join(rows[len(rows) // 5:]))
        schema = pathlib.Path(__file__).resolve().parent.parent / "runtime/data/schemas" / f"{name}.toml"
        data = ["--dataset", base, "--schema", schema, "--model", "logistic", "--epsilon", "1", "--delta", "1e-5",
                "--batch", "1024", "--epochs", "20", "--optimizer", "momentum", "--momentum", "0.9"]

        def figures(out, _):
            found = self.run("eval", out, "--dataset", test, "--json", "--device", "cpu")
            return {"auc": found["auc"], "accuracy": found["test_accuracy"]}

        grid = REAL_GRIDS[name]
        lists = [word for key, values in grid.items() for word in (f"--{key}", ",".join(values))]
        for seed in SEEDS:
            self.measure(name, "defaults", seed, ["train", *data, "--lr", REAL_TABLES[name], "--clip", "0.5"], figures)
            self.measure(name, "tune", seed, ["tune", *data, *lists, "--runs", RUNS, "--holdout", "0.2"], figures)
            for cell in cells(grid):
                self.measure(name, "grid", seed, ["train", *data, *flags_of(cell)], figures, cell)

    def mnist(self, name, preset, grid, epochs, default_epochs):
        data = ["--preset", preset, "--data-dir", self.args.data, "--epsilon", "3", "--delta", "1e-5",
                "--threads", "1"]

        def figures(_, result):
            return {"accuracy": result["test_accuracy"] if "test_accuracy" in result else float(result["score"])}

        for seed in MNIST_SEEDS:
            self.measure(name, "defaults", seed, ["train", *data, "--epochs", default_epochs], figures)
            self.measure(name, "tune", seed,
                         ["tune", *data, "--epochs", epochs, "--runs", MNIST_RUNS,
                          *[word for key, values in grid.items() for word in (f"--{key}", ",".join(values))]],
                         figures)
            for cell in cells(grid):
                self.measure(name, "grid", seed, ["train", *data, "--epochs", epochs, *flags_of(cell)], figures, cell)

    def print_table(self):
        print("| data | measure | seeds | tuned, all in epsilon | untuned | grid: worst | grid: median | grid: best |")
        print("|---|---|---|---|---|---|---|---|")
        for data, measure in (("patients", "auc"), ("patients", "accuracy"), ("shares", "auc"),
                              ("shares", "accuracy"), ("adult", "auc"), ("adult", "accuracy"),
                              ("bank", "auc"), ("bank", "accuracy"), ("mnist", "accuracy"), ("mnist-cnn", "accuracy")):
            rows = [r for r in self.rows if r["data"] == data]

            def text(chosen):
                values = [r[measure] for r in chosen]
                spread = f" +- {statistics.stdev(values):.4f}" if len(values) > 1 else ""
                return f"{statistics.mean(values):.4f}{spread}" if values else "not run"

            seeds = {r["seed"] for r in rows if r["what"] == "tune"}
            candidates = {}
            for r in rows:
                if r["what"] == "grid":
                    candidates.setdefault(json.dumps(r["settings"]), []).append(r)
            ranked = sorted(candidates.values(), key=lambda rs: statistics.mean(r[measure] for r in rs))
            if not ranked or not seeds:
                continue
            of = {what: [r for r in rows if r["what"] == what] for what in ("tune", "defaults")}
            print(f"| {data} | {measure} | {len(seeds)} | {text(of['tune'])} | {text(of['defaults'])} | "
                  f"{text(ranked[0])} | {text(ranked[len(ranked) // 2])} | {text(ranked[-1])} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/cudp")
    parser.add_argument("--data", default="data")
    parser.add_argument("--work", default="tune_work")
    parser.add_argument("--out", default="bench/results/tune.jsonl")
    parser.add_argument("--only", default="patients,shares,adult,bank,mnist,mnist-cnn")
    parser.add_argument("--table", action="store_true", help="print the table of FILE; run nothing")
    bench = Bench(parser.parse_args())
    for part in [] if bench.args.table else bench.args.only.split(","):
        if part == "mnist":
            bench.mnist(part, "mnist-hf", MNIST_GRID, MNIST_EPOCHS, MNIST_EPOCHS)
        elif part == "mnist-cnn":
            bench.mnist(part, "mnist-cnn", CNN_GRID, CNN_EPOCHS, 40)
        elif part in REAL_TABLES:
            bench.real_table(part)
        else:
            bench.table(part)
    bench.print_table()


if __name__ == "__main__":
    main()
