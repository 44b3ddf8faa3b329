#!/usr/bin/env python3
"""The evidence for the settings that tables start from (runtime/settings/table_defaults.cpp): what they
reach on public tables, beside the best settings that a search finds for each.

    bench/table_defaults.py --program build/cudp --data DATA --work FOLDER [--tables adult,r5k] [--held-back]
        [--search-only] [--out FILE]

DATA has adult/, bank/ and ipums/ as scripts/fetch_data.sh leaves them. Other tables are made by
bench/generate_table.py. The search is the same for every table: SETTINGS settings at random, one
training each, on a public row count; the BEST of them again under the seeds SEEDS, and the one with
the best mean is "best found". The rule runs with no flag but the budget, under the same seeds, with a
public and with a private row count. With a public one all of them are accounted by --accountant rdp,
which is quicker and costs them the same few per cent of noise. What is measured is AUC on test rows (of several classes, the mean
of each against the others), or R2. FILE keeps what was measured, one line a table; a table that it has
is not run again.

--held-back runs tables that the rule was not chosen on (HELD_BACK). Their search is wider: it also has
what is near the rule's own settings, other rates at its clipping norm and other clipping norms.
"""
import argparse
import gzip
import json
import math
import pathlib
import random
import re
import shutil
import statistics
import subprocess

import generate_table

SETTINGS, BEST, SEEDS = 16, 2, (11, 12, 13)
# Of a held-back table: how many of all that is tried run again, and the settings near the rule's, as
# factors of its rate and clipping norm.
BEST_HELD_BACK = 4
NEAR = ((0.25, 1), (0.5, 1), (1, 1), (2, 1), (4, 1), (4, 0.25), (2, 0.5), (0.5, 2), (0.25, 4))
# The general settings are not run on larger tables: batches of 512 make too many steps, each of which looks at every row.
MAX_ROWS_OF_GENERAL = 1_000_000
# Generated tables: the generator's arguments.
GENERATED = {
    "g2k-50": "--rows 2000 --positive 0.5 --seed 1",
    "g2k-10": "--rows 2000 --positive 0.1 --seed 2",
    "g20k-4": "--rows 20000 --positive 0.035 --seed 3",
    "g20k-50": "--rows 20000 --positive 0.5 --seed 4",
    "g200k-1": "--rows 200000 --positive 0.01 --seed 5",
    "g2m-5": "--rows 2000000 --positive 0.05 --seed 11",
    "m20k-4": "--rows 20000 --classes 4 --seed 9",
    "r2k": "--rows 2000 --regression 0.5 --seed 10",
    "r5k": "--rows 5000 --regression 0.5 --seed 6",
    "r20k-skewed": "--rows 20000 --regression 0.3 --skewed --seed 7",
    "r100k": "--rows 100000 --regression 0.4 --seed 8",
}
MANY = "--categories 2,2,3,3,4,5,6,8,10,12,15,20,25,30,40,50,3,4,6,8"
HELD_BACK = {
    "h40k-rare": "--rows 40000 --positive 0.005 --seed 21",
    "h25k-wide": f"--rows 25000 --positive 0.2 --seed 22 {MANY}",
    "hr30k-skewed": "--rows 30000 --regression 0.25 --skewed --max-target 120 --seed 23",
    "hr8k-wide": f"--rows 8000 --regression 0.5 --seed 24 {MANY}",
}
PUBLIC = {"adult": "adult", "bank": "bank", "ipums": "ipums-br", "adult-hours": None, "adult-age": None}
TABLES = [*PUBLIC, *GENERATED]
ARGUMENTS = {**GENERATED, **HELD_BACK}
EPSILON, DELTA = 1.0, 1e-6
CHOSEN = ("batch", "epochs", "lr", "ema", "clip")


def split_rows(source, to, name, test):
    lines = gzip.open(source, "rt").read().splitlines(True)
    random.Random(1).shuffle(lines)
    (to / f"{name}.test.csv").write_text("".join(lines[:test]))
    (to / f"{name}.csv").write_text("".join(lines[test:]))


def adult_schema(target, bounds):
    """Adult with another column to predict; income is a category then."""
    text = (pathlib.Path(__file__).parent.parent / "runtime/data/schemas/adult.toml").read_text()
    text = re.sub(r'\{name = "%s", kind = "numeric".*?\},\n' % target,
                  '{name = "%s", kind = "target", %s},\n' % (target, bounds), text)
    return re.sub(r'\{name = "income", kind = "label".*?\}',
                  '{name = "income", kind = "categorical", values = ["<=50K", ">50K", "<=50K.", ">50K."]}', text)


def make(table, data, work):
    """Returns the table's rows, its test rows and its schema."""
    source = "adult" if table.startswith("adult") else table
    files = work / f"{source}.csv", work / f"{source}.test.csv"
    if not files[0].exists():
        if source == "adult":
            for part, to in (("data", files[0]), ("test", files[1])):
                to.write_text(gzip.open(data / f"adult/adult.{part}.gz", "rt").read())
        elif source == "bank":
            split_rows(data / "bank/BANK.dat.gz", work, "bank", 9042)
        elif source == "ipums":
            split_rows(data / "ipums/IPUMS-BR.dat.gz", work, "ipums", 7600)
        else:
            generate_table.generate([str(work), table, *ARGUMENTS[table].split()])
    if table == "adult-hours":
        (work / "adult-hours.toml").write_text(adult_schema("hours-per-week", "min = 1, max = 99"))
    if table == "adult-age":
        (work / "adult-age.toml").write_text(adult_schema("age", "min = 17, max = 90"))
    return *files, PUBLIC.get(table) or str(work / f"{table}.toml")


class Trainer:
    def __init__(self, program, work, files):
        self.program, self.out = program, work / "run"
        rows, test, schema = files
        self.data = ["--dataset", str(rows), "--schema", schema, "--test-data", str(test), "--test-data-is-public",
                     "--epsilon", str(EPSILON), "--delta", str(DELTA), "--threads", "1", "--eval-every", "0"]

    def rows(self, table):
        """Of the training table: its lines, but for the header that generated ones have."""
        with open(self.data[1]) as lines:
            return sum(1 for line in lines if line.strip()) - (table in ARGUMENTS)

    def measured(self, seed, flags, public=True):
        """AUC or R2; -inf where the training is refused or its model has none."""
        shutil.rmtree(self.out, ignore_errors=True)
        run = subprocess.run([self.program, "train", *self.data, "--seed", str(seed), "--json", "--out", str(self.out),
                              *(["--size-is-public", "--accountant", "rdp"] if public else []), *flags],
                             capture_output=True, text=True, env={"PATH": ""})  # no gnuplot: no pictures
        if run.returncode != 0:
            return -math.inf
        result = json.loads(run.stdout)
        value = result["r2"] if "r2" in result else result["auc"]
        return -math.inf if value is None else value

    def chosen(self):
        """What the rule chooses for this table, as flags by name."""
        assert self.measured(SEEDS[0], []) > -math.inf
        text = (self.out / "release/config.toml").read_text()
        return {key: float(re.search(rf"^{key} = (.*)$", text, re.MULTILINE)[1]) for key in CHOSEN}


def some_settings(rng, rows, regression):
    rate, clip = rng.choice((100, 50, 25, 10)), rng.choice((0.1, 0.25, 0.5, 1.0))
    epochs = rng.choice((5, 10, 20, 40))
    low, high = (-3.0, 0.0) if regression else (-1.0, 1.5)
    return ["--batch", str(max(1, rows // rate)), "--epochs", str(epochs), "--clip", str(clip),
            "--lr", f"{10 ** rng.uniform(low, high):.2g}", "--ema", str(rng.choice((0.0, 0.9, 0.99)))]


def trainer_of(table, program, data, work):
    return Trainer(program, work, make(table, data, work))


def settings_near(chosen):
    """Flags of the settings near the rule's."""
    return [f"--batch {chosen['batch']:.0f} --epochs {chosen['epochs']:.0f} --ema {chosen['ema']} "
            f"--lr {chosen['lr'] * rate:.3g} --clip {chosen['clip'] * clip:.3g}".split() for rate, clip in NEAR]


def search(table, trainer):
    rows, regression = trainer.rows(table), is_regression(table)
    rng = random.Random(7)
    tried = [some_settings(rng, rows, regression) for _ in range(SETTINGS)]
    if table in HELD_BACK:
        tried += settings_near(trainer.chosen())
    tried.sort(key=lambda flags: -trainer.measured(1, flags))
    again = tried[:BEST_HELD_BACK if table in HELD_BACK else BEST]
    best, flags = max(((statistics.mean(trainer.measured(s, f) for s in SEEDS), f) for f in again),
                      key=lambda x: x[0])
    return {"table": table, "rows": rows, "measure": "R2" if regression else "AUC", "best": best,
            "best_settings": " ".join(flags)}


def judge(trainer, rows):
    rule = [trainer.measured(s, []) for s in SEEDS]
    private = [trainer.measured(s, [], public=False) for s in SEEDS]
    found = {"rule": statistics.mean(rule), "rule_private": statistics.mean(private), "private": private, "before": None}
    if rows <= MAX_ROWS_OF_GENERAL:
        general = [trainer.measured(s, "--batch 512 --epochs 20 --lr 0.5 --ema 0 --clip 1".split()) for s in SEEDS]
        found["before"] = statistics.mean(general)
    return found


def is_regression(table):
    return table.startswith("adult-") or "--regression" in ARGUMENTS.get(table, "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/cudp")
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("data"))
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--search-only", action="store_true", help="leave what the rule reaches for later")
    parser.add_argument("--tables")
    parser.add_argument("--held-back", action="store_true", help="tables that the rule was not chosen on")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("bench/results/tables.jsonl"))
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    done = [json.loads(line) for line in args.out.read_text().splitlines()] if args.out.exists() else []
    tables = args.tables.split(",") if args.tables else [*HELD_BACK] if args.held_back else TABLES
    for table in tables:
        row = next((row for row in done if row["table"] == table), None)
        if row and ("rule" in row or args.search_only):
            continue
        trainer = trainer_of(table, args.program, args.data, args.work)
        if row is None:
            row = search(table, trainer)
            done.append(row)
        if not args.search_only:
            row.update(judge(trainer, row["rows"]))
        print(json.dumps(row), flush=True)
        args.out.write_text("".join(json.dumps(row) + "\n" for row in done))
    if args.search_only:
        return
    for names in TABLES, [*HELD_BACK]:
        print_table(sorted((row for row in done if row["table"] in names), key=lambda row: names.index(row["table"])))


def print_table(rows):
    print("| table | rows | measure | general settings | best found | rule | rule, private row count | short of the best |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        short = row["best"] - min(row["rule"], row["rule_private"])
        before = "not run" if row["before"] is None else f"{row['before']:.3f}"
        print(f"| {row['table']} | {row['rows']:,} | {row['measure']} | {before} | {row['best']:.3f} | "
              f"{row['rule']:.3f} | {row['rule_private']:.3f} | {max(short, 0.0):.3f} |")


if __name__ == "__main__":
    main()
