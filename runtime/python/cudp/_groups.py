"""Units of privacy of arrays: rows with the same id are one unit. Such rows become a table, because a
table's schema is where the program reads a unit from."""

import os
import re

import numpy as np

from . import _arrays, _cells, _core

_ID = "group"  # the unit's name if the ids have none


def _fewer_or_more(found, rows):
    """Returns "fewer" or "more", comparing a number with the number of rows. Messages state only this,
    because the number of rows is private."""
    return "fewer" if found < rows else "more"


def _id_text(value):
    """Returns the text of an id for a cell of the table. It is hexadecimal, because a table does not keep
    blanks around cells, and some texts mean a missing value. 7 and "7" give the same text, because they
    may be meant as one person."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        value = str(int(value))
    # Two floats that print differently may be meant as one id: a person would be two units.
    if not isinstance(value, str):
        raise _core.InputError(
            "groups: expected ids that are whole numbers or texts, found one of type "
            f"{type(value).__name__}"
        )
    return "u" + value.encode("utf-8", "surrogatepass").hex()


def _unit_name(groups):
    """Returns the name of the unit of privacy, which the certificate shows: the name of `groups` if it is a
    column of a DataFrame and no other column of the table has this name, else _ID."""
    name = getattr(groups, "name", None)
    usable = isinstance(name, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]*", name)
    return name if usable and not re.fullmatch(r"y|x\d+", name) else _ID


def _ids(groups, rows):
    """Returns the texts of the ids, one per row. Each text follows from its own id alone. (NumPy would give
    all ids of a list one type, and turn 7.0 into a text if another id is a text.)"""
    ids = _cells.values_of(groups)
    if ids is None:
        raise _core.InputError("groups: expected a list, an array or a column of ids, found something else")
    if len(ids) != rows:
        raise _core.InputError(
            f"groups: expected one id for each row, found {_fewer_or_more(len(ids), rows)}"
        )
    return [_id_text(value) for value in ids]


def _bounds(bounds, columns):
    """Returns two lists: the lower bound and the upper bound of each of the table's `columns` features."""
    if bounds is None:
        raise _core.InputError(
            "bounds: expected (low, high) of the features with groups, numbers or arrays, since the "
            "smallest and the largest value of private rows are not public; found none"
        )
    try:
        low, high = (np.broadcast_to(np.asarray(b, dtype=np.float64), (columns,)) for b in bounds)
    except (TypeError, ValueError):
        raise _core.InputError(
            f"bounds: expected (low, high), numbers or arrays of {columns}, found something else"
        ) from None
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise _core.InputError("bounds: expected finite numbers, low < high, found others")
    return low.tolist(), high.tolist()


def _features(x, name):
    if x.ndim != 2 or x.shape[1] == 0:
        raise _core.InputError(
            f"{name}: expected rows of features, [n, features], with groups, found an array of "
            + (f"{x.ndim} dimensions" if x.ndim != 2 else "0 features")
        )
    # A finite number beyond float32 stays finite: the bounds of the features clip it.
    most = np.finfo(np.float32).max
    return np.where(np.isfinite(x), np.clip(x, -most, most), x).astype(np.float32)


def _write_rows(path, x, y, unit=None, ids=None):
    """Writes a table that only its owner can read, and returns its path. unit, ids: name and cells of the
    column that identifies the unit of privacy; ids is None if the table has no such column."""
    if y.ndim != 1:
        raise _core.InputError(f"y: expected one number for each row, found an array of {y.ndim} dimensions")
    if len(y) != len(x):
        raise _core.InputError(f"y: expected one number for each row, found {_fewer_or_more(len(y), len(x))}")
    header = [f"x{i}" for i in range(x.shape[1])] + ["y"]
    if y.dtype == bool:
        y = y.astype(np.int64)
    with _cells.open_table(path) as file:
        writer = _cells.table_writer(file, len(header))
        writer.writerow(header if ids is None else [unit, *header])
        for i, (row, label) in enumerate(zip(x, y.tolist())):
            cells = [*row.tolist(), _cells.cell_text(label)]
            writer.writerow(cells if ids is None else [ids[i], *cells])
    return path


def _schema(columns, unit, bounds, max_rows, classes, target_bounds):
    """Returns the text of a schema for such a table. classes: number of classes; not used if target_bounds,
    the bounds of the number to predict, are given."""
    low, high = _bounds(bounds, columns)
    lines = ['name = "arrays"', f'unit = "{unit}"', f"max_rows = {max_rows}", "columns = [",
             f'  {{name = "{unit}", kind = "ignore"}},']
    lines += [f'  {{name = "x{i}", kind = "numeric", min = {low[i]!r}, max = {high[i]!r}}},'
              for i in range(columns)]
    if target_bounds is None:
        values = ", ".join(f'"{i}"' for i in range(classes))
        lines.append(f'  {{name = "y", kind = "label", values = [{values}]}},')
    else:
        least, most = (float(b) for b in target_bounds)
        lines.append(f'  {{name = "y", kind = "target", min = {least!r}, max = {most!r}}},')
    return "\n".join([*lines, "]", ""])


def as_table(data, test_data, groups, max_rows, bounds, settings, folder):
    """Writes (X, y), two arrays, and their ids into the folder, and names the schema in the settings.
    Returns the data with their paths."""
    for name in ("schema", "accept_private_bounds", "channels_last", "input_shape", "dataset"):
        if settings.get(name):
            raise _core.InputError(f"{name}: expected none with groups, found one")
    if isinstance(max_rows, bool) or not isinstance(max_rows, (int, np.integer)) or max_rows < 1:
        raise _core.InputError(
            "max_rows: expected the largest number of rows of a group that are used, public, with "
            f"groups, found {max_rows!r}"
        )
    x, y = _features(data[0], "X"), data[1]
    classes, target_bounds = settings.pop("classes", None), settings.pop("target_bounds", None)
    if (classes is None) == (target_bounds is None):
        raise _core.InputError("classes: expected their number, or target_bounds for numbers to predict")
    _arrays.check_classes(classes)
    if target_bounds is None and (isinstance(classes, bool) or not isinstance(classes, (int, np.integer))):
        raise _core.InputError(f"classes: expected their number with arrays, found {classes!r}")
    unit = _unit_name(groups)
    settings["schema"] = os.path.join(folder, "arrays.toml")
    with open(settings["schema"], "w", encoding="utf-8") as file:
        file.write(_schema(x.shape[1], unit, bounds, max_rows, classes, target_bounds))
    table = _write_rows(os.path.join(folder, "arrays.csv"), x, y, unit, _ids(groups, len(x)))
    if not isinstance(test_data, tuple):
        return table, test_data
    test_x = _features(test_data[0], "X of test_data")
    return table, _write_rows(os.path.join(folder, "arrays-test.csv"), test_x, test_data[1])


def features_of(schema):
    """Returns the number of features of a run that was trained on arrays with groups, from the text of its
    schema; None for another run."""
    if not re.search(r'^name = "arrays"$', schema, re.MULTILINE):
        return None
    found = re.findall(r'name = "x(\d+)"', schema)
    return len(found) if found == [str(i) for i in range(len(found))] and found else None


def write_scored(x, y, features, path):
    """Writes a table of rows that a model is to score, which was trained on arrays with groups. y: labels,
    or None. Returns the table's path."""
    x = _features(x, "X")
    if x.shape[1] != features:
        raise _core.InputError(f"X: expected {features} features, found {x.shape[1]}")
    return _write_rows(path, x, np.zeros(len(x), np.int64) if y is None else y)
