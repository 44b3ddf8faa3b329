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
