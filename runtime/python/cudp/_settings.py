"""Converts settings that Python code passes to the form that the program takes."""

import os

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
    """Returns settings of the accountant under the program's names. Names that other libraries use are
    accepted, too."""
    named = {}
    for key, value in plain_settings(settings).items():
        ours = _OTHER_NAMES.get(key, key)
        if ours in named:
            raise InputError(f"--{ours}: expected it once, found it under two names")
        named[ours] = value
    return named
