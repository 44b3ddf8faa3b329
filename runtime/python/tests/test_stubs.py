import ast
import inspect
import pathlib
import subprocess
import sys

import cudp

STUB = ast.parse((pathlib.Path(cudp.__file__).parent / "__init__.pyi").read_text())


def named():
    names = {}
    for node in STUB.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            names[node.name] = node
        elif isinstance(node, ast.ImportFrom):
            names.update((alias.asname, None) for alias in node.names if alias.asname)
        elif isinstance(node, ast.AnnAssign):
            names[node.target.id] = None
    return names


def test_the_stub_has_every_public_name():
    assert set(cudp.__all__) - set(named()) == set()


def test_functions_of_the_stub_take_what_the_functions_take():
    for name, node in named().items():
        if not isinstance(node, ast.FunctionDef):
            continue
        stated = [a.arg for a in (*node.args.args, *node.args.kwonlyargs)]
        real = [p.name for p in inspect.signature(getattr(cudp, name)).parameters.values()
                if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        assert stated == real, name


def test_classes_of_the_stub_have_what_the_classes_have():
    for name, node in named().items():
        if not isinstance(node, ast.ClassDef):
            continue
        for part in node.body:
            if isinstance(part, ast.FunctionDef):
                assert hasattr(getattr(cudp, name), part.name), (name, part.name)


def test_the_import_loads_little_but_numpy():
    """Modules that few calls need are loaded by these calls."""
    code = """
import sys, numpy
before = set(sys.modules)
import cudp
print(*sorted(set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "cudp._core" in loaded
    costly = {"csv", "hashlib", "html", "secrets", "subprocess", "sklearn", "torch", "pandas", "scipy", "cudp._estimators"}
    assert not costly & loaded
