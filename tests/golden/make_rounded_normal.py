#!/usr/bin/env python3
"""Writes rounded_normal.json: rounded normal pairs (kernels/random/rounded_normal.hpp) by mpmath.

Usage: make_rounded_normal.py > rounded_normal.json   (needs mpmath 1.3)
tests/kernels/rounded_normal_test.cpp makes the same words: `word` here. U1 and U2 have the first
64 bits, which a forced pair chooses, and three rounds of 256 further ones. At 300 decimal digits the
integers at both ends of what the digits allow are the same, or the script fails.
"""
import json
import sys

from mpmath import floor, log, mp, mpf, pi, sin, cos, sqrt

mp.dps = 300
BITS = 64 + 3 * 256
MASK = 2**64 - 1


def word(pair, number):
    """splitmix64's last steps, of a pair and a number."""
    z = (pair * 0x9E3779B97F4A7C15 + number * 0xD1342543DE82EF95 + 12345) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def rounded_pair(pair, s, first):
    """first: the first 64 bits of U1 and U2. Round k has words 2 + 8 (k - 1) + 0..3 for U1, 4..7 for U2."""
    u = list(first)
    for k in (1, 2, 3):
        for i in range(8):
            u[i // 4] = u[i // 4] << 64 | word(pair, 2 + 8 * (k - 1) + i)
    ends = []
    for above in (0, 1):
        r = sqrt(-2 * log(mpf(u[0] + above) / 2**BITS))
        angle = 2 * pi * mpf(u[1] + above) / 2**BITS
        # what moving both digits by 2^-832 does is far below the 2^-600 added here
        wide = mpf(2 * above - 1) / 2**600
        ends.append([int(floor(s * r * f(angle) + wide + mpf(1) / 2)) for f in (cos, sin)])
    assert ends[0] == ends[1], (pair, s)
    return ends[0]


# Both ends of U1, powers of two, and every eighth of a turn with the words beside it.
tops = [2**64 - 2048, 2**64 - 2047, 2**64 - 1025, 2**64 - 1024, 2**64 - 1023, 2**64 - 513,
        2**64 - 512, 2**64 - 2, 2**64 - 1]
radii = list(range(8)) + tops + [2**i for i in range(3, 64, 4)] + [3 * 2**i for i in range(2, 63, 7)]
turns = [(i << 61) + d & MASK for i in range(8) for d in (-1, 0, 1)]
scales = [65536.0, 79873.25, 1048576.0, 1.2345 * 2.0**24, 2.0**30 / 3.0, 2.0**33, 0.987 * 2.0**36,
          1.2345 * 2.0**39, 2.0**40, 1e9 + 0.1]

cases = []
for number, s in enumerate(scales):
    numbers = []
    for j in range(1000):
        pair = 1000 * number + j
        if j < 250:  # forced
            choice = 250 * number + j
            first = (radii[choice % len(radii)], turns[choice // len(radii) % len(turns)])
        else:
            first = (word(pair, 0), word(pair, 1))
        numbers += rounded_pair(pair, mpf(s), first)
    cases.append({"s": s, "numbers": numbers})

print(json.dumps({"source": "mpmath 1.3.0 at 300 digits", "forced": 250,
                  "radii": [str(a) for a in radii], "turns": [str(b) for b in turns]})[:-1] + ",")
print('"cases": [')
for c in cases:
    text = json.dumps(c, separators=(",", ":"))
    sys.stdout.write(text.replace('],', '],\n') + (",\n" if c is not cases[-1] else "\n"))
print("]}")
