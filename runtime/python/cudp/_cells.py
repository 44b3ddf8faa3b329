"""Values as cells of a table. The text of a cell follows from its value and public settings alone: how
another row's value is written would otherwise depend on it."""

import datetime
import os
import re
import sys

import numpy as np

_TIME = re.compile(r"%[HMS]")
_ROWS_AT_ONCE = 1 << 16
# The text of a value that has none. It stands for a missing value in no schema, unless one says so.
_UNREADABLE = "unreadable"


def number_text(value):
    """The text of a float: that of a whole number has no point, so that 1 and 1.0 have one text. A
    column of whole numbers becomes one of floats if a row has no number there."""
    value = float(value)
    if value.is_integer():
        return str(int(value))
    return repr(value)


def _decimal_text(value):
    if not value.is_finite() or abs(value.adjusted()) > 1000:  # without an exponent it may not fit into memory
        return str(value)
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _date_text(value, with_time):
    """Returns the text of a datetime. with_time: whether the time is written even if it is midnight."""
    text = value.isoformat(sep=" ")
    if value.tzinfo is None and not with_time:
        text = text[: -len(" 00:00:00")] if text.endswith(" 00:00:00") else text
    return text


def _duration_text(value):
    """Returns the text of a timedelta, as pandas writes it: "2 days", "2 days 01:00:00"."""
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
    """The text of a cell; "" if the value is missing, a constant if its class fails to give one, since the
    error might tell of the value. with_time: a datetime at midnight has its time."""
    kind = type(value)
    if kind is str:
        return value
    if kind is float:
        return "" if value != value else number_text(value)
    if kind is int and -(2**63) <= value < 2**63:
        return str(value)
    try:
        return _text_of(value, kind, with_time)
    except Exception:
        return _UNREADABLE


def _text_of(value, kind, with_time):
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
    for name in ("tolist", "to_list", "to_pylist"):  # NumPy and pandas; polars; Arrow
        if hasattr(values, name):
            return getattr(values, name)()
    try:
        return list(values)
    except TypeError:
        return None


class _Table:
    """A new file of text, readable by its owner only. A character that UTF-8 does not have becomes "?", and so
    does a zero byte, by which the program tells binary files."""

    def __init__(self, path):
        self._file = open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8",
                          errors="replace", newline="")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def write(self, text):
        self._file.write(text.replace("\0", "?"))


def open_table(path):
    return _Table(path)


def table_writer(file, columns):
    """Writes rows in the one dialect of tables that Python writes, which the extension's written_schema states.
    columns: their number. A row of one column is always in quotes, because the program skips blank lines."""
    import csv

    return csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_MINIMAL if columns > 1 else csv.QUOTE_ALL)


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
    writer = table_writer(file, len(names))
    if with_header:
        writer.writerow(names)
    columns = []
    for i, name in enumerate(names):
        with_time = name in times
        columns.append([cell_text(value, with_time) for value in _values_of_column(part.iloc[:, i])])
    writer.writerows(zip(*columns))


def _values_of_column(column):
    """The values of a column of pandas. One that Python's classes do not have is an object without a text."""
    try:
        return column.tolist()
    except Exception:
        return [_value_at(column, i) for i in range(len(column))]


class NoText:
    """Stands for a value that no class of Python has, such as a date after the year 9999."""

    def __str__(self):
        raise ValueError


def _value_at(column, i):
    try:
        return column.iloc[i : i + 1].tolist()[0]
    except Exception:
        return NoText()


def _far_dates(column):
    """Which dates of a column of polars are beyond the years 1 to 9999: polars cannot write the farthest."""
    import polars

    if column.dtype == polars.Date:
        day = 1
    elif isinstance(column.dtype, polars.Datetime):
        day = 86400 * {"ms": 10**3, "us": 10**6, "ns": 10**9}[column.dtype.time_unit]
    else:
        return None
    # A time zone may move a time by a day.
    first, last = datetime.date(1, 1, 3).toordinal(), datetime.date(9999, 12, 29).toordinal()
    epoch = datetime.date(1970, 1, 1).toordinal()
    low, high = (max(-(2**63), min(2**63 - 1, (bound - epoch) * day)) for bound in (first, last))
    physical = column.to_physical().cast(polars.Int64)
    far = (physical < low) | (physical > high)
    return far.fill_null(False) if far.any() else None


def _dates_as_texts(column, far):
    """The texts that polars writes, but for dates that are far."""
    import polars

    near = polars.select(polars.when(~far).then(column))
    texts = near.write_csv(include_header=False, quote_style="never").split("\n")
    return [_UNREADABLE if is_far else text or None for text, is_far in zip(texts, far.to_list())]


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
        elif (far := _far_dates(column)) is not None:
            texts = _dates_as_texts(column, far)
        else:
            continue
        changed.append(polars.Series(name, texts, dtype=polars.Utf8))
    file.write(part.with_columns(changed).write_csv(
        include_header=with_header, quote_style="necessary" if part.width > 1 else "always"))


def _write_arrow(source, times, file):
    """Writes each cell by its own value, as one of pandas. Returns the number of rows."""
    from ._arrow import Table

    table = Table(source)
    writer = table_writer(file, len(table.names))
    writer.writerow(table.names)
    rows = 0
    for columns in table.rows(_ROWS_AT_ONCE):
        texts = [[cell_text(value, name in times) for value in values] for name, values in zip(table.names, columns)]
        writer.writerows(zip(*texts))
        rows += len(columns[0]) if columns else 0
    return rows


def _is_pandas(data):
    return hasattr(data, "columns") and hasattr(data, "iloc")


def _is_polars(data):
    return hasattr(data, "columns") and hasattr(data, "to_series")


def is_frame(data):
    """Whether data are a DataFrame of pandas or polars."""
    return _is_pandas(data) or _is_polars(data)


def is_table(data):
    """Whether data are a DataFrame, or another table that Arrow's C stream hands over."""
    is_column = not hasattr(data, "columns") and (hasattr(data, "iloc") or hasattr(data, "to_list"))
    return is_frame(data) or (hasattr(data, "__arrow_c_stream__") and not is_column)


def write_frame(frame, path, schema=""):
    """Writes a DataFrame, or a table of Arrow, as a table for the program. schema: the text of the schema, or "".
    Returns the number of rows."""
    times = times_of(schema)
    with open_table(path) as file:
        if not is_frame(frame):
            return _write_arrow(frame, times, file)
        for begin in range(0, max(len(frame), 1), _ROWS_AT_ONCE):
            if _is_polars(frame):
                _write_polars(frame[begin : begin + _ROWS_AT_ONCE], file, begin == 0)
            else:
                _write_pandas(frame.iloc[begin : begin + _ROWS_AT_ONCE], times, file, begin == 0)
    return len(frame)
