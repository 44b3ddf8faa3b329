#!/usr/bin/env python3
"""cudp's scattering features beside Kymatio's, on this machine, in one run.

    python3 -m venv peers && peers/bin/pip install numpy scipy kymatio torch
    peers/bin/python bench/compare_scattering.py --build build [--threads 2] [--images 500]

cudp's times are scatter_bench's. Kymatio gets float32 images ready-made, in batches of 100, and its
time is for --images of them. The last columns are for the training sets of MNIST (60,000 images)
and CIFAR-10 (50,000), at that rate.
"""
import argparse
import json
import platform
import subprocess
import time

import numpy as np

SIZES = {"grey_28x28": (1, 28, 60000), "colour_32x32": (3, 32, 50000)}


def cudp(build, threads):
    out = subprocess.run(
        [f"{build}/bench/scatter_bench", f"--benchmark_filter=threads:{threads}/",
         "--benchmark_format=json", "--benchmark_repetitions=3"],
        check=True, capture_output=True, text=True).stdout
    medians = [b for b in json.loads(out)["benchmarks"] if b.get("aggregate_name") == "median"]
    return {b["name"].split("/")[1]: 1.0 / b["items_per_second"] for b in medians}


def kymatio(backend, colours, side, images, threads):
    from kymatio.scattering2d.frontend.numpy_frontend import ScatteringNumPy2D

    x = np.random.default_rng(1).random((100, colours, side, side), dtype=np.float32)
    if backend == "numpy":
        scatter = ScatteringNumPy2D(2, (side, side), L=8)
    else:
        import torch
        from kymatio.scattering2d.frontend.torch_frontend import ScatteringTorch2D

        torch.set_num_threads(threads)
        scatter, x = ScatteringTorch2D(2, (side, side), L=8), torch.from_numpy(x)
    scatter(x[:2])
    start = time.perf_counter()
    for _ in range(images // 100):
        scatter(x)
    return (time.perf_counter() - start) / (images // 100 * 100)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--images", type=int, default=500)
    args = parser.parse_args()

    rows = []
    ours = cudp(args.build, args.threads)
    for name, (colours, side, count) in SIZES.items():
        for who in ("cudp", "kymatio numpy", "kymatio torch"):
            seconds = ours[name] if who == "cudp" else kymatio(
                who.split()[1], colours, side, args.images, args.threads)
            rows.append({"images": name, "who": who, "us_per_image": 1e6 * seconds,
                         "seconds_whole_set": count * seconds, "ratio": seconds / ours[name]})
    for r in rows:
        print(f"{r['images']:14} {r['who']:14} {r['us_per_image']:10.1f} us/image "
              f"{r['seconds_whole_set']:9.1f} s a set {r['ratio']:7.1f} x")
    print(json.dumps({"processor": platform.processor(), "threads": args.threads, "rows": rows}))


if __name__ == "__main__":
    main()
