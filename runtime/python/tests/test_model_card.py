"""The code of a model card, run as a reader would run it."""

import re

import numpy as np
import pytest

import cudp


def blocks_of(card):
    return re.findall(r"^```python\n(.*?)^```$", card, flags=re.MULTILINE | re.DOTALL)


def run_in(folder, block, names, monkeypatch):
    monkeypatch.chdir(folder)
    exec(compile(block, "README.md", "exec"), names)  # noqa: S102
    return names


@pytest.fixture(params=["cnn", "mlp"])
def trained(request, tmp_path, images):
    x, y = images
    x = np.repeat(np.repeat(x, 2, axis=1), 2, axis=2)[:, 2:30, 2:30].copy()
    run = cudp.train((x, y), model=request.param, epsilon=8.0, delta=1e-5, classes=2, epochs=1, batch=64,
                     seed=1, out=tmp_path / "run")
    return x, run


def block_with(run, word):
    found = [b for b in blocks_of((run.path / "release" / "README.md").read_text()) if word in b]
    assert len(found) == 1, found
    return found[0]


def test_the_code_for_numpy_runs(trained, monkeypatch):
    pytest.importorskip("safetensors")
    x, run = trained
    names = run_in(run.path / "release", block_with(run, "safetensors.numpy"), {"images": x}, monkeypatch)
    state = run.state_dict()
    assert set(names["weights"]) == set(state)
    assert all((names["weights"][name] == values).all() for name, values in state.items())
    assert names["x"].dtype == np.float32 and names["x"].max() <= 1.0 and names["x"].shape == x.shape


def test_the_code_for_torch_gives_the_programs_logits(trained, monkeypatch):
    torch = pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    x, run = trained
    given = x[:, None]  # [N, channels, height, width], as the card says
    names = run_in(run.path / "release", block_with(run, "import torch"), {"images": given}, monkeypatch)
    with torch.no_grad():
        logits = names["net"](names["x"]).numpy()
    expected = run.logits(x)
    assert np.abs(logits - expected).max() < 1e-5
    assert (names["classes"].numpy() == run.predict(x)).all()
