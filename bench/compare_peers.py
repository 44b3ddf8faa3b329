#!/usr/bin/env python3
"""cudp beside PyTorch without privacy, Opacus and JAX-style trainers: a training step of the same
model and batch, on this machine, in one run.

    python3 -m venv peers && peers/bin/pip install opacus jax
    peers/bin/python bench/compare_peers.py --build build [--models cnn,adult] [--batches 16,512]
        [--cores 0] [--device cpu|cuda] [--tf32]

Every trainer runs in a process of its own on the cores named (taskset), one after the other, and
the round is repeated; a table for each model and batch gives each one's median and the ratios of
medians. The peers get the batch ready-made: neither sampling nor data loading counts against them,
while cudp draws its Poisson batch, adds its noise and updates inside the measured time. They use
fixed batches of the expected size and their fastest documented way:
  torch         no privacy: the loss's mean gradient and SGD momentum, nothing clipped, no noise
  torch-graph   the same step captured in a CUDA graph and replayed (--device cuda)
  torch-columns the same with the batch column by column in memory
  torch-codes   the same on numbers and codes of categories (EmbeddingBag), of -coded models
  torch-shuffle the same with the batch taken out of DATA_ROWS rows in a new order each epoch, as
                a training has to
  opacus        per-example gradients by hooks (grad_sample_mode "hooks"), noise by its optimizer;
                LSTMs are its DPLSTM
  opacus-ghost  norms without per-example gradients (DPOptimizerFastGradientClipping, two passes)
  jax           jit(vmap(grad)), clip, sum, noise, SGD momentum in one compiled step
  jax-scan      the same inside lax.scan over 8 steps
adult-coded and adult-mlp-coded are adult and adult-mlp for peers but for torch-codes; cudp reads rows
by their codes. On a machine that others use, --cpu-time counts the processor's time of one thread.
Texts are full, and frozen vectors are given to the peers as they are (imdb-rnn).
cudp is timed by bench/step_bench, or bench/cuda_bench with --device cuda (whole epochs there, with
evaluation and accountant left out). On a GPU no trainer waits for it between steps, as in a
training: steps are queued, and every half a second, or at an epoch's end, the host waits once.
torch's and Opacus' convolutions and recurrent layers are cuDNN's (torch.nn.LSTM; DPLSTM has cells of its own), and JAX has the CUDA wheel (pip install
"jax[cuda12]"). --tf32 lets all of them multiply in TF32; else none does. An example for texts:
    peers/bin/python bench/compare_peers.py --build build --device cuda --models imdb-rnn,imdb-lstm
        --batches 64,512,4096 --trainers cudp,torch,opacus,jax
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time

# Input shape, and layers: conv (channels, kernel, stride, padding), pool (size, stride), dense
# (outputs), words (how many, columns: a table that is trained), lstm (hidden, directions; gives the
# last states). One output: logistic loss; more: softmax cross-entropy. Named as in bench/.
COLOUR = [layer for width in (32, 64, 128)
          for layer in (("conv", width, 3, 1, 1), ("tanh",), ("conv", width, 3, 1, 1), ("tanh",),
                        ("pool", 2, 2))]
MODELS = {
    "cnn": ((1, 28, 28),
            [("conv", 16, 8, 2, 3), ("tanh",), ("pool", 2, 1), ("conv", 32, 4, 2, 0), ("tanh",),
             ("pool", 2, 1), ("flatten",), ("dense", 32), ("tanh",), ("dense", 10)]),
    "cifar-cnn": ((3, 32, 32), COLOUR + [("flatten",), ("dense", 128), ("tanh",), ("dense", 10)]),
    "adult": ((124,), [("dense", 1)]),
    "adult-mlp": ((124,), [("dense", 1000), ("relu",), ("dense", 1)]),
    "imdb-rnn": ((80, 100), [("dense", 32), ("relu",), ("lstm", 32, 2), ("dense", 16), ("relu",),
                             ("dense", 2)]),
    "imdb-lstm": ((256,), [("words", 10004, 100), ("lstm", 100, 1), ("dense", 2)]),
}
MODELS["adult-coded"] = MODELS["adult"]
MODELS["adult-mlp-coded"] = MODELS["adult-mlp"]
# Adult's by its schema: numbers, and lists of categories or intervals of as many features each.
NUMBERS, CATEGORIES = 5, (9, 16, 7, 15, 6, 5, 2, 42, 5, 4, 4, 4)
DATA_ROWS = 32561
SECONDS = 8.0
CPU_TIME = False
TF32 = False
CLIP, SIGMA, RATE, MOMENTUM = 0.1, 1.1, 0.5, 0.9


def shapes(model):
    """Each layer with the shape of its input."""
    shape, layers = MODELS[model]
    for layer in layers:
        yield layer, shape
        if layer[0] == "conv":
            _, out, kernel, stride, pad = layer
            shape = (out, *((n + 2 * pad - kernel) // stride + 1 for n in shape[1:]))
        elif layer[0] == "pool":
            shape = (shape[0], *((n - layer[1]) // layer[2] + 1 for n in shape[1:]))
        elif layer[0] == "flatten":
            shape = (shape[0] * shape[1] * shape[2],)
        elif layer[0] == "dense":
            shape = (*shape[:-1], layer[1])
        elif layer[0] == "words":
            shape = (*shape, layer[2])
        elif layer[0] == "lstm":
            shape = (layer[1] * layer[2],)


def outputs(model):
    return MODELS[model][1][-1][1]


def words(model):
    """Of texts, how many there are; 0 where the input is numbers."""
    first = MODELS[model][1][0]
    return first[1] if first[0] == "words" else 0


def measure(step, batch, wait=None):
    """Examples a second: one warm-up, then at least two steps and at most about SECONDS. wait: waits
    for a GPU on which steps are queued; it is called once for as many steps as take half a second."""
    clock = time.process_time if CPU_TIME else time.perf_counter

    def run(steps):
        for _ in range(steps):
            step()
        if wait:
            wait()

    run(1)
    together = 1
    while wait:
        start = clock()
        run(together)
        if clock() - start > 0.5:
            break
        together *= 2
    count, start = 0, clock()
    while count < 2 * together or clock() - start < SECONDS:
        run(together)
        count += together
    return count * batch / (clock() - start)


def torch_model(model, lstm=None):
    """lstm: in place of torch.nn.LSTM."""
    import torch
    from torch import nn

    class LastStates(nn.Module):
        def __init__(self, inputs, hidden, directions):
            super().__init__()
            self.lstm = (lstm or nn.LSTM)(inputs, hidden, batch_first=True,
                                          bidirectional=directions == 2)

        def forward(self, x):
            return torch.cat(list(self.lstm(x)[1][0]), dim=-1)

    layers = []
    for layer, shape in shapes(model):
        kind, *numbers = layer
        if kind == "conv":
            out, kernel, stride, pad = numbers
            layers.append(nn.Conv2d(shape[0], out, kernel, stride, padding=pad))
        elif kind == "dense":
            layers.append(nn.Linear(shape[-1], numbers[0]))
        elif kind == "words":
            layers.append(nn.Embedding(*numbers))
        elif kind == "lstm":
            layers.append(LastStates(shape[-1], *numbers))
        else:
            layers.append({"tanh": nn.Tanh, "relu": nn.ReLU, "flatten": nn.Flatten,
                           "pool": nn.MaxPool2d}[kind](*numbers))
    if outputs(model) == 1:
        layers.append(nn.Flatten(0))
    return nn.Sequential(*layers)


def torch_task(model, batch, device, lstm=None):
    """Network, inputs, labels and loss, random, with as many threads as there are cores."""
    import torch
    from torch import nn

    torch.backends.cuda.matmul.allow_tf32 = TF32
    torch.backends.cudnn.allow_tf32 = TF32
    torch.manual_seed(1)
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    shape = (batch, *MODELS[model][0])
    x = (torch.randint(0, words(model), shape, device=device) if words(model) else
         torch.rand(shape, device=device))
    y = torch.randint(0, max(2, outputs(model)), (batch,), device=device)
    if outputs(model) == 1:
        loss, y = nn.BCEWithLogitsLoss(), y.float()
    else:
        loss = nn.CrossEntropyLoss()
    return torch_model(model, lstm).to(device), x, y, loss


def wait_of(device):
    """What waits for the device; None if steps are not queued."""
    import torch

    return torch.cuda.synchronize if torch.device(device).type == "cuda" else None


def measure_torch(net, x, y, criterion, optimizer):
    def step():
        optimizer.zero_grad()
        criterion(net(x), y).backward()
        optimizer.step()

    return measure(step, len(x), wait_of(x.device))


def run_torch(model, batch, device):
    import torch

    net, x, y, loss = torch_task(model, batch, device)
    optimizer = torch.optim.SGD(net.parameters(), RATE, momentum=MOMENTUM)
    return measure_torch(net, x, y, loss, optimizer)


def run_torch_graph(model, batch, device):
    """As PyTorch's documentation captures a whole step: after a few steps on another stream, and
    with gradients that the capture makes anew."""
    import torch

    if torch.device(device).type != "cuda":
        sys.exit("torch-graph: expected --device cuda")
    net, x, y, loss = torch_task(model, batch, device)
    optimizer = torch.optim.SGD(net.parameters(), RATE, momentum=MOMENTUM)

    def backward_and_update():
        loss(net(x), y).backward()
        optimizer.step()

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            optimizer.zero_grad(set_to_none=True)
            backward_and_update()
    torch.cuda.current_stream().wait_stream(stream)
    optimizer.zero_grad(set_to_none=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        backward_and_update()
    return measure(graph.replay, batch, wait_of(device))


def run_torch_columns(model, batch, device):
    import torch

    net, x, y, loss = torch_task(model, batch, device)
    x = x.t().contiguous().t()
    return measure_torch(net, x, y, loss,
                         torch.optim.SGD(net.parameters(), RATE, momentum=MOMENTUM))


def run_torch_codes(model, batch, device):
    """The first layer on Adult's numbers and codes, in place of its dense features."""
    import torch
    from torch import nn

    net, x, y, loss = torch_task(model, batch, device)
    first, rest = net[0], net[1:]

    class Codes(nn.Module):
        def __init__(self):
            super().__init__()
            self.bag = nn.EmbeddingBag(first.in_features, first.out_features, mode="sum")
            self.numbers = nn.Linear(NUMBERS, first.out_features)

        def forward(self, x):
            return self.numbers(x[0]) + self.bag(x[1])

    starts = [NUMBERS + sum(CATEGORIES[:i]) for i in range(len(CATEGORIES))]
    codes = torch.stack([torch.randint(s, s + n, (batch,), device=device)
                         for s, n in zip(starts, CATEGORIES)], dim=1)
    numbers = x[:, :NUMBERS].contiguous()
    net = nn.Sequential(Codes(), *rest).to(device)
    optimizer = torch.optim.SGD(net.parameters(), RATE, momentum=MOMENTUM)

    def step():
        optimizer.zero_grad()
        loss(net((numbers, codes)), y).backward()
        optimizer.step()

    return measure(step, batch, wait_of(device))


def run_torch_shuffle(model, batch, device):
    import torch

    net, x, y, loss = torch_task(model, max(batch, DATA_ROWS), device)
    optimizer = torch.optim.SGD(net.parameters(), RATE, momentum=MOMENTUM)
    state = {"order": None, "at": 0}

    def step():
        if state["order"] is None or state["at"] + batch > len(x):
            state.update(order=torch.randperm(len(x), device=device), at=0)
        rows = state["order"][state["at"]:state["at"] + batch]
        state["at"] += batch
        optimizer.zero_grad()
        loss(net(x[rows]), y[rows]).backward()
        optimizer.step()

    return measure(step, batch, wait_of(device))


def run_opacus(model, batch, ghost, device):
    import torch
    from opacus import GradSampleModule
    from opacus.grad_sample.grad_sample_module_fast_gradient_clipping import (
        GradSampleModuleFastGradientClipping)
    from opacus.layers import DPLSTM
    from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    net, x, y, loss = torch_task(model, batch, device, DPLSTM)
    if ghost:
        net = GradSampleModuleFastGradientClipping(
            net, max_grad_norm=CLIP, use_ghost_clipping=True, loss_reduction="mean")
        kind = DPOptimizerFastGradientClipping
    else:
        net, kind = GradSampleModule(net), DPOptimizer
    optimizer = kind(torch.optim.SGD(net.parameters(), RATE, momentum=MOMENTUM),
                     noise_multiplier=SIGMA, max_grad_norm=CLIP, expected_batch_size=batch)
    criterion = DPLossFastGradientClipping(net, optimizer, loss) if ghost else loss
    return measure_torch(net, x, y, criterion, optimizer)


def run_jax(model, batch, scan, device):
    import jax
    import jax.numpy as jnp

    if device == "cpu":
        jax.config.update("jax_platforms", "cpu")
    elif jax.default_backend() != "gpu":
        sys.exit("this JAX sees no GPU")
    jax.config.update("jax_default_matmul_precision", "tensorfloat32" if TF32 else "highest")
    keys = iter(jax.random.split(jax.random.PRNGKey(1), 64))
    weights = []

    def start(*size):
        return 0.1 * jax.random.normal(next(keys), size)

    for layer, shape in shapes(model):
        if layer[0] == "words":
            weights.append(start(*layer[1:]))
        elif layer[0] == "lstm":
            weights.append([(start(shape[-1], 4 * layer[1]), start(layer[1], 4 * layer[1]),
                             jnp.zeros(4 * layer[1])) for _ in range(layer[2])])
        if layer[0] in ("conv", "dense"):
            size = ((layer[1], shape[0], layer[2], layer[2]) if layer[0] == "conv"
                    else (shape[-1], layer[1]))
            weights.append((start(*size), jnp.zeros(layer[1])))

    def last_state(w, x):
        """Of x [time, inputs]."""
        def step(state, a):
            h, c = state
            i, f, g, o = jnp.split(a + h @ w[1], 4)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

        zeros = jnp.zeros(w[1].shape[0])
        return jax.lax.scan(step, (zeros, zeros), x @ w[0] + w[2])[0][0]

    def logits(w, x):
        w = iter(w)
        z = x[None]
        for layer, _ in shapes(model):
            kind, *numbers = layer
            if kind == "conv":
                v = next(w)
                z = jax.lax.conv_general_dilated(
                    z, v[0], [numbers[2]] * 2, [(numbers[3], numbers[3])] * 2,
                    dimension_numbers=("NCHW", "OIHW", "NCHW")) + v[1][None, :, None, None]
            elif kind == "dense":
                v = next(w)
                z = z @ v[0] + v[1]
            elif kind == "words":
                z = next(w)[z]
            elif kind == "lstm":
                z = jnp.concatenate([last_state(v, z[0][::sign])
                                     for v, sign in zip(next(w), (1, -1))])[None]
            elif kind == "pool":
                size, stride = numbers
                z = jax.lax.reduce_window(z, -jnp.inf, jax.lax.max, (1, 1, size, size),
                                          (1, 1, stride, stride), "VALID")
            else:
                z = {"tanh": jnp.tanh, "relu": jax.nn.relu,
                     "flatten": lambda v: v.reshape(1, -1)}[kind](z)
        return z[0]

    def loss(w, x, label):
        z = logits(w, x)
        if outputs(model) == 1:
            return jax.nn.softplus((1 - 2 * label) * z[0])
        return -jax.nn.log_softmax(z)[label]

    def clipped(w, x, label):
        g = jax.grad(loss)(w, x, label)
        leaves, tree = jax.tree_util.tree_flatten(g)
        norm = jnp.sqrt(sum(jnp.vdot(v, v) for v in leaves))
        return tree.unflatten([v * jnp.minimum(1.0, CLIP / norm) for v in leaves])

    def train(carry, key):
        w, m = carry
        total = jax.tree_util.tree_map(lambda v: v.sum(0),
                                       jax.vmap(clipped, (None, 0, 0))(w, x, y))
        leaves, tree = jax.tree_util.tree_flatten(total)
        noise = [CLIP * SIGMA * jax.random.normal(k, v.shape)
                 for k, v in zip(jax.random.split(key, len(leaves)), leaves)]
        g = tree.unflatten([(v + n) / batch for v, n in zip(leaves, noise)])
        m = jax.tree_util.tree_map(lambda a, b: MOMENTUM * a + b, m, g)
        return (jax.tree_util.tree_map(lambda a, b: a - RATE * b, w, m), m), 0.0

    shape = (batch, *MODELS[model][0])
    x = (jax.random.randint(next(keys), shape, 0, words(model)) if words(model) else
         jax.random.uniform(next(keys), shape))
    y = jax.random.randint(next(keys), (batch,), 0, max(2, outputs(model)))
    carry = (weights, jax.tree_util.tree_map(jnp.zeros_like, weights))
    steps = 8 if scan else 1
    run = jax.jit((lambda c, ks: jax.lax.scan(train, c, ks)) if scan else
                  (lambda c, ks: train(c, ks[0])))
    state = {"carry": carry, "key": jax.random.PRNGKey(7)}

    def step():
        state["key"], sub = jax.random.split(state["key"])
        state["carry"], _ = run(state["carry"], jax.random.split(sub, steps))
        if device == "cpu":
            wait()

    def wait():
        jax.block_until_ready(state["carry"])

    return measure(step, batch * steps, wait if device == "cuda" else None)


def run_cudp(build, model, batch, threads, device):
    program, place = (("step_bench", f"{model}/threads:{threads}") if device == "cpu" else
                      ("cuda_bench", f"{model}/epoch{'_tf32' if TF32 else ''}"))
    out = subprocess.run(
        [os.path.join(build, "bench", program), "--benchmark_format=json",
         f"--benchmark_filter=^{place}/batch:{batch}/", f"--benchmark_min_time={SECONDS / 2}"],
        check=True, capture_output=True, text=True)
    rows = json.loads(out.stdout)["benchmarks"]
    if not rows:
        sys.exit(f"{program} has no {model} at batch {batch} and {threads} threads")
    if CPU_TIME:
        assert rows[0]["time_unit"] == "ms" and threads == 1
        return batch / (rows[0]["cpu_time"] * 1e-3)
    return rows[0]["items_per_second"]


def one(args, trainer, model, batch):
    if trainer == "cudp":
        return run_cudp(args.build, model, batch, len(os.sched_getaffinity(0)), args.device)
    torch_kinds = {"torch": run_torch, "torch-graph": run_torch_graph,
                   "torch-columns": run_torch_columns, "torch-codes": run_torch_codes,
                   "torch-shuffle": run_torch_shuffle}
    if trainer in torch_kinds:
        return torch_kinds[trainer](model, batch, args.device)
    if trainer.startswith("opacus"):
        return run_opacus(model, batch, trainer == "opacus-ghost", args.device)
    return run_jax(model, batch, trainer == "jax-scan", args.device)


def processor(device="cpu"):
    """Of the machine, or the GPU's name and driver."""
    if device == "cuda":
        try:
            return subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version",
                                   "--format=csv,noheader"], check=True, capture_output=True,
                                  text=True).stdout.strip().splitlines()[0]
        except (OSError, subprocess.CalledProcessError, IndexError):
            return "a GPU that nvidia-smi does not name"
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            return next(line.split(":", 1)[1].strip() for line in f if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def compare(args, model, batch):
    """Examples a second of every trainer, a number a round; a trainer that fails says why."""
    results = {t: [] for t in args.trainers.split(",")}
    for _ in range(args.rounds):
        for trainer in results:
            command = ["taskset", "-c", args.cores, sys.executable, __file__, "--one", trainer,
                       "--build", args.build, "--models", model, "--batches", str(batch),
                       "--device", args.device] + ["--cpu-time"] * args.cpu_time + ["--tf32"] * args.tf32
            # JAX would take three quarters of a GPU's memory at once.
            run = subprocess.run(command, capture_output=True, text=True,
                                 env=os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"})
            if run.returncode != 0:
                print(f"{trainer}: {run.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
                continue
            results[trainer].append(json.loads(run.stdout.strip().splitlines()[-1]))
    return {t: r for t, r in results.items() if r}


def show(model, batch, results):
    medians = {t: statistics.median(r) for t, r in results.items()}
    print(f"\n{model}, batch {batch}\n{'trainer':<14}{'examples/s':>14}{'spread':>10}{'cudp is':>10}")
    for t, m in medians.items():
        spread = (max(results[t]) - min(results[t])) / m
        ratio = f"{medians['cudp'] / m:.1f}x" if "cudp" in medians else "-"
        print(f"{t:<14}{m:>14,.0f}{spread:>10.0%}{ratio:>10}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--build", default="build", help="folder with bench/step_bench")
    parser.add_argument("--models", default="cnn", help="of " + ", ".join(MODELS))
    parser.add_argument("--batches", default="512", help="expected batches, e.g. 16,512,4096")
    parser.add_argument("--cores", default="0", help="for taskset, e.g. 0 or 0,1")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--trainers", default="cudp,torch,opacus,opacus-ghost,jax,jax-scan",
                        help="those that the head of this file lists; torch-graph needs --device cuda")
    parser.add_argument("--cpu-time", action="store_true",
                        help="count processor time, of one core, in place of elapsed time")
    parser.add_argument("--tf32", action="store_true",
                        help="multiply in TF32, with --device cuda")
    parser.add_argument("--out", help="write the numbers as JSON")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    global CPU_TIME, TF32
    CPU_TIME, TF32 = args.cpu_time, args.tf32
    if args.device == "cuda" and args.cpu_time:
        parser.error("--cpu-time: expected --device cpu, since a GPU's time is none of a processor's")
    if args.device == "cpu" and args.tf32:
        parser.error("--tf32: expected --device cuda")
    models = args.models.split(",")
    batches = [int(b) for b in args.batches.split(",")]
    for model in models:
        if model not in MODELS:
            parser.error(f"--models: expected some of {', '.join(MODELS)}, found '{model}'")
    if args.one:
        print(json.dumps(one(args, args.one, models[0], batches[0])))
        return
    print(f"{args.device}, cores {args.cores}, {processor(args.device)}, median of {args.rounds}"
          + (", processor time" if CPU_TIME else ""))
    rows = []
    for model in models:
        for batch in batches:
            results = compare(args, model, batch)
            show(model, batch, results)
            rows.append({"model": model, "batch": batch, "examples_per_second": results})
    if args.out:
        with open(args.out, "w", encoding="utf-8") as f:
            json.dump({"device": args.device, "cores": args.cores, "processor": processor(args.device),
                       "processor_time": CPU_TIME, "tf32": TF32, "runs": rows}, f, indent=1)


if __name__ == "__main__":
    main()
