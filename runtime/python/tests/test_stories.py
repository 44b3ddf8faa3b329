import pathlib
import re

import pytest

README = pathlib.Path(__file__).parents[1] / "README.md"


def stories():
    text = README.read_text()
    return re.findall(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def test_every_block_of_the_readme_runs(in_folder):
    blocks = stories()
    assert len(blocks) >= 5
    names = {}
    for number, block in enumerate(blocks):
        exec(compile(block, f"{README}, block {number + 1}", "exec"), names)  # noqa: S102


def test_the_readme_says_what_comes_out(in_folder):
    """A comment beside a line that is a number is what the line gives."""
    import cudp
    import numpy as np

    lines = re.findall(r"^(cudp\.(?:account|calibrate)\(.*?\S)\s+# ([0-9.]+)$", README.read_text(), flags=re.MULTILINE)
    assert len(lines) == 2
    for line, value in lines:
        assert eval(line, {"cudp": cudp, "np": np}) == pytest.approx(float(value), rel=1e-12)  # noqa: S307


def test_the_lines_there_and_here(in_folder):
    """What stands in the right column of the table for Opacus and dp_accounting is evaluated, and says the same."""
    import cudp

    table = re.search(r"^\| Opacus, dp_accounting \| here \|\n\|---\|---\|\n((?:\|.*\n)+)", README.read_text(),
                      flags=re.MULTILINE)
    lines = [re.findall(r"`([^`]+)`", row.split(" | ")[1]) for row in table[1].splitlines()]
    names = {**vars(cudp), "q": 0.01, "s": 1.0, "n": 2000, "e": 2.0, "d": 1e-6}
    names["releases"] = [cudp.PoissonGaussian(0.01, 1.0, 2000)]
    names["event"] = None
    (renyi, losses), (steps,), (noise,), (translated, one) = [
        [(lambda code=code: eval(code, names)) for code in line] for line in lines]  # noqa: S307
    assert losses().epsilon(1e-6) < renyi().epsilon(1e-6) < 1.2 * losses().epsilon(1e-6)
    assert cudp.Accountant(steps()).epsilon(1e-6) == losses().epsilon(1e-6)
    spent = cudp.Accountant(cudp.PoissonGaussian(0.01, noise(), 2000)).epsilon(1e-6)
    assert 2.0 * (1 - 1e-3) < spent <= 2.0
    assert cudp.Accountant(one()).epsilon(1e-6) < losses().epsilon(1e-6)
    try:
        from dp_accounting import dp_event
    except ImportError:
        return
    names["event"] = dp_event.PoissonSampledDpEvent(0.01, dp_event.GaussianDpEvent(1.0))
    assert cudp.Accountant(translated()).epsilon(1e-6) == cudp.Accountant(one()).epsilon(1e-6)
