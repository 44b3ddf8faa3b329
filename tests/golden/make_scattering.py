#!/usr/bin/env python3
"""Writes scattering.json: what Kymatio 0.3 makes of a few generated images.

Usage: make_scattering.py > scattering.json   (needs numpy, scipy and kymatio 0.3)
tests/kernels/scatter_test.cpp makes the same images. Every `every`-th number of the flat output
[images, colours * 81, height / 4, width / 4] is kept.
"""
import json

import numpy as np
from kymatio.scattering2d.frontend.numpy_frontend import ScatteringNumPy2D


def images(colours, height, width):
    """A texture, a disc and a ramp, as bytes."""
    c, y, x = np.meshgrid(np.arange(colours), np.arange(height), np.arange(width), indexing="ij")
    texture = (37 * c + 11 * y * y + 7 * x * x + 13 * x * y + 5 * y) % 256
    inside = (3 * y - height - c) ** 2 + (2 * x - width + c) ** 2 < height * width // 2
    ramp = (8 * x + 3 * y + 40 * c) % 256
    return np.stack([texture, 255 * inside, ramp])


def case(colours, height, width, every):
    scattering = ScatteringNumPy2D(2, (height, width), L=8)
    out = scattering(images(colours, height, width) / 255.0)
    values = out.reshape(-1)[::every]
    return {
        "colours": colours,
        "height": height,
        "width": width,
        "every": every,
        "values": [float(f"{v:.7g}") for v in values],
    }


cases = [case(1, 28, 28, 11), case(3, 32, 32, 47), case(1, 21, 30, 13), case(1, 16, 15, 5)]
print(json.dumps({"source": "kymatio 0.3.0, numpy, J=2, L=8, max_order=2", "cases": cases}))
