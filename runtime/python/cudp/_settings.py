"""Converts settings that Python code passes to the form that the program takes."""

import contextlib
import contextvars
import functools
import os
import re

from . import _core
from ._core import InputError

# Names that other libraries give to settings of the accountant.
_OTHER_NAMES = {
    "sample_rate": "q",
    "sampling_rate": "q",
    "sampling_probability": "q",
    "noise_multiplier": "sigma",
    "target_epsilon": "epsilon",
    "target_delta": "delta",
    "num_steps": "steps",
}

# A command of the program, which stays as it is, or a flag and the placeholder or number behind it.
_FLAG = re.compile(r"\bcudp [a-z]+ [^;)`\n]*"
                   r"|(?<![\w/.=-])--(?P<name>[a-z][a-z0-9]*(?:-[a-z0-9]+)*)"
                   r"(?: (?P<value>[A-Z][A-Zx,]*(?:\.[a-z]+)?|\d+(?:\.\d+)?(?:e-?\d+)?)(?![\w.]*\w))?")

# What the caller's arguments are called, by the program's name of the setting, where they differ.
_names = contextvars.ContextVar("names of settings", default={})


def in_python(text):
    """Returns a message of the program with keyword arguments in place of flags: `test_data` for --test-data,
    `batch=800` for --batch 800, `size_is_public=True` for --size-is-public. The extension calls it for every error
    that it raises."""
    def keyword(found):
        flag, value = found["name"], found["value"]
        if flag is None:
            return found[0]
        name = _names.get().get(flag.replace("-", "_")) or flag.replace("-", "_")
        if value is not None:
            return f"{name}={value}"
        is_switch = flag in _toggles() and not text.startswith(":", found.end())
        return f"{name}=True" if is_switch else name

    return _FLAG.sub(keyword, text)


@functools.lru_cache(maxsize=None)
def _toggles():
    return frozenset(_core.toggles())


@contextlib.contextmanager
def named(names):
    """Within it, messages call the settings by these names, a dict by the program's name."""
    token = _names.set({**_names.get(), **names})
    try:
        yield
    finally:
        _names.reset(token)


def data_alone(limit, example):
    """Makes a function refuse more positional arguments than `limit` with the right call, `example`: a call in the
    form of scikit-learn, fit(X, y), has one too many."""
    def of(function):
        @functools.wraps(function)
        def call(*args, **settings):
            if len(args) > limit:
                raise TypeError(f"{function.__name__}() takes features and labels as one argument, and settings by "
                                f"name: {example}")
            return function(*args, **settings)

        return call

    return of


def plain(value):
    """Returns a setting as bool, int, float or str: a number of NumPy becomes one of Python, a list a
    text with commas."""
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):
        value = value.tolist()
        if isinstance(value, (bool, int, float, str)):
            return value
    if isinstance(value, (list, tuple)):
        parts = [plain(part) for part in value]
        return ",".join(part if isinstance(part, str) else repr(part) for part in parts)
    return value


def plain_settings(settings):
    """Returns the settings that are not None, each as bool, int, float or str."""
    return {key: plain(value) for key, value in settings.items() if value is not None}


def accountant_settings(settings):
    """Returns settings of the accountant under the program's names, and the other names that they were given by: a
    dict by the program's. Names that other libraries use are accepted, too."""
    ours_of, others = {}, {}
    for key, value in plain_settings(settings).items():
        ours = _OTHER_NAMES.get(key, key)
        if ours in ours_of:
            raise InputError(f"{key}: expected one name of this setting, found {others.get(ours, ours)} as well")
        ours_of[ours] = value
        if key != ours:
            others[ours] = key
    return ours_of, others
