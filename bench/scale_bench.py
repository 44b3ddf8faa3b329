#!/usr/bin/env python3
"""How training scales over ranks: measured on this machine, and by a model of the network for more
devices than it has.

Measured: examples a second of `cudp train` with 1 rank of T threads and R ranks of T / R threads,
in turns, so that what else the machine does falls on all alike; the median and the largest and
smallest ratio. The files of every run are the same, to the byte, and that is checked.
Modelled: a step takes the time of the largest share of a Poisson batch plus an all-reduce of 8 bytes
a parameter, by the latencies and bandwidths below, which are NCCL's own tuning constants for NVLink
within a node of 8 and one 400 Gb/s adapter a GPU between them. No GPU has printed any of it.
Usage: bench/scale_bench.py [--program build/cudp] [--turns 5] [--model-only]
"""
import argparse
import filecmp
import json
import math
import pathlib
import statistics
import subprocess
import tempfile

TRAININGS = {
    "cnn, batch 512": ["--dataset", "glyphs", "--model", "cnn", "--batch", "512", "--steps", "60"],
    "cifar-cnn, batch 512": ["--dataset", "glyphs", "--model", "cifar-cnn", "--batch", "512", "--steps", "6"],
}
WAYS = [(1, 2), (2, 1), (4, 1)]  # ranks, threads of each

# Parameters, microseconds of work an example and of launches a step, by bench/roofline.md's
# predictions for an H100.
MODELS = {"cnn": (26_010, 0.065, 30.0), "cifar-cnn": (550_570, 2.1, 300.0), "10 M parameters": (10_000_000, 75.0, 500.0)}
NVLINK = 450e3  # bytes a microsecond of a node's all-reduce
ADAPTER = 48e3  # and between nodes, a GPU
LATENCY_NODE, LATENCY_HOP = 6.6, 10.0  # microseconds: one node, and each doubling of nodes


def speed(program, training, ranks, threads, out):
    """Examples a second, as the run says."""
    command = [program, "train", *training, "--ranks", str(ranks), "--threads", str(threads), "--device", "cpu",
               "--epsilon", "3", "--delta", "1e-5", "--accountant", "rdp", "--seed", "1", "--quiet", "--json",
               "--eval-every", "0", "--out", out]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(run.stdout)["examples_per_second"]


def measure(program, turns):
    print("| training | ranks x threads | examples/s, median | of 1 x 2: median | least to most |")
    print("|---|---|---|---|---|")
    for name, training in TRAININGS.items():
        speeds = {way: [] for way in WAYS}
        with tempfile.TemporaryDirectory() as folder:
            models = set()
            for turn in range(turns):
                for way in WAYS:
                    out = f"{folder}/{turn}-{way[0]}"
                    speeds[way].append(speed(program, training, *way, out))
                    models.add(pathlib.Path(out, "release/model.safetensors"))
            first = models.pop()
            if not all(filecmp.cmp(first, other, shallow=False) for other in models):
                raise SystemExit(f"scale_bench: {name}: runs have different models")
        for way in WAYS:
            ratios = [a / b for a, b in zip(speeds[way], speeds[WAYS[0]])]
            print(f"| {name} | {way[0]} x {way[1]} | {statistics.median(speeds[way]):,.0f} | "
                  f"{statistics.median(ratios):.2f} | {min(ratios):.2f} to {max(ratios):.2f} |", flush=True)


def largest_share(batch, ranks):
    """The expected largest of R Poisson shares, of a mean of batch / R each."""
    mean = batch / ranks
    return mean if ranks == 1 else mean + math.sqrt(2.0 * mean * math.log(ranks))


def all_reduce(parameters, ranks):
    """Microseconds."""
    if ranks == 1:
        return 0.0
    nodes = max(ranks // 8, 1)
    bytes_ = 8.0 * parameters
    within = LATENCY_NODE + 2.0 * bytes_ / NVLINK
    return within if nodes == 1 else within + LATENCY_HOP * math.log2(nodes) + 2.0 * bytes_ / ADAPTER / 8


def model():
    print("| model, batch | 1 GPU, ms a step | 8 | 16 | 128 | 1,024 |")
    print("|---|---|---|---|---|---|")
    for name, (parameters, work, launches) in MODELS.items():
        for batch in (4_096, 65_536):
            alone = launches + work * batch
            cells = []
            for ranks in (8, 16, 128, 1024):
                if batch // ranks < 16:
                    cells.append("-")
                    continue
                step = launches + work * largest_share(batch, ranks) + all_reduce(parameters, ranks)
                cells.append(f"{alone / step:.0f}x, {100 * alone / step / ranks:.0f} %")
            print(f"| {name}, {batch:,} | {alone / 1000:.2f} | " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--program", default="build/cudp")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--model-only", action="store_true")
    arguments = parser.parse_args()
    if not arguments.model_only:
        measure(arguments.program, arguments.turns)
        print()
    model()


if __name__ == "__main__":
    main()
