"""Values as cells of a table. The text of a cell follows from its value and public settings alone: how
another row's value is written would otherwise depend on it."""

import datetime
import os
import re
import sys

import numpy as np

_TIME = re.compile(r"%[HMS]")
_ROWS_AT_ONCE = 1 << 16


def number_text(value):
    """The text of a float: that of a whole number has no point, so that 1 and 1.0 have one text. A
    column of whole numbers becomes one of floats if a row has no number there."""
    value = float(value)
    if value.is_integer():
        return str(int(value))
    return repr(value)


def _decimal_text(value):
    if not value.is_finite():
        return str(value)
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _date_text(value, with_time):
    """The text of a datetime. with_time: midnight is written, too."""
    text = value.isoformat(sep=" ")
    if value.tzinfo is None and not with_time:
        text = text[: -len(" 00:00:00")] if text.endswith(" 00:00:00") else text
    return text


def _duration_text(value):
    """The text of a timedelta, as pandas writes it: "2 days", "2 days 01:00:00"."""
    parts = value.seconds, value.microseconds, getattr(value, "nanoseconds", 0)
    text = f"{value.days} days"
    if not any(parts):
        return text
    seconds, micros, nanos = parts
    sign = "+" if value.days < 0 else ""
    text += f" {sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if nanos:
        return text + f".{micros:06}{nanos:03}"
    return text + (f".{micros:06}" if micros else "")


def cell_text(value, with_time=False):
    """The text of a cell; "" if the value is missing. with_time: a datetime at midnight has its time."""
    kind = type(value)
    if kind is str:
        return value
    if kind is float:
        return "" if value != value else number_text(value)
    if kind is int:
        return str(value)
    if value is None or kind.__name__ in ("NAType", "NaTType"):
        return ""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, np.datetime64):
        if np.isnat(value):
            return ""
        return cell_text(value.astype("datetime64[us]").item(), with_time)
    if isinstance(value, np.timedelta64):
        return "" if np.isnat(value) else cell_text(value.astype("timedelta64[us]").item())
    if isinstance(value, np.integer):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return cell_text(float(value))
    if "decimal" in sys.modules and isinstance(value, sys.modules["decimal"].Decimal):
        return "" if value.is_nan() else _decimal_text(value)
    if isinstance(value, datetime.datetime):
        return _date_text(value, with_time)
    if isinstance(value, datetime.date):
        return value.isoformat() + (" 00:00:00" if with_time else "")
    if isinstance(value, datetime.timedelta):
        return _duration_text(value)
    return str(value)


def values_of(values):
    """The values of a list, an array or a column, each with a type of its own: an array made of the
    list has one type for all, which one value can change. None if they are something else."""
    if getattr(values, "ndim", 1) != 1 or isinstance(values, (str, bytes, dict, set, frozenset)):
        return None
    for name in ("tolist", "to_list"):  # NumPy and pandas; polars
        if hasattr(values, name):
            return getattr(values, name)()
    try:
        return list(values)
    except TypeError:
        return None


def open_table(path):
    """Opens a new table, readable by its owner only. A character that UTF-8 does not have becomes "?"."""
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8",
                errors="replace", newline="")


def table_writer(file):
    import csv

    return csv.writer(file, lineterminator="\n")


def times_of(schema):
    """The names of columns whose dates have a time of day, from the text of a schema."""
    try:
        import tomllib
    except ImportError:  # before Python 3.11
        found = [(re.search(r'\bname\s*=\s*["\']([^"\']*)["\']', part),
                  re.search(r'\bformat\s*=\s*["\']([^"\']*)["\']', part))
                 for part in re.findall(r"\{[^{}]*\}", schema) + schema.split("[[columns]]")[1:]]
        columns = [{"name": name[1], "format": form[1]} for name, form in found if name and form]
    else:
        try:
            columns = tomllib.loads(schema).get("columns", [])
        except tomllib.TOMLDecodeError:
            return set()  # the program says what is wrong
    return {str(c.get("name")) for c in columns
            if isinstance(c, dict) and _TIME.search(str(c.get("format", "")).replace("%%", ""))}


def _write_pandas(part, times, file, with_header):
    names = [str(name) for name in part.columns]
    writer = table_writer(file)
    if with_header:
        writer.writerow(names)
    columns = []
    for i, name in enumerate(names):
        with_time = name in times
        columns.append([cell_text(value, with_time) for value in part.iloc[:, i].tolist()])
    writer.writerows(zip(*columns))


def _write_polars(part, file, with_header):
    """polars writes each cell by its value and its column's type. Whole numbers in a column that became
    one of floats are written as whole numbers."""
    import polars

    changed = []
    for name in part.columns:
        column = part[name]
        if column.dtype.is_float():
            texts = [None if v is None else "NaN" if v != v else number_text(v) for v in column.to_list()]
        elif column.dtype.is_decimal():
            texts = [None if v is None else _decimal_text(v) for v in column.to_list()]
        else:
            continue
        changed.append(polars.Series(name, texts, dtype=polars.Utf8))
    file.write(part.with_columns(changed).write_csv(include_header=with_header))


def write_frame(frame, path, schema=""):
    """Writes a DataFrame as a table for the program. schema: the text of the schema, or ""."""
    times = times_of(schema)
    with open_table(path) as file:
        for begin in range(0, max(len(frame), 1), _ROWS_AT_ONCE):
            if hasattr(frame, "write_csv"):
                _write_polars(frame[begin : begin + _ROWS_AT_ONCE], file, begin == 0)
            else:
                _write_pandas(frame.iloc[begin : begin + _ROWS_AT_ONCE], times, file, begin == 0)
    return path
