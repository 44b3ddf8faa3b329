#!/usr/bin/env python3
"""Generates a table with known truth: a CSV file, its schema, and test rows of the same source.

    bench/generate_table.py FOLDER NAME --rows 20000 --positive 0.035 [--classes K] [--regression R2]
        [--rows-of-person N] [--skewed] [--max-target 60] [--categories 2,3,5,8,12] [--seed S] [--test-rows 10000]

writes FOLDER/NAME.csv, NAME.test.csv and NAME.toml. Every row is drawn independently of the others:

- six numbers, normal with mean 0 and variance 1, bounded by -4 and 4 in the schema
- two counts, the whole part of an exponential number of mean 2, bounded by 0 and 20
- five categories of 2, 3, 5, 8 and 12 values, or those of --categories; value k has a share in proportion to 1 / (k + 1)
- two flags, which are 1 in 20 and in 5 of 100 rows

With --rows-of-person N, N rows in a row have the same text in a column "person", which is the schema's unit of privacy.

A score is a sum of one weight for each number, count, flag and value of a category; weights are
normal, by the seed, and the score is scaled to mean 0 and standard deviation 1.6 (over 20,000 rows
of its own). What follows from it:

- two classes: positive with probability 1 / (1 + exp(-(a + score))), where a gives the share asked for
- K classes: softmax of K such scores
- regression: score + noise, with the share R2 of the variance that the score explains; --skewed takes
  exp(score) of a score that is scaled down, a length of stay: most are short, few are long. The schema's
  bounds are then 0 and --max-target (60); else -8 and 8, times the target's standard deviation.
"""
import argparse
import math
import pathlib
import random

SIZES = (2, 3, 5, 8, 12)
SPREAD = 1.6


class Source:
    """Rows, and the scores that decide their answers."""

    def __init__(self, seed, scores, sizes=SIZES):
        self.random = random.Random(seed)
        self.sizes = sizes
        self.shares = [[1.0 / (k + 1) for k in range(size)] for size in sizes]
        self.weights = [self.draw_weights() for _ in range(scores)]
        sample = [self.row() for _ in range(20000)]
        self.scales = []
        for w in self.weights:
            raw = [self.raw_score(w, row) for row in sample]
            mean = sum(raw) / len(raw)
            deviation = math.sqrt(sum((r - mean) ** 2 for r in raw) / len(raw))
            self.scales.append((mean, SPREAD / deviation))
        self.sample = [self.scores(row) for row in sample]

    def draw_weights(self):
        normal = self.random.gauss
        return {"numbers": [normal(0, 1) for _ in range(6)], "counts": [normal(0, 0.3) for _ in range(2)],
                "categories": [[normal(0, 1) for _ in range(size)] for size in self.sizes],
                "flags": [normal(0, 1.5) for _ in range(2)]}

    def row(self):
        r = self.random
        return ([r.gauss(0, 1) for _ in range(6)], [int(r.expovariate(0.5)) for _ in range(2)],
                [r.choices(range(size), shares)[0] for size, shares in zip(self.sizes, self.shares)],
                [int(r.random() < share) for share in (0.2, 0.05)])

    @staticmethod
    def raw_score(w, row):
        numbers, counts, categories, flags = row
        return (sum(a * x for a, x in zip(w["numbers"], numbers)) + sum(a * x for a, x in zip(w["counts"], counts))
                + sum(a[k] for a, k in zip(w["categories"], categories)) + sum(a * x for a, x in zip(w["flags"], flags)))

    def scores(self, row):
        return [scale * (self.raw_score(w, row) - mean) for w, (mean, scale) in zip(self.weights, self.scales)]


def intercept(scores, share):
    """The a with mean 1 / (1 + exp(-(a + score))) = share."""
    low, high = -20.0, 20.0
    for _ in range(60):
        a = 0.5 * (low + high)
        mean = sum(1.0 / (1.0 + math.exp(-(a + s[0]))) for s in scores) / len(scores)
        low, high = (a, high) if mean < share else (low, a)
    return low


def answer_of(source, args):
    """Returns what draws a row's answer from its scores, and the answer's row of the schema."""
    r = source.random
    if args.regression:
        noise = SPREAD * math.sqrt(1.0 / args.regression - 1.0)
        if args.skewed:
            return (lambda s: f"{min(math.exp(1.2 + 0.22 * (s[0] + r.gauss(0, noise))), 365.0):.2f}",
                    f'kind = "target", min = 0, max = {args.max_target:g}')
        bound = 8.0 * SPREAD / math.sqrt(args.regression)
        return (lambda s: f"{s[0] + r.gauss(0, noise):.3f}", f'kind = "target", min = {-bound:.1f}, max = {bound:.1f}')
    if args.classes > 2:
        def classes(s):
            return r.choices(range(args.classes), [math.exp(x) for x in s])[0]
        names = ", ".join(f'"{k}"' for k in range(args.classes))
        return classes, f'kind = "label", values = [{names}]'
    a = intercept(source.sample, args.positive)
    return (lambda s: int(r.random() < 1.0 / (1.0 + math.exp(-(a + s[0]))))), 'kind = "label", values = ["0", "1"]'


def write(path, source, answer, rows, of_person=0):
    names = [f"x{i}" for i in range(6)] + ["n0", "n1"] + [f"c{i}" for i in range(len(source.sizes))] + ["f0", "f1", "y"]
    with open(path, "w") as out:
        out.write(",".join((["person"] if of_person else []) + names) + "\n")
        for i in range(rows):
            row = source.row()
            numbers, counts, categories, flags = row
            cells = [f"{x:.3f}" for x in numbers] + [str(k) for k in counts] + [f"v{k}" for k in categories]
            if of_person:
                cells.insert(0, f"P{i // of_person}")
            out.write(",".join(cells + [str(k) for k in flags] + [str(answer(source.scores(row)))]) + "\n")


def schema(name, answer, sizes, of_person=0):
    columns = ['{name = "person", kind = "ignore"}'] if of_person else []
    columns += [f'{{name = "x{i}", kind = "numeric", min = -4, max = 4}}' for i in range(6)]
    columns += [f'{{name = "n{i}", kind = "numeric", min = 0, max = 20}}' for i in range(2)]
    for i, size in enumerate(sizes):
        values = ", ".join(f'"v{k}"' for k in range(size))
        columns.append(f'{{name = "c{i}", kind = "categorical", values = [{values}]}}')
    columns += [f'{{name = "f{i}", kind = "numeric", min = 0, max = 1}}' for i in range(2)]
    columns.append(f'{{name = "y", {answer}}}')
    unit = f'unit = "person"\nmax_rows = {of_person}\n' if of_person else ""
    return f'name = "{name}"\n{unit}columns = [\n  ' + ",\n  ".join(columns) + ",\n]\n"


def generate(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("name")
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--test-rows", type=int, default=10000)
    parser.add_argument("--positive", type=float, default=0.5)
    parser.add_argument("--classes", type=int, default=2)
    parser.add_argument("--regression", type=float, help="the R2 of the best model")
    parser.add_argument("--skewed", action="store_true")
    parser.add_argument("--max-target", type=float, default=60.0, help="the upper bound of a skewed target")
    parser.add_argument("--categories", default=",".join(map(str, SIZES)), help="how many values each has")
    parser.add_argument("--rows-of-person", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    sizes = tuple(int(size) for size in args.categories.split(","))
    source = Source(args.seed, args.classes if args.classes > 2 else 1, sizes)
    answer, kind = answer_of(source, args)
    args.folder.mkdir(parents=True, exist_ok=True)
    (args.folder / f"{args.name}.toml").write_text(schema(args.name, kind, sizes, args.rows_of_person))
    write(args.folder / f"{args.name}.csv", source, answer, args.rows, args.rows_of_person)
    write(args.folder / f"{args.name}.test.csv", source, answer, args.test_rows, args.rows_of_person)


if __name__ == "__main__":
    generate()
