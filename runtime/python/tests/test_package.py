import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[3]


def test_an_sdist_has_every_source_file():
    """The patterns are those of .gitignore, so git finds what they leave out."""
    tomllib = pytest.importorskip("tomllib")
    if not (ROOT / ".git").exists():
        pytest.skip("needs a clone")
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]["sdist"]["exclude"]
    done = subprocess.run(["git", "-C", ROOT, "ls-files", "--cached", "--ignored",
                           *(f"--exclude={pattern}" for pattern in patterns)],
                          capture_output=True, text=True, check=True)
    left_out = done.stdout.splitlines()
    assert left_out and all(file.startswith("bench/results/") for file in left_out), left_out
