#!/usr/bin/env python3
"""cudp beside Opacus and JAX-style trainers: the same DP-SGD step, on this machine, in one run.

    python3 -m venv peers && peers/bin/pip install opacus jax
    peers/bin/python bench/compare_peers.py --build build [--model cnn] [--batch 512] [--cores 0]

Every trainer runs in a process of its own on the cores named (taskset), one after the other, and
the round is repeated; the table gives each one's median and the ratios of medians. The peers get
the batch ready-made: neither sampling nor data loading counts against them, while cudp draws its
Poisson batch, adds its noise and updates inside the measured time. They use fixed batches of the
expected size and their fastest documented way on CPU:
  opacus        per-example gradients by hooks (grad_sample_mode "hooks"), noise by its optimizer
  opacus-ghost  norms without per-example gradients (DPOptimizerFastGradientClipping, two passes)
  jax           jit(vmap(grad)), clip, sum, noise, SGD momentum in one compiled step
  jax-scan      the same inside lax.scan over 8 steps
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time

MODELS = {"cnn": (1, 28), "cifar-cnn": (3, 32)}
SECONDS = 8.0


def measure(step, batch):
    """Examples a second: one warm-up, then at least two steps and at most about SECONDS."""
    step()
    count, start = 0, time.perf_counter()
    while count < 2 or time.perf_counter() - start < SECONDS:
        step()
        count += 1
    return count * batch / (time.perf_counter() - start)


def torch_model(name):
    from torch import nn

    if name == "cnn":
        return nn.Sequential(
            nn.Conv2d(1, 16, 8, 2, padding=3), nn.Tanh(), nn.MaxPool2d(2, 1),
            nn.Conv2d(16, 32, 4, 2), nn.Tanh(), nn.MaxPool2d(2, 1),
            nn.Flatten(), nn.Linear(512, 32), nn.Tanh(), nn.Linear(32, 10))
    layers, channels = [], 3
    for width in (32, 64, 128):
        for _ in range(2):
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.Tanh()]
            channels = width
        layers.append(nn.MaxPool2d(2, 2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(2048, 128), nn.Tanh(),
                         nn.Linear(128, 10))


def run_opacus(model, batch, ghost):
    import torch
    from torch import nn
    from opacus import GradSampleModule
    from opacus.grad_sample.grad_sample_module_fast_gradient_clipping import (
        GradSampleModuleFastGradientClipping)
    from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    torch.manual_seed(1)
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    channels, side = MODELS[model]
    x = torch.rand(batch, channels, side, side)
    y = torch.randint(0, 10, (batch,))
    loss = nn.CrossEntropyLoss()
    if ghost:
        net = GradSampleModuleFastGradientClipping(
            torch_model(model), max_grad_norm=0.1, use_ghost_clipping=True, loss_reduction="mean")
        kind = DPOptimizerFastGradientClipping
    else:
        net, kind = GradSampleModule(torch_model(model)), DPOptimizer
    optimizer = kind(torch.optim.SGD(net.parameters(), 0.5, momentum=0.9), noise_multiplier=1.1,
                     max_grad_norm=0.1, expected_batch_size=batch)
    criterion = DPLossFastGradientClipping(net, optimizer, loss) if ghost else loss

    def step():
        optimizer.zero_grad()
        criterion(net(x), y).backward()
        optimizer.step()

    return measure(step, batch)


def run_jax(model, batch, scan):
    import jax
    import jax.numpy as jnp

    channels, side = MODELS[model]
    keys = iter(jax.random.split(jax.random.PRNGKey(1), 64))
    if model == "cnn":
        shapes = [(16, 1, 8, 8), (32, 16, 4, 4)]
        dense = [(512, 32), (32, 10)]
    else:
        widths = [3, 32, 32, 64, 64, 128, 128]
        shapes = [(o, i, 3, 3) for i, o in zip(widths, widths[1:])]
        dense = [(2048, 128), (128, 10)]
    weights = [(0.1 * jax.random.normal(next(keys), s), jnp.zeros(s[0])) for s in shapes]
    weights += [(0.1 * jax.random.normal(next(keys), s), jnp.zeros(s[1])) for s in dense]

    def conv(z, w, stride, pad):
        z = jax.lax.conv_general_dilated(z, w[0], (stride, stride), [(pad, pad)] * 2,
                                         dimension_numbers=("NCHW", "OIHW", "NCHW"))
        return jnp.tanh(z + w[1][None, :, None, None])

    def pool(z, stride):
        return jax.lax.reduce_window(z, -jnp.inf, jax.lax.max, (1, 1, 2, 2),
                                     (1, 1, stride, stride), "VALID")

    def loss(w, x, label):
        z = x[None]
        if model == "cnn":
            z = pool(conv(z, w[0], 2, 3), 1)
            z = pool(conv(z, w[1], 2, 0), 1)
        else:
            for i in (0, 2, 4):
                z = pool(conv(conv(z, w[i], 1, 1), w[i + 1], 1, 1), 2)
        z = jnp.tanh(z.reshape(1, -1) @ w[-2][0] + w[-2][1]) @ w[-1][0] + w[-1][1]
        return -jax.nn.log_softmax(z[0])[label]

    def clipped(w, x, label):
        g = jax.grad(loss)(w, x, label)
        leaves, tree = jax.tree_util.tree_flatten(g)
        norm = jnp.sqrt(sum(jnp.vdot(v, v) for v in leaves))
        return tree.unflatten([v * jnp.minimum(1.0, 0.1 / norm) for v in leaves])

    def train(carry, key):
        w, m = carry
        total = jax.tree_util.tree_map(lambda v: v.sum(0),
                                       jax.vmap(clipped, (None, 0, 0))(w, x, y))
        leaves, tree = jax.tree_util.tree_flatten(total)
        noise = [0.11 * jax.random.normal(k, v.shape)
                 for k, v in zip(jax.random.split(key, len(leaves)), leaves)]
        g = tree.unflatten([(v + n) / batch for v, n in zip(leaves, noise)])
        m = jax.tree_util.tree_map(lambda a, b: 0.9 * a + b, m, g)
        return (jax.tree_util.tree_map(lambda a, b: a - 0.5 * b, w, m), m), 0.0

    x = jax.random.uniform(next(keys), (batch, channels, side, side))
    y = jax.random.randint(next(keys), (batch,), 0, 10)
    carry = (weights, jax.tree_util.tree_map(jnp.zeros_like, weights))
    steps = 8 if scan else 1
    run = jax.jit((lambda c, ks: jax.lax.scan(train, c, ks)) if scan else
                  (lambda c, ks: train(c, ks[0])))
    state = {"carry": carry, "key": jax.random.PRNGKey(7)}

    def step():
        state["key"], sub = jax.random.split(state["key"])
        state["carry"], _ = run(state["carry"], jax.random.split(sub, steps))
        jax.block_until_ready(state["carry"])

    return measure(step, batch * steps)


def run_cudp(build, model, batch, threads):
    out = subprocess.run(
        [os.path.join(build, "bench", "step_bench"), "--benchmark_format=json",
         f"--benchmark_filter=^{model}/threads:{threads}/batch:{batch}/",
         f"--benchmark_min_time={SECONDS / 2}"],
        check=True, capture_output=True, text=True)
    rows = json.loads(out.stdout)["benchmarks"]
    if not rows:
        sys.exit(f"step_bench has no {model} at batch {batch} and {threads} threads")
    return rows[0]["items_per_second"]


def one(args, trainer):
    threads = len(os.sched_getaffinity(0))
    if trainer == "cudp":
        return run_cudp(args.build, args.model, args.batch, threads)
    if trainer.startswith("opacus"):
        return run_opacus(args.model, args.batch, trainer == "opacus-ghost")
    return run_jax(args.model, args.batch, trainer == "jax-scan")


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            return next(line.split(":", 1)[1].strip() for line in f if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--build", default="build", help="folder with bench/step_bench")
    parser.add_argument("--model", default="cnn", choices=sorted(MODELS))
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--cores", default="0", help="for taskset, e.g. 0 or 0,1")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--trainers", default="cudp,opacus,opacus-ghost,jax,jax-scan")
    parser.add_argument("--out", help="write the numbers as JSON")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(one(args, args.one)))
        return
    trainers = args.trainers.split(",")
    results = {t: [] for t in trainers}
    for _ in range(args.rounds):
        for trainer in trainers:
            command = ["taskset", "-c", args.cores, sys.executable, __file__, "--one", trainer,
                       "--build", args.build, "--model", args.model, "--batch", str(args.batch)]
            run = subprocess.run(command, capture_output=True, text=True)
            if run.returncode != 0:
                print(f"{trainer}: {run.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
                continue
            results[trainer].append(json.loads(run.stdout.strip().splitlines()[-1]))
    medians = {t: statistics.median(r) for t, r in results.items() if r}
    print(f"{args.model}, batch {args.batch}, cores {args.cores}, {processor()}, "
          f"median of {args.rounds}")
    print(f"{'trainer':<14}{'examples/s':>12}{'spread':>10}{'cudp is':>10}")
    for t, m in medians.items():
        spread = (max(results[t]) - min(results[t])) / m
        print(f"{t:<14}{m:>12.0f}{spread:>10.0%}{medians['cudp'] / m:>9.1f}x")
    if args.out:
        with open(args.out, "w", encoding="utf-8") as f:
            json.dump({"model": args.model, "batch": args.batch, "cores": args.cores,
                       "processor": processor(), "examples_per_second": results}, f, indent=1)


if __name__ == "__main__":
    main()
