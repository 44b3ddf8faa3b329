"""Reads tables of Arrow: pyarrow, duckdb and others hand them over by `__arrow_c_stream__`, so that none of them is
needed here (https://arrow.apache.org/docs/format/CStreamInterface.html)."""

import ctypes
import datetime
import decimal

import numpy as np

from . import _cells, _core


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


class _Stream(ctypes.Structure):
    pass


_Schema._fields_ = [
    ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p), ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
    ("dictionary", ctypes.POINTER(_Schema)), ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Schema))),
    ("private_data", ctypes.c_void_p),
]
_Array._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))), ("dictionary", ctypes.POINTER(_Array)),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Array))), ("private_data", ctypes.c_void_p),
]
_Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Schema))),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Array))),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(_Stream))),
    ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p),
]

_NUMBERS = {"c": "i1", "C": "u1", "s": "i2", "S": "u2", "i": "i4", "I": "u4", "l": "i8", "L": "u8",
            "e": "f2", "f": "f4", "g": "f8"}
_PER_SECOND = {"s": 1, "m": 10**3, "u": 10**6, "n": 10**9}


class _Moment(datetime.datetime):
    """A datetime with nanoseconds, 0 to 999."""

    nanosecond = 0

    def isoformat(self, sep="T", timespec="auto"):
        if not self.nanosecond:
            return super().isoformat(sep, timespec)
        text = super().isoformat(sep, "microseconds")
        return f"{text[:26]}{self.nanosecond:03}{text[26:]}"


class _Duration(datetime.timedelta):
    """A timedelta with nanoseconds, 0 to 999."""

    nanoseconds = 0


def _buffer(array, index, dtype, begin, count):
    """`count` items of a buffer, from item `begin` on, as a NumPy array that shares its memory."""
    address = array.buffers[index] if index < array.n_buffers else None
    dtype = np.dtype(dtype)
    if not address or count == 0:
        return np.zeros(count, dtype)
    return np.frombuffer((ctypes.c_char * (count * dtype.itemsize)).from_address(address + begin * dtype.itemsize), dtype)


def _bits(array, index, begin, count):
    """`count` bits of a buffer, from bit `begin` on, as bools."""
    first = begin // 8
    octets = _buffer(array, index, "u1", first, (begin + count + 7) // 8 - first)
    return np.unpackbits(octets, bitorder="little")[begin - 8 * first :][:count].astype(bool)


def _bytes_at(array, offset_type, begin, count):
    """Values of a column of bytes or texts, which lie one after another in one buffer."""
    offsets = _buffer(array, 1, offset_type, begin, count + 1).tolist()
    first = offsets[0]
    data = _buffer(array, 2, "u1", first, offsets[-1] - first).tobytes()
    return [data[a - first : b - first] for a, b in zip(offsets, offsets[1:])]


def _views(array, begin, count):
    """Values of a column of views: 12 bytes or fewer in the view itself, more in one of several buffers."""
    values = []
    for view in _buffer(array, 1, "V16", begin, count).tolist():
        size = int.from_bytes(view[:4], "little")
        if size > 12:
            buffer, offset = (int.from_bytes(view[i : i + 4], "little") for i in (8, 12))
            values.append(_buffer(array, 2 + buffer, "u1", offset, size).tobytes())
        else:
            values.append(view[4 : 4 + size])
    return values


def _or_no_text(make):
    """make(value), but a _cells.NoText where the classes of Python do not have the value."""
    def call(value):
        try:
            return make(value)
        except (OverflowError, ValueError):
            return _cells.NoText()

    return call


def _of_ticks(per_second, make):
    """make(timedelta, nanoseconds below a microsecond) of a time in ticks."""
    def call(ticks):
        seconds, rest = divmod(ticks, per_second)
        nanos = rest * (10**9 // per_second)
        return make(datetime.timedelta(seconds=seconds, microseconds=nanos // 1000), nanos % 1000)

    return _or_no_text(call)


def _zone(name):
    """The time zone of a name of the zone database, or of an offset such as +01:00."""
    if name[0] in "+-":
        minutes = int(name[1:3]) * 60 + int(name[-2:])
        return datetime.timezone(datetime.timedelta(minutes=-minutes if name[0] == "-" else minutes))
    import zoneinfo

    return zoneinfo.ZoneInfo(name)


def _moment(zone):
    begin = _Moment(1970, 1, 1, tzinfo=None if zone is None else datetime.timezone.utc)

    def make(since, nanos):
        moment = begin + since
        if zone is not None:
            moment = moment.astimezone(zone)
        moment.nanosecond = nanos
        return moment

    return make


def _duration(length, nanos):
    duration = _Duration(length.days, length.seconds, length.microseconds)
    duration.nanoseconds = nanos
    return duration


def _time_of_day(since, nanos):
    time = (datetime.datetime.min + since).time()
    return f"{time.isoformat('microseconds')}{nanos:03}" if nanos else time


def _date(days_per_unit):
    begin = datetime.date(1970, 1, 1)
    return _or_no_text(lambda units: begin + datetime.timedelta(days=units // days_per_unit))


def _decimal(scale):
    def make(raw):
        number = int.from_bytes(raw, "little", signed=True)
        return decimal.Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))

    return make


def _mapped(dtype, make):
    return lambda array, begin, count: list(map(make, _buffer(array, 1, dtype, begin, count).tolist()))


def _text(raw):
    return raw.decode("utf-8", "replace")


def _reader(form):
    """The function (array, begin, count) -> list of values for a type, by Arrow's format string. None for a type
    whose values are no cells, such as lists."""
    if form in _NUMBERS:
        return lambda array, begin, count: _buffer(array, 1, _NUMBERS[form], begin, count).tolist()
    if form in ("u", "z", "U", "Z"):
        offsets, make = "i4" if form.islower() else "i8", _text if form in "uU" else bytes
        return lambda array, begin, count: list(map(make, _bytes_at(array, offsets, begin, count)))
    if form in ("vu", "vz"):
        return lambda array, begin, count: list(map(_text if form == "vu" else bytes, _views(array, begin, count)))
    if form == "n":
        return lambda array, begin, count: [None] * count
    if form == "b":
        return lambda array, begin, count: _bits(array, 1, begin, count).tolist()
    if form.startswith("w:"):
        return _mapped(f"V{form[2:]}", bytes)
    if form.startswith("d:"):
        _, scale, *bits = map(int, form[2:].split(","))
        return _mapped(f"V{bits[0] // 8 if bits else 16}", _decimal(scale))
    if form in ("tdD", "tdm"):
        return _mapped(*(("i4", _date(1)) if form == "tdD" else ("i8", _date(86400 * 10**3))))
    kind, unit, zone = form[:2], form[2:3], form[4:]
    if kind == "ts":
        return _mapped("i8", _of_ticks(_PER_SECOND[unit], _moment(_zone(zone) if zone else None)))
    if kind == "tD":
        return _mapped("i8", _of_ticks(_PER_SECOND[unit], _duration))
    if kind == "tt":
        return _mapped("i4" if unit in "sm" else "i8", _of_ticks(_PER_SECOND[unit], _time_of_day))
    return None


def _values_of_type(schema, name):
    """The function (array, begin, count) -> list of values, None for missing ones, for columns of this type."""
    form = schema.format.decode()
    try:
        read = _reader(form)
    except (KeyError, ValueError):  # an unknown time zone, or a type of a later version of Arrow
        read = None
    if read is None:
        raise _core.InputError(f"column '{name}': expected numbers, texts, dates, times or truth values, or a dictionary "
                               f"of them, found Arrow's type '{form}', which is not known here")
    words = _values_of_type(schema.dictionary.contents, name) if schema.dictionary else None

    def values(array, begin, count):
        found = read(array, begin + array.offset, count)
        if form != "n" and array.null_count != 0 and array.buffers[0]:
            found = [v if is_there else None for v, is_there in zip(found, _bits(array, 0, begin + array.offset, count))]
        if words is None:
            return found
        entries = words(array.dictionary.contents, 0, array.dictionary.contents.length)
        return [None if i is None else entries[i] for i in found]

    return values


class Table:
    """The rows of an object with `__arrow_c_stream__`, which may give them only once."""

    def __init__(self, source):
        try:
            self._capsule = source.__arrow_c_stream__()  # releases the stream when it goes
        except Exception as e:  # duckdb makes the rows now, and its message may quote values of them
            raise _core.Error(f"data: expected a table, found that its Arrow stream failed with {type(e).__name__}; to "
                              "see why, read all of it into memory first") from None
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        self._stream = _Stream.from_address(pointer(self._capsule, b"arrow_array_stream"))
        schema = _Schema()
        self._check(self._stream.get_schema(self._stream, schema))
        try:
            if schema.format != b"+s":
                raise _core.InputError("data: expected a table with columns, found Arrow's type "
                                       f"'{schema.format.decode()}'")
            columns = [schema.children[i].contents for i in range(schema.n_children)]
            self.names = [(column.name or b"").decode("utf-8", "replace") for column in columns]
            self._types = [_values_of_type(column, name) for column, name in zip(columns, self.names)]
        finally:
            schema.release(schema)

    def _check(self, code):
        # The stream's own message may quote values of rows.
        if code != 0:
            raise _core.Error(f"data: expected a table, found that Arrow's stream failed with error {code}; to see why, "
                              "read all of it into memory first")

    def rows(self, at_once):
        """Yields lists of columns, each a list of values, of up to `at_once` rows."""
        while True:
            batch = _Array()
            self._check(self._stream.get_next(self._stream, batch))
            if not batch.release:
                return
            try:
                for begin in range(0, batch.length, at_once):
                    count = min(at_once, batch.length - begin)
                    first = batch.offset + begin
                    columns = [values(batch.children[i].contents, first, count) for i, values in enumerate(self._types)]
                    if batch.null_count != 0 and batch.buffers[0]:  # missing rows of an array of structs
                        there = _bits(batch, 0, first, count)
                        columns = [[v if t else None for v, t in zip(column, there)] for column in columns]
                    yield columns
            finally:
                batch.release(batch)
