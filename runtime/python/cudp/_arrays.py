"""Features and labels as arrays. An array of NumPy has a type that its owner chose, and is used as it is.
The values of a list, and of a column that may have missing values, are converted one by one, to a type that
follows from what is public: one row's value would otherwise decide the type of all."""

import os

import numpy as np

from . import _cells, _core


def _refuse(name, expected, found):
    raise _core.InputError(f"{name}: expected {expected}, found {found}")


def native(array, name):
    """Returns an array of numbers in the machine's byte order, and aligned; a copy only if necessary."""
    if isinstance(array, np.ma.MaskedArray):  # the values under its mask would be used
        _refuse(name, "an array without a mask, as its filled(VALUE) is", "a masked array")
    if array.dtype.kind not in "fiub":
        _refuse(name, "an array of numbers", f"one of type {array.dtype}")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if any(stride % array.itemsize for stride in array.strides):
        array = np.ascontiguousarray(array)
    return array


def _converted(value):
    """Returns a value as a float; NaN if it is not a number."""
    try:
        if np.iscomplexobj(value):  # NumPy would warn
            return np.nan
        number = np.array(value, dtype=np.float64)
    except Exception:  # whatever a value's class raises would tell of the value
        return np.nan
    return float(number) if number.ndim == 0 else np.nan


def _holds_values(value):
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes)) and getattr(value, "shape", None) != ()


def _numbers(values, name):
    """Returns the values of a list (numbers, lists or rows) as an array of float64. A value that is not a
    number becomes NaN."""
    try:
        array = np.array(values)
        if array.dtype.kind in "fiub":  # else value by value
            return array.astype(np.float64)
    except Exception:
        pass
    try:
        objects = np.array(values, dtype=object)
        flat = objects.ravel().tolist()
        alike = not any(map(_holds_values, flat))
    except Exception:
        alike = False
    if not alike:
        _refuse(name, "rows of one length", "others")
    return np.array([_converted(v) for v in flat], dtype=np.float64).reshape(objects.shape)


def check_classes(classes):
    """Throws InputError if `classes` of arrays, whose labels are numbers, is a list."""
    if hasattr(classes, "__len__") and not isinstance(classes, str):
        _refuse("classes", "the number of classes with (X, y), whose labels are 0, 1, ...",
                f"a {type(classes).__name__}; type classes={len(classes)}")


def _class_number(value):
    """Returns a label as a whole number; -1, which is not a class, if the label is not a whole number."""
    try:
        if isinstance(value, (list, tuple)):
            (value,) = value  # of a column, [n, 1]
        if isinstance(value, np.ndarray):
            value = value.item()
        if isinstance(value, (str, bytes)) or value != int(value) or not 0 <= value < 2**63:
            return -1
        return int(value)
    except Exception:
        return -1


def _class_numbers(values, name, missing):
    if all(type(v) is int for v in values):
        numbers = [v if 0 <= v < 2**63 else -1 for v in values]
    else:
        numbers = [_class_number(v) for v in values]
        if not missing and any(n < 0 and not _is_whole(v) for n, v in zip(numbers, values)):
            _refuse(name, "whole numbers 0, 1, ..., one for each row", "something else")
    return np.array(numbers, dtype=np.int64)


def _is_whole(value):
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _columns(frame):
    """Returns the columns of a DataFrame as a list of Series."""
    if hasattr(frame, "iloc"):
        return [frame.iloc[:, i] for i in range(frame.shape[1])]
    return [frame.to_series(i) for i in range(frame.shape[1])]


def _is_plain(column):
    """Returns whether a Series has a type of NumPy, in which only NaN can mean a missing value."""
    return hasattr(column, "iloc") and isinstance(column.dtype, np.dtype) and column.dtype.kind in "fiub"


def _column_numbers(column, name):
    """Returns a Series as an array of float64. Missing values become NaN."""
    if _is_plain(column):
        return column.to_numpy().astype(np.float64)
    return _numbers(_cells.values_of(column), name)


def _is_series(values):
    return not hasattr(values, "columns") and (hasattr(values, "iloc") or hasattr(values, "to_list"))


def _frame_features(frame, name, missing):
    columns = _columns(frame)
    if all(map(_is_plain, columns)):
        array = np.asarray(frame)
        if array.dtype.kind in "fiub":  # not so if booleans are beside numbers
            return native(array, name)
    types = {str(column.dtype).lower() for column in columns}
    if types == {"uint8"}:  # pixels
        values = [_cells.values_of(column) for column in columns]
        if not missing and any(_cells.cell_text(v) == "" for column in values for v in column):
            _refuse(name, "pixels, bytes of 0 to 255", "a missing one")
        return np.array([[0 if _cells.cell_text(v) == "" else v for v in column] for column in values],
                        dtype=np.uint8).T
    numbers = [_column_numbers(column, name) for column in columns]
    return np.stack(numbers, axis=1).astype(np.float32 if types == {"float32"} else np.float64)


def features(values, name="X", missing=False):
    """Converts rows of features, or images, to an array. missing: whether a value that cannot be read
    counts as missing."""
    if isinstance(values, np.ndarray):
        return native(values, name)
    if _cells.is_frame(values):
        return _frame_features(values, name, missing)
    if isinstance(values, (list, tuple)):
        if values and all(isinstance(row, np.ndarray) and row.ndim > 0 for row in values):
            if len({(row.dtype, row.shape) for row in values}) != 1:
                _refuse(name, "rows of one type and one length", "others")
            return native(np.array(values), name)
        return _numbers(values, name)
    return _other(values, name)


def _other(values, name):
    """Converts another object, for example a tensor, to an array by NumPy."""
    if hasattr(values, "toarray"):  # of SciPy
        _refuse(name, "an array of numbers, as its toarray() is", "a sparse one")
    try:
        array = np.asarray(values)
        if array.dtype.kind in "fiub":
            return native(array, name)
    except Exception:
        pass
    _refuse(name, "an array of numbers", "something else")


def labels(values, name="y", target=False, missing=False):
    """Converts labels 0, 1, ... to an array or, with `target`, the numbers to predict. missing: whether a
    label that cannot be read counts as missing; the program has a class for such labels."""
    if isinstance(values, np.ndarray):
        if values.dtype.kind in "US" and not target:
            _refuse(name, "whole numbers 0, 1, ..., the position of each label in a list of the classes", "texts")
        array = native(values, name)
    else:
        if _cells.is_frame(values) and values.shape[1] == 1:
            values = _columns(values)[0]
        if isinstance(values, (list, tuple)):
            array = _numbers(values, name) if target else _class_numbers(values, name, missing)
        elif _is_series(values) and not _is_plain(values):
            if target or "float" in str(values.dtype).lower():  # the type of a column is public
                array = _column_numbers(values, name)
            else:
                array = _class_numbers(_cells.values_of(values), name, missing)
        else:
            array = _other(values, name)
    if array.ndim == 2 and array.shape[1] != 1:
        _refuse(name, "one number for each row, as argmax(axis=1) makes of one-hot rows", "more or fewer")
    return array


def _memory(values):
    """Returns NumPy arrays that use the same memory as the values that a user passed, as far as they can be
    found."""
    if isinstance(values, np.ndarray):
        return [values]
    if isinstance(values, (list, tuple)):
        return [part for part in values if isinstance(part, np.ndarray)]
    if _cells.is_frame(values):
        return [part for column in _columns(values) for part in _memory(column)]
    if not _is_series(values):
        return []
    if hasattr(values, "iloc"):
        if isinstance(values.dtype, np.dtype):
            return [values.to_numpy()]
        parts = [getattr(values.array, name, None) for name in ("_data", "_mask", "_ndarray", "_codes")]
        return [part for part in parts if isinstance(part, np.ndarray)]
    try:
        return [values.to_numpy(allow_copy=False)]
    except Exception:  # texts, missing values or several chunks
        return []


def _is_shared(one, other):
    """Whether two objects are the same one, or share memory. Only arrays whose bounds overlap are compared."""
    if one is other:
        return True
    spans = []
    for owner, values in enumerate((one, other)):
        for array in _memory(values):
            if array.size != 0:
                low, high = np.lib.array_utils.byte_bounds(array) if hasattr(np.lib, "array_utils") else np.byte_bounds(array)
                spans.append((low, high, owner, array))
    spans.sort(key=lambda span: span[:3])
    current = []
    for low, high, owner, array in spans:
        current = [span for span in current if span[1] > low]
        if any(span[2] != owner and _overlap(span[3], array) for span in current):
            return True
        current.append((low, high, owner, array))
    return False


def _overlap(one, other):
    try:
        return np.shares_memory(one, other, max_work=10**6)
    except Exception:  # it would take long to tell
        return True


def _parts(data):
    """The objects that hold rows: X and y, or a DataFrame; none if data are a path or a name."""
    parts = list(data) if isinstance(data, (tuple, list)) and len(data) == 2 else [data]
    return [part for part in parts if part is not None and not isinstance(part, (str, os.PathLike))]


def check_apart(data, test_data):
    """Throws InputError if rows to test on are rows to train on: the same object, or one in its memory. A
    copy is not looked for: a refusal that depends on the rows' values would tell something of them."""
    if any(_is_shared(one, other) for one in _parts(data) for other in _parts(test_data)):
        _refuse("test_data", "test rows in memory of their own, as its copy() has",
                "memory of the training rows")
