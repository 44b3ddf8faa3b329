#!/usr/bin/env python3
"""Instructions that cifar-cnn's layers take of threads for one example, in the code that nvcc makes.

Usage: bench/count_layers.py [--architecture sm_90] [--json]

Two tables: the elementwise kernels, with the functions that products and pools apply as epilogues;
and the loops of products by tensor cores, with the share of their instructions that convert to
TF32. What is counted is the shortest way round a loop that passes what its work needs (loads,
stores, products), loops inside as often as the table says, and the way into the loop by as many
pixels as a thread has. It is a count of issued instructions of threads, no time. Exit code 1: a
limit is passed.

Needs nvcc and nvdisasm, as bench/count_instructions.py does, and says so where one is missing.
"""
import argparse
import json
import sys

from count_instructions import compiled

SOURCE = """
#include "kernels/common/fixed_point.cuh"
#include "kernels/contribution/clip.cuh"
#include "kernels/layers/activation.cuh"
#include "kernels/layers/any_function.cuh"
#include "kernels/layers/image.cuh"
#include "kernels/layers/loss.cuh"
#include "kernels/layers/pool.cuh"
#include "kernels/products/patch_gradient.cuh"
#include "kernels/products/patch_product.cuh"
#include "kernels/products/tiled_product.cuh"
namespace cudp {
struct Numbers { const float* from; const float* y; float* to; Activate function; long n; };
// A copy, and the same with a function and its derivative: what an epilogue adds to a number.
__global__ void copy_numbers(Numbers a) {
  for_each_number(a.n, [&](std::int64_t i) { a.to[i] = a.from[i]; });
}
__global__ void value_numbers(Numbers a) {
  const AnyFunction f(a.function);
  for_each_number(a.n, [&](std::int64_t i) { a.to[i] = stored(f.value(a.from[i]), Precision::tf32); });
}
__global__ void derivative_numbers(Numbers a) {
  const AnyFunction f(a.function);
  for_each_number(a.n, [&](std::int64_t i) {
    a.to[i] = stored(a.from[i] * f.derivative(a.y[i]), Precision::tf32);
  });
}
extern void* const kernels[];
void* const kernels[] = {
  (void*)load_kernel, (void*)pool_kernel, (void*)pool_backward_kernel, (void*)loss_kernel,
  (void*)clip_kernel, (void*)dense_gradient_norm_kernel, (void*)pack_weights_kernel,
  (void*)patch_product_kernel<PixelTile<32>>, (void*)patch_product_kernel<PixelTile<64>>,
  (void*)patch_gradient_norm_kernel<PatchTile<32>>,
  (void*)patch_gradient_norm_kernel<PatchTile<64>>,
  (void*)patch_gradient_sum_kernel<PatchTile<kPatchSumColumns>>,
  (void*)product_kernel<TensorTile<32, kTallTerms>>,
  (void*)product_kernel<TensorTile<kThinColumns, kThinTerms>>,
  (void*)weight_gradient_norm_kernel<TensorTile<32>>,
  (void*)weight_gradient_sum_kernel<TensorTile<32>>};
}
"""

# An instruction is a mark of the first of these that it begins with.
MARKS = ["HMMA", "MUFU.RCP", "LDG.E.U8", "STG.E.U8", "LDG.E", "STG.E", "FSETP.NUM"]

MAX_ELEMENTWISE = 20e6  # instructions of threads an example
MAX_CONVERSIONS = 0.05  # of a loop's instructions
EXAMPLES = 512          # that share a pass

OUTPUTS_OF_POOLS = 32 * 16 * 16 + 64 * 8 * 8 + 128 * 4 * 4
ACTIVATIONS = 2 * (32 * 32 * 32 + 64 * 16 * 16 + 128 * 8 * 8) + 128
BEHIND_PRODUCTS = 32 * 32 * 32 + 64 * 16 * 16 + 128 * 8 * 8 + 128  # whose derivative a product takes
WEIGHTS = 550_570

# Name, a text of the kernel's name, marks of one number's way, loops inside that hold a mark as
# (mark, rounds) from the inside out, numbers an example, pixels a thread.
ELEMENTWISE = [
    ("load", "11load_kernel", {"LDG.E": 1, "LDG.E.U8": 1, "STG.E": 1}, [], 3 * 32 * 32, 4),
    ("pool, 2x2", "11pool_kernel", {"LDG.E": 2, "STG.E.U8": 1, "STG.E": 1, "FSETP.NUM": 1},
     [("FSETP.NUM", 2), ("FSETP.NUM", 2)], OUTPUTS_OF_POOLS, 4),
    ("pool, 2x2, back", "pool_backward_kernel", {"LDG.E.U8": 1, "LDG.E": 2, "STG.E": 1},
     [("STG.E", 2), ("STG.E", 2)], OUTPUTS_OF_POOLS, 4),
    ("dense gradient norm", "dense_gradient_norm_kernel", {"LDG.E": 1}, [], 2048 + 128 + 128 + 10, 64),
    ("pack weights, once for 512", "pack_weights_kernel", {"LDG.E": 1, "STG.E": 1}, [],
     WEIGHTS / EXAMPLES, 4),
]
# Name, of what kernel, marks, numbers an example: what is left without a copy's.
FUNCTIONS = [
    ("function, in epilogues", "value_numbers", {"MUFU.RCP": 1, "LDG.E": 1, "STG.E": 1}, ACTIVATIONS),
    ("derivative, in products' epilogues", "derivative_numbers", {"LDG.E": 2, "STG.E": 1},
     BEHIND_PRODUCTS),
]
# A thread an example: at most all the kernel's instructions as often as it can go round.
AT_MOST = [("loss", "11loss_kernel", 10), ("clip", "11clip_kernel", 60)]

# Name, texts of the kernel's name, HMMA of one way round its loop, numbers that a thread loads
# meanwhile, and the terms of that.
PRODUCTS = [
    ("product, patches, 64 columns", ["patch_product_kernel", "PixelTileILi64"], 48, 0, 48),
    ("product, patches, 32 columns", ["patch_product_kernel", "PixelTileILi32"], 48, 0, 48),
    ("gradient norm, patches, 64 columns", ["patch_gradient_norm", "PatchTileILi64"], 16, 0, 16),
    ("gradient norm, patches, 32 columns", ["patch_gradient_norm", "PatchTileILi32"], 8, 0, 16),
    ("gradient sum, patches", ["patch_gradient_sum"], 8, 0, 16),
    ("product through tables", ["14product_kernel", "TensorTileILi32"], 16, 20, 8),
    ("product through tables, thin", ["14product_kernel", "TensorTileILi16"], 16, 40, 32),
    ("gradient norm through tables", ["weight_gradient_norm_kernel", "TensorTileILi32"], 16, 24, 16),
    ("gradient sum through tables", ["weight_gradient_sum_kernel", "TensorTileILi32"], 16, 24, 16),
]


def is_conversion(code, i):
    """The comparison that a conversion to TF32 begins with: an addition and a mask follow it."""
    text = code.text[i]
    return "FSETP" in text and "+INF" in text and "|R" in text


def way(code, loop, need):
    """Instructions and conversions of the shortest way round the loop past `need` marks."""
    first, last = loop
    kinds = list(need)
    best = {first: {(0,) * len(kinds): (0, 0)}}
    found = None
    for at in range(first, last + 1):
        if at not in best or code.name[at].startswith("CALL"):
            continue
        mark = code.mark(at)
        for had, (taken, conversions) in best.pop(at).items():
            had = tuple(min(need[k], h + (k == mark)) for k, h in zip(kinds, had))
            value = (taken + 1, conversions + is_conversion(code, at))
            for to in code.next[at]:
                if to == first and all(h == need[k] for k, h in zip(kinds, had)):
                    found = min(found or value, value)
                if at < to <= last:
                    ways = best.setdefault(to, {})
                    ways[had] = min(ways.get(had, value), value)
    return found


def way_in(code, to):
    """Instructions from the kernel's first to `to`."""
    best = {0: 0}
    for at in range(to):
        if at not in best or code.name[at].startswith("CALL"):
            continue
        for next_ in code.next[at]:
            if at < next_ <= to:
                best[next_] = min(best.get(next_, best[at] + 1), best[at] + 1)
    return best.get(to)


def loop_of(code, need):
    """The smallest loop that can pass the marks, and its way."""
    for loop in sorted(code.loops(), key=lambda l: l[1] - l[0]):
        marks = code.marks(loop)
        if all(marks[k] >= n for k, n in need.items()):
            found = way(code, loop, need)
            if found:
                return loop, found
    return None, None


def only(code, *texts):
    found = [c for name, c in code.items() if all(t in name for t in texts)]
    return found[0] if len(found) == 1 else None


def elementwise(code):
    rows = []
    for name, text, need, inside, numbers, pixels in ELEMENTWISE:
        kernel = only(code, text)
        loop, found = loop_of(kernel, need) if kernel else (None, None)
        if loop is None:
            return None, name
        each, times = found[0], 1
        nested = [l for l in sorted(kernel.loops(), key=lambda l: l[1] - l[0])
                  if loop[0] < l[0] and l[1] < loop[1]]
        nested = [l for l in nested if inside and kernel.marks(l)[inside[0][0]] > 0][:len(inside)]
        if len(nested) != len(inside):
            return None, name
        for l, (mark, rounds) in zip(reversed(nested), reversed(inside)):  # from the outside in
            each += times * (rounds - 1) * way(kernel, l, {mark: 1})[0]
            times *= rounds
        each += way_in(kernel, loop[0]) / pixels
        rows.append({"kernel": name, "each": each, "numbers": numbers, "all": each * numbers})
    _, plain = loop_of(only(code, "copy_numbers"), {"LDG.E": 1, "STG.E": 1})
    for name, text, need, numbers in FUNCTIONS:
        kernel = only(code, text)
        _, found = loop_of(kernel, need)
        if not found or not plain:
            return None, name
        each = found[0] - plain[0]
        rows.append({"kernel": name, "each": each, "numbers": numbers, "all": each * numbers})
    for name, text, rounds in AT_MOST:
        kernel = only(code, text)
        if kernel is None:
            return None, name
        size = sum(1 for t in kernel.name if not t.startswith("NOP"))
        rows.append({"kernel": f"{name}, at most", "each": size, "numbers": rounds,
                     "all": size * rounds})
    return rows, None


def products(code):
    rows = []
    for name, texts, products_, loads, terms in PRODUCTS:
        kernel = only(code, *texts)
        need = {"HMMA": products_} | ({"LDG.E": loads} if loads else {})
        _, found = loop_of(kernel, need) if kernel else (None, None)
        if found is None:
            return None, name
        # A conversion is three instructions.
        rows.append({"loop": name, "instructions": found[0], "products": products_, "terms": terms,
                     "conversions": 3 * found[1], "share": 3 * found[1] / found[0]})
    return rows, None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--architecture", default="sm_90")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    code = compiled(SOURCE, args.architecture, MARKS)
    if code is None:
        return 0
    rows, missing = elementwise(code)
    loops, missing_loop = products(code)
    for name in filter(None, (missing, missing_loop)):
        print(f"{name}: its loops are not as this script expects", file=sys.stderr)
    if rows is None or loops is None:
        return 1
    total = sum(r["all"] for r in rows)
    failed = total > MAX_ELEMENTWISE or any(l["share"] > MAX_CONVERSIONS for l in loops)
    if args.json:
        print(json.dumps({"architecture": args.architecture, "elementwise": rows, "together": total,
                          "loops": loops}, indent=2))
        return int(failed)
    print(f"Instructions of threads, {args.architecture}, an example of cifar-cnn\n")
    print("| elementwise | a number | numbers | M |\n|---|---|---|---|")
    for r in rows:
        print(f"| {r['kernel']} | {r['each']:.0f} | {r['numbers']:,.0f} | {r['all'] / 1e6:.2f} |")
    print(f"| together (at most {MAX_ELEMENTWISE / 1e6:.0f}) | | | {total / 1e6:.1f} |\n")
    print("| loop by tensor cores | terms | products (HMMA) | instructions | of them conversions |")
    print("|---|---|---|---|---|")
    for l in loops:
        print(f"| {l['loop']} | {l['terms']} | {l['products']} | {l['instructions']} "
              f"| {100 * l['share']:.0f} % |")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
