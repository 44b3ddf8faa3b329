#!/usr/bin/env python3
"""Instructions that kernels take for a unit of their work, counted in the code that nvcc makes.

Usage: bench/count_instructions.py [--architecture sm_90] [--json]

What is counted is one way round a loop that passes what the unit of work needs: its loads and
stores and, for noise, the series of the logarithm and the sine and the square root of a pair. Loops
inside are gone round as often as the table says. Branches that a pair in a million takes (an
undecided pair, a division's slow path) are so left out; everything else stands in the sum. It is a
count of issued instructions of a thread, no time.

Needs nvcc and nvdisasm: on the path, in /usr/local/cuda/bin, or named by NVDISASM. Where one is
missing the script says so and counts nothing (nvdisasm is not part of every toolkit; PyPI has it as
nvidia-cuda-nvdisasm).
"""
import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

SOURCE = """
#include "kernels/step/finish.cuh"
namespace cudp {
template __global__ void finish_kernel<OptimizerKind::sgd>(FinishStep);
template __global__ void finish_kernel<OptimizerKind::momentum>(FinishStep);
template __global__ void finish_kernel<OptimizerKind::adam>(FinishStep);
}
"""

# An instruction is a mark of the first of these that it begins with.
MARKS = ["MUFU.RSQ64H", "LDG.E.64", "STG.E.64", "LDG.E", "STG.E"]
PAIR = {"MUFU.RSQ64H": 1, "LDG.E.64": 2, "STG.E.64": 2}  # one root, two sums read and cleared
ROUNDS = 10  # double rounds of ChaCha20

# Name, a text of the kernel's name, marks of one pair, limit (instructions a number and step).
FINISH = [
    ("sgd", "finish_kernelILNS_13OptimizerKindE0", {"LDG.E": 2, "STG.E": 2}, 340),
    ("momentum", "finish_kernelILNS_13OptimizerKindE1", {"LDG.E": 4, "STG.E": 4}, None),
    ("adam", "finish_kernelILNS_13OptimizerKindE3", {"LDG.E": 6, "STG.E": 6}, None),
]


class Code:
    """A kernel's instructions, and where each may go on to."""

    def __init__(self, lines, marks=MARKS):
        self.marked = marks
        self.text, labels = [], {}
        for line in lines:
            if m := re.match(r"(\.L\w+):", line):
                labels[m.group(1)] = len(self.text)
            elif m := re.match(r"\s+/\*[0-9a-f]+\*/\s+(.*?);", line):
                self.text.append(m.group(1).strip())
        n = len(self.text)
        self.next = [[] for _ in range(n)]
        self.name = []
        for i, text in enumerate(self.text):
            guarded = text.startswith("@")
            op = re.sub(r"^@!?U?P\w+\s+", "", text)
            self.name.append(op.split()[0])
            goes_on = True
            if op.startswith("BRA"):
                goes_on = guarded or re.match(r"BRA\S*\s+!?U?P\d", op) is not None
                at = labels.get(re.search(r"`\((\S+?)\)", op).group(1), n)
                if at < n:
                    self.next[i].append(at)
            elif op.startswith(("EXIT", "RET")):
                goes_on = guarded
            if goes_on and i + 1 < n:
                self.next[i].append(i + 1)

    def loops(self):
        """Loops as pairs of the first and the last instruction."""
        return [(to, i) for i, next_ in enumerate(self.next) for to in next_ if to <= i]

    def mark(self, i):
        return next((m for m in self.marked if self.name[i].startswith(m)), None)

    def marks(self, loop):
        return collections.Counter(filter(None, map(self.mark, range(loop[0], loop[1] + 1))))

    def round(self, loop, need, by=None):
        """Instructions of one way round the loop, past at least `need` marks and by instruction
        `by`, where one is given, and once through each loop in it that this needs: of the ways with
        the most arithmetic in double the shortest. A function's special cases (of 0, of infinity)
        have less of it than its series. Calls are slow paths, and are not taken."""
        first, last = loop
        need = need | ({"by": 1} if by is not None else {})
        kinds = list(need)
        best = {first: {(0,) * len(kinds): (0, 0)}}  # by place and marks: doubles, -instructions
        found = None
        for at in range(first, last + 1):
            if at not in best or self.name[at].startswith("CALL"):
                continue
            mark = "by" if at == by else self.mark(at)
            is_double = self.name[at].startswith(("DADD", "DMUL", "DFMA"))
            for had, (doubles, minus) in best.pop(at).items():
                had = tuple(min(need[k], h + (k == mark)) for k, h in zip(kinds, had))
                value = (doubles + is_double, minus - 1)
                for to in self.next[at]:
                    if to == first and all(h == need[k] for k, h in zip(kinds, had)):
                        found = max(found or value, value)
                    if at < to <= last:
                        ways = best.setdefault(to, {})
                        ways[had] = max(ways.get(had, value), value)
        return found and -found[1]


def kernels(disassembly, marks=MARKS):
    found, name = {}, None
    for line in disassembly.splitlines():
        if m := re.match(r"\.text\.(\S+):", line):
            name = m.group(1)
            found[name] = []
        elif name:
            found[name].append(line)
    return {name: Code(lines, marks) for name, lines in found.items()}


def finish(code, update):
    """Instructions a number of finish_kernel where a thread has a generator block of 8 numbers, and
    where it has a pair: the loop over a thread's items has the generator's rounds and the loop over
    pairs inside."""
    loops = code.loops()
    pairs = [l for l in loops if code.marks(l)["MUFU.RSQ64H"] == 1 and code.marks(l)["STG.E.64"]]
    if len(pairs) != 2:
        return None
    pair, item = sorted(pairs, key=lambda l: l[1] - l[0])
    rounds = [l for l in loops if item[0] < l[0] and l[1] < pair[0]]
    if len(rounds) != 1 or not (item[0] < pair[0] and pair[1] < item[1]):
        return None
    need = PAIR | update
    one_round = code.round(rounds[0], {})
    one_pair = code.round(pair, need)
    through = code.round(item, need, by=rounds[0][0])
    if None in (one_round, one_pair, through):
        return None
    block = through + (ROUNDS - 1) * one_round
    return {"round": one_round, "pair": one_pair, "by block": (block + 3 * one_pair) / 8,
            "by pair": block / 2}


def tool(name, variable):
    named = os.environ.get(variable)
    for place in (named, shutil.which(name), f"/usr/local/cuda/bin/{name}"):
        if place and os.access(place, os.X_OK):
            return place
    return None


def compiled(source, architecture, marks=MARKS):
    """The kernels of a source by their names, or None, which it says, where a tool is missing."""
    nvcc, nvdisasm = tool("nvcc", "NVCC"), tool("nvdisasm", "NVDISASM")
    if not nvcc or not nvdisasm:
        missing = "nvcc" if not nvcc else "nvdisasm"
        print(f"no {missing} here: nothing was counted", file=sys.stderr)
        return None
    with tempfile.TemporaryDirectory() as folder:
        file, cubin = pathlib.Path(folder) / "count.cu", pathlib.Path(folder) / "count.cubin"
        file.write_text(source)
        subprocess.run([nvcc, f"-I{ROOT}", "-O3", "-std=c++20", "-cubin", f"-arch={architecture}",
                        str(file), "-o", str(cubin)], check=True)
        text = subprocess.run([nvdisasm, "-c", str(cubin)], check=True, capture_output=True,
                              text=True).stdout
    return kernels(text, marks)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--architecture", default="sm_90")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    code, rows, failed = compiled(SOURCE, args.architecture), [], False
    if code is None:
        return 0
    for name, kernel, update, limit in FINISH:
        found = [finish(c, update) for k, c in code.items() if kernel in k]
        if len(found) != 1 or found[0] is None:
            print(f"finish, {name}: its loops are not as this script expects", file=sys.stderr)
            failed = True
            continue
        rows.append({"kernel": "finish", "optimizer": name, "limit": limit} | found[0])
        failed |= limit is not None and found[0]["by block"] > limit
    if args.json:
        print(json.dumps({"architecture": args.architecture, "rows": rows}, indent=2))
        return int(failed)
    print(f"Instructions of a thread, {args.architecture}")
    print(f"{'kernel':8} {'optimizer':10} {'round':>6} {'pair':>6} {'number, by block':>17} "
          f"{'by pair':>8} {'limit':>6}")
    for r in rows:
        print(f"{r['kernel']:8} {r['optimizer']:10} {r['round']:6} {r['pair']:6} "
              f"{r['by block']:17.1f} {r['by pair']:8.1f} {r['limit'] or '-':>6}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
