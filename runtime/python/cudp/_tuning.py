"""Tuning: settings chosen within the guarantee, by the program's `cudp tune`."""

import json
import os
import re
import shutil
import sys
import tempfile

import numpy as np

from . import _arrays, _budget, _core, _groups, _runs
from ._settings import data_alone, plain, plain_settings


def program():
    """Path of the program that the package brings."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "cudp")


@data_alone(1, "cudp.tune((X, y), epsilon=..., delta=..., classes=...)")
def tune(data=None, *, epsilon=None, delta=None, grid=None, test_data=None, groups=None,
         max_rows=None, bounds=None, out=None, dry_run=False, verbose=False, **settings):
    """Chooses settings by training, within the guarantee, and returns the Run of the best training.

    A secret number of trainings is made, each with a candidate of the grid that is drawn at random.
    The best one alone is released: epsilon and delta are those of the whole choice. Further trainings
    stay in the run's private folder, and may not be published.

    grid: a dict of lists of values by setting, the path of a GRID.toml file, or None: a default grid.
    data, test_data, groups, max_rows, bounds, out: as for `train`. Arrays are written to a file
    beside `out`, which only its owner can read, and which is removed at the end.
    dry_run: returns the plan, a dict, and trains and spends nothing.
    settings: those of `cudp tune` and `cudp train`, with "_" for "-": runs, eta, most_runs, score,
    jobs, holdout, seed, ...

    The trainings run in processes of the program. Ctrl-C stops them at a checkpoint and raises
    InterruptedRun; the same call with the same `out` continues. Within a Budget the whole tuning is
    charged before it starts. Raises InputError, a ValueError, and BudgetError.
    """
    charged = _budget.Charged()
    given = {"epsilon": epsilon, "delta": delta, **settings}
    given = {key: value for key, value in given.items() if value is not None}
    lists, grid_file = _grid(grid)
    if charged.files and out is not None and os.path.exists(out):
        raise _core.InputError(
            f"out: expected a new folder within a Budget, found {os.fspath(out)}; a tuning that was "
            "interrupted is charged already, and continues outside of the Budget"
        )
    keeper = files = None
    if out is None and not dry_run:
        keeper = tempfile.mkdtemp(prefix="cudp-")
        out = os.path.join(keeper, "run")
    try:
        files = _folder_of_files(None if dry_run else out)
        _write_data(data, test_data, groups, max_rows, bounds, given, files)
        text = _core.tune_file(plain_settings(given), lists, grid_file)
        request = os.path.join(files, "grid.toml")
        with open(request, "w", encoding="utf-8") as file:
            file.write(text)
        words = ["tune", request, "--json"]
        if dry_run:
            return _tune_program([*words, "--dry-run"], verbose)
        if charged.files:
            plan = _tune_program([*words, "--dry-run"], False)
            _core.charge_stated(charged.files, plan["unit"], plan["epsilon"], plan["delta"],
                                "tuning of " + os.path.basename(given.get("dataset", "a preset")))
        words += ["--out", os.path.abspath(out)]
        return _runs.Run(_tune_program(words, verbose)["run_dir"], _keeper=keeper)
    except BaseException:
        if keeper is not None:
            _runs._remove_if_finished(keeper)
        raise
    finally:
        if files is not None:
            shutil.rmtree(files, ignore_errors=True)


def _folder_of_files(out):
    """Makes a folder for files of the tuning, which only its owner can read. It stands beside `out`, so
    that a tuning that continues has the same paths."""
    if out is None:
        return tempfile.mkdtemp(prefix="cudp-tune-")
    parent, name = os.path.split(os.path.abspath(out))
    folder = os.path.join(parent, f".{name}.cudp-inputs")
    os.makedirs(parent, exist_ok=True)
    shutil.rmtree(folder, ignore_errors=True)  # of a process that was killed
    os.mkdir(folder, 0o700)
    return folder


def _grid(grid):
    """The lists of a grid, and the path of its file or ""."""
    if grid is None:
        return {}, ""
    if isinstance(grid, (str, os.PathLike)):
        return {}, os.path.abspath(grid)
    if not isinstance(grid, dict):
        raise _core.InputError(
            "grid: expected a dict of lists of values by setting, or the path of a .toml file, found "
            f"{type(grid).__name__}"
        )
    lists = {}
    for key, values in grid.items():
        if not isinstance(values, (list, tuple, np.ndarray)):
            raise _core.InputError(
                f"grid: expected a list of values of '{key}', found {values!r}"
            )
        lists[key] = [plain(value) for value in values]
    return lists, ""


def _write_data(data, test_data, groups, max_rows, bounds, settings, files):
    """Writes what is not in a file yet into the folder, and names it in the settings."""
    _runs._check_groups(data, groups, max_rows, bounds, settings)
    _arrays.check_apart(data, test_data)
    if _runs._is_pair(data) and len(data) == 2 and _runs._is_texts(data[0], settings):
        data, test_data = _runs._texts_as_table(data, test_data, settings, files)
    elif groups is not None:
        tested = _runs._pair(test_data, "test_data", settings) if _runs._is_pair(test_data) else test_data
        data, test_data = _groups.as_table(_runs._pair(data, "data", settings), tested, groups, max_rows,
                                           bounds, settings, files)
    else:
        data, test_data = _runs._frames_as_tables(data, test_data, settings, files)
    arrays, test_arrays = _runs._named(settings, data, test_data)
    for pair, key in ((arrays, "dataset"), (test_arrays, "test_data")):
        if pair is not None:
            path = os.path.join(files, settings[key])
            np.savez(path, x=np.ascontiguousarray(pair[0]), y=np.ascontiguousarray(pair[1]))
            settings[key] = path
    if isinstance(settings.get("model"), dict):
        _runs._use_model(settings, files)


def _tune_program(words, verbose):
    """Runs the program, and returns what it prints as JSON. Raises its errors."""
    import signal
    import subprocess

    with tempfile.TemporaryFile("w+", encoding="utf-8") as answer:
        # A session of its own: Ctrl-C reaches the program once, from here.
        process = subprocess.Popen([program(), *words], stdin=subprocess.DEVNULL, stdout=answer,
                                   stderr=subprocess.PIPE, encoding="utf-8", errors="replace",
                                   start_new_session=True)
        last, interrupted = "", False
        with process.stderr:
            while True:
                try:
                    for line in process.stderr:
                        last = line.strip() or last
                        if verbose:
                            print(line, end="", file=sys.stderr)
                    process.wait()
                    break
                except KeyboardInterrupt:
                    interrupted = True
                    process.send_signal(signal.SIGINT)
                except BaseException:
                    process.send_signal(signal.SIGINT)
                    process.wait()
                    raise
        if process.returncode == 0:
            if interrupted:
                raise KeyboardInterrupt
            answer.seek(0)
            return json.load(answer)
    if process.returncode < 0:
        last = f"cudp tune was ended by signal {-process.returncode}"
    last = re.sub(r"cudp tune --resume (.*)$", r"cudp.tune with the same arguments and out='\1'", last)
    _core.raise_program_error(last.removeprefix("cudp: "), process.returncode)
