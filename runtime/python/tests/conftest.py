import json
import os
import subprocess

import numpy as np
import pytest

import cudp
from cudp.__main__ import program


@pytest.fixture
def cli(tmp_path):
    """Runs the program that the package brings."""

    def run(*words, expected=0):
        done = subprocess.run([program(), *map(str, words)], capture_output=True, text=True,
                              cwd=tmp_path, check=False)
        assert done.returncode == expected, done.stderr
        return done

    return run


@pytest.fixture
def cli_json(cli):
    return lambda *words: json.loads(cli(*words, "--json").stdout)


@pytest.fixture
def rows():
    """A small data set of two classes."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=(1500, 12)).astype(np.float32)
    return x, (x[:, 0] + 0.3 * x[:, 1] > 0).astype(np.int64)


@pytest.fixture
def images():
    """Small pictures of two classes: light and dark."""
    rng = np.random.default_rng(8)
    y = rng.integers(0, 2, size=400)
    x = rng.integers(0, 128, size=(400, 16, 16)) + 100 * y[:, None, None]
    return x.astype(np.uint8), y


@pytest.fixture
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def released(folder):
    """The bytes of every released file, by name."""
    release = os.path.join(str(getattr(folder, "path", folder)), "release")
    return {name: open(os.path.join(release, name), "rb").read() for name in os.listdir(release)}
