"""The predictions of one model that cudp trained, with Python 3.8 and numpy alone.

    python scorer.py new.csv > predictions.csv      # as `cudp predict --dataset new.csv --out -`
    python scorer.py images.idx --out predictions.csv --threshold 0.1

    import scorer
    scorer.score([{"age": "71", "ward": "north"}])  # [rows, classes]: probabilities

score() takes what the model was trained on: rows of a table (mappings of column names to texts or numbers),
images (bytes, [n, height, width] or [n, channels, height, width]) or a matrix of features ([n, features]). It
returns a probability for each class; the margin of a model with hinge loss; or the number that a regression
predicts. encode(), logits() and answers() are its three steps. What `cudp predict` refuses, this refuses too.
"""
import argparse
import base64
import bisect
import datetime
import gzip
import json
import math
import os
import re
import sys
import tempfile

import numpy as np

#MODEL#

CLASSES = MODEL["classes"]  # empty for a regression
FEATURES = MODEL["features"]  # of a table: the names of encode()'s columns
_TABLE = MODEL.get("table")
_LONGEST_LINE = 16 << 20
_NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


class BadInput(ValueError):
    """A file or a row that the model does not take; the text says what and where."""


def _tensors():
    values = np.frombuffer(base64.b64decode(WEIGHTS), "<f4").astype(np.float64)
    tensors, begin = [], 0
    for shape in MODEL["tensors"]:
        size = int(np.prod(shape))
        tensors.append(values[begin : begin + size].reshape(shape))
        begin += size
    return tensors


_TENSORS = _tensors()

# ---- The cells of a table


def _shown(cell):
    text = cell.decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= 40 else text[:40] + "...")


def _number_of(cell):
    """The finite decimal number that is the whole cell, or None."""
    if _TABLE["decimal"] != ".":
        if len(cell) > 64 or b"." in cell:
            return None
        cell = cell.replace(_TABLE["decimal"].encode(), b".")
    if _NUMBER.fullmatch(cell) is None:
        return None
    value = float(cell)
    if not math.isfinite(value) or (value == 0.0 and re.search(rb"[1-9]", re.split(rb"[eE]", cell)[0])):
        return None  # beyond what a double holds
    return value


def _days_of(cell, form):
    """Days from 1970-01-01 to the date of this form that is the whole cell, or None."""
    parts = {"Y": 1, "m": 1, "d": 1, "H": 0, "M": 0, "S": 0}
    form, at, i = form.encode(), 0, 0
    while i < len(form):
        part = chr(form[i + 1]) if form[i : i + 1] == b"%" and i + 1 < len(form) else ""
        if part in parts and part:
            longest = 4 if part == "Y" else 2
            digits = re.match(rb"[0-9]{0,%d}" % longest, cell[at:]).group()
            if len(digits) < (4 if part == "Y" else 1):
                return None
            parts[part] = int(digits)
            at, i = at + len(digits), i + 2
            continue
        literal = form[i + 1 : i + 2] if part else form[i : i + 1]
        if cell[at : at + 1] != literal:
            return None
        at, i = at + 1, i + (2 if part else 1)
    if at != len(cell) or parts["H"] > 23 or parts["M"] > 59 or parts["S"] > 59:
        return None
    try:
        day = datetime.date(parts["Y"], parts["m"], parts["d"]).toordinal() - 719163
    except ValueError:
        return None
    return day + ((parts["H"] * 60 + parts["M"]) * 60 + parts["S"]) / 86400.0


def _prepare():
    """Where the features of each column begin, and its categories by their bytes."""
    first = 0
    for column in _TABLE["columns"]:
        column["first"] = first
        if column["kind"] == "categorical":
            column["index"] = {v.encode(): i for i, v in enumerate(column["values"])}
            first += len(column["values"]) + (1 if column["missing_has_column"] else 0)
        elif column["kind"] in ("numeric", "date"):
            first += 1 + (len(column["edges"]) + 1 if column["edges"] else 0)
    return first, [c for c in _TABLE["columns"] if c["kind"] not in ("label", "target", "ignore", "id")]


_FEATURES, _INPUTS = _prepare() if _TABLE else (0, [])
_MISSING = {text.encode() for text in _TABLE["missing"]} if _TABLE else set()


def _cell_of(value):
    """The bytes of a cell that is given as a text, bytes, a number or None."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return b""
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    return str(value).encode("utf-8", "surrogateescape")


def _put_category(column, value, broken, lenient, row):
    cell = _cell_of(value)
    found = None if broken else column["index"].get(cell)
    if found is not None:
        row[column["first"] + found] = 1.0
        return
    missing = cell in _MISSING
    if column["unknown_is_zeros"] and not broken and not missing:
        return
    if not (broken or lenient or missing):
        raise BadInput(
            "column %r: expected one of %d values, found %s" % (column["name"], len(column["values"]), _shown(cell))
        )
    if column["missing_has_column"]:
        row[column["first"] + len(column["values"])] = 1.0


def _put_number(column, value, broken, lenient, row):
    number = None
    if isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and column["kind"] == "numeric":
        number = float(value) if math.isfinite(value) else None
    cell = _cell_of(value)
    if number is None and not broken and cell not in _MISSING:
        number = _number_of(cell) if column["kind"] == "numeric" else _days_of(cell, column["format"])
    if number is None and column["fill"] is not None and (broken or lenient or cell in _MISSING):
        number = column["fill"]
    if number is None:
        what = "a finite number" if column["kind"] == "numeric" else "a date of the form " + column["format"]
        raise BadInput("column %r: expected %s, found %s" % (column["name"], what, _shown(cell)))
    low, high = column["min"], column["max"]
    x = min(max(number, low), high)
    row[column["first"]] = math.log1p(x - low) / math.log1p(high - low) if column["log"] else (x - low) / (high - low)
    if column["edges"]:
        row[column["first"] + 1 + bisect.bisect_right(column["edges"], number)] = 1.0


def _encode_row(cells, broken, lenient):
    row = np.zeros(_FEATURES, np.float32)
    for column, cell in zip(_INPUTS, cells):
        put = _put_category if column["kind"] == "categorical" else _put_number
        put(column, cell, broken, lenient, row)
    return row


def encode(rows, malformed="refuse"):
    """Rows of a table as the model's inputs, [n, features] float32, in the order of FEATURES.

    rows: mappings from the names of columns to cells: texts, numbers, or None for a missing one. Columns that the
    model does not read may be absent. malformed="missing" takes a cell that cannot be read for a missing one.
    """
    encoded = []
    for number, row in enumerate(rows):
        for column in _INPUTS:
            if column["name"] not in row:
                raise BadInput("row %d: expected a column %r, found none" % (number, column["name"]))
        try:
            encoded.append(_encode_row([row[c["name"]] for c in _INPUTS], False, malformed == "missing"))
        except BadInput as fault:
            raise BadInput("row %d, %s" % (number, fault)) from None
    return np.array(encoded, np.float32).reshape(len(encoded), _FEATURES)


# ---- The rows of a table


def _follow(text, state, delimiter):
    """The state behind `text`: 0 at a cell's start, 1 in a plain cell, 2 in a quoted one, 3 behind a quote in one."""
    for c in text:
        if state == 0:
            state = 2 if c == 34 else 0 if c in (32, delimiter) else 1
        elif state == 1:
            state = 0 if c == delimiter else 1
        elif state == 2:
            state = 3 if c == 34 else 2
        else:
            state = 2 if c == 34 else 0 if c == delimiter else 1
    return state


def _records(file):
    """The number and the bytes of each row: a line, and those after it while a quoted cell has not ended."""
    quotes, skipped = _TABLE["quotes"], _TABLE["skip_prefix"].encode()
    delimiter = _TABLE["delimiter"].encode()
    d = re.escape(delimiter)
    cell = b'(?: *"[^"]*(?:""[^"]*)*" *|[^"' + d + b"]*)"
    closed = re.compile(cell + b"(?:" + d + cell + b")*") if delimiter != b" " else None
    number = 0
    lines = iter(file)
    for raw in lines:
        number += 1
        if number == 1 and raw.startswith(b"\xef\xbb\xbf"):
            raw = raw[3:]
        first = number
        row = raw[:-1] if raw.endswith(b"\n") else raw
        row = row[:-1] if row.endswith(b"\r") else row
        if (skipped and row.startswith(skipped)) or not row.strip(b" \t"):
            continue
        if quotes and b'"' in row and not (closed and closed.fullmatch(row)):
            state = _follow(row, 0, delimiter[0])
            while state == 2 and len(raw) <= _LONGEST_LINE:
                more = next(lines, None)
                if more is None:
                    break
                number += 1
                raw += more
                longer = raw[:-1] if raw.endswith(b"\n") else raw
                longer = longer[:-1] if longer.endswith(b"\r") else longer
                state = _follow(longer[len(row) :], state, delimiter[0])
                row = longer
        yield first, row


def _split(row):
    """The cells of a row, and what is wrong with it, or None."""
    delimiter, quotes = _TABLE["delimiter"].encode(), _TABLE["quotes"]
    if len(row) > _LONGEST_LINE:
        return [], "a line of at most 16 MiB, found a longer one"
    if delimiter != b" " and not (quotes and b'"' in row):
        return [c.strip(b" \t") for c in row.split(delimiter)], None
    cells, rest = [], row.strip(b" \t") if delimiter == b" " else row
    while True:
        rest = rest.lstrip(b" ")
        if quotes and rest.startswith(b'"'):
            text, at = b"", 1
            while True:
                end = rest.find(b'"', at)
                if end < 0:
                    return [], "a closing double quote, found the end of the file"
                text += rest[at:end]
                at = end + 1
                if rest[at : at + 1] != b'"':
                    break
                text += b'"'
                at += 1
            cells.append(text)
            rest = rest[at:] if delimiter == b" " else rest[at:].lstrip(b" ")
            if rest and not rest.startswith(delimiter):
                return [], "a delimiter after a closing double quote, found " + _shown(rest)
        else:
            end = rest.find(delimiter)
            end = len(rest) if end < 0 else end
            cells.append(rest[:end].strip(b" \t"))
            rest = rest[end:]
        if not rest:
            return cells, None
        rest = rest[1:]


def _positions(header, line, name):
    """Where a row has each input's cell and the id's, and how many cells there are."""
    wanted = [c["name"] for c in _INPUTS]
    ids = [c["name"] for c in _TABLE["columns"] if c["kind"] == "id"]
    for column in wanted:
        if header.count(column.encode()) != 1:
            found = "none" if column.encode() not in header else "it twice"
            raise BadInput("%s, line %d: expected a column %r, found %s" % (name, line, column, found))
    id_at = header.index(ids[0].encode()) if ids and ids[0].encode() in header else None
    return [header.index(column.encode()) for column in wanted], id_at, len(header)


def read_table(file, name="the table", malformed="refuse"):
    """Each row of a binary file as (its id, or None, its inputs [features]).

    Columns may come in any order, and those that the model does not read may be absent or any.
    """
    lenient = malformed == "missing"
    places = None
    records = _records(file)
    if _TABLE["header"]:
        for line, row in records:
            header, fault = _split(row)
            if fault:
                raise BadInput("%s, line %d: expected %s" % (name, line, fault))
            places = _positions(header, line, name)
            break
    for line, row in records:
        cells, fault = _split(row)
        if places is None:  # no header: the columns in order, the label's perhaps absent
            names = [c["name"].encode() for c in _TABLE["columns"]]
            if len(cells) == len(names) - 1:
                names = [c["name"].encode() for c in _TABLE["columns"] if c["kind"] not in ("label", "target")]
            places = _positions(names, line, name)
        inputs, id_at, width = places
        if fault is None and len(cells) != width:
            fault = "%d cells, found %d" % (width, len(cells))
        if fault and not lenient:
            raise BadInput("%s, line %d: expected %s" % (name, line, fault))
        broken = fault is not None
        chosen = [b""] * len(inputs) if broken else [cells[i] for i in inputs]
        try:
            encoded = _encode_row(chosen, broken, lenient)
        except BadInput as error:
            raise BadInput("%s, line %d, %s" % (name, line, error)) from None
        yield (None if id_at is None else b"" if broken else cells[id_at]), encoded


# ---- The model


def _windows(x, kernel, stride):
    """[n, c, height, width, kernel, kernel]"""
    view = np.lib.stride_tricks.sliding_window_view(x, (kernel, kernel), axis=(2, 3))
    return view[:, :, ::stride, ::stride]


def _apply(layer, x):
    kind = layer["type"]
    tensors = [_TENSORS[i] for i in layer.get("tensors", [])]
    if kind == "dense":
        return (np.dot(x.reshape(len(x), -1), tensors[0].T) + tensors[1]).reshape(len(x), -1, 1, 1)
    if kind == "projection":
        return np.dot(x.reshape(len(x), -1), tensors[0].T).reshape(len(x), -1, 1, 1)
    if kind == "conv2d":
        pad = layer["pad"]
        x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
        weight, bias = tensors
        y = np.tensordot(_windows(x, weight.shape[2], layer["stride"]), weight, ((1, 4, 5), (1, 2, 3)))
        return np.moveaxis(y + bias, 3, 1)
    if kind == "maxpool":
        return _windows(x, layer["kernel"], layer["stride"]).max((4, 5))
    if kind == "avgpool":
        return _windows(x, layer["kernel"], layer["stride"]).mean((4, 5))
    if kind == "groupnorm":
        g = x.reshape(len(x), layer["groups"], -1)
        g = (g - g.mean(2, keepdims=True)) / np.sqrt(g.var(2, keepdims=True) + layer["epsilon"])
        return g.reshape(x.shape) * tensors[0].reshape(1, -1, 1, 1) + tensors[1].reshape(1, -1, 1, 1)
    if kind == "relu":
        return np.maximum(x, 0.0)
    if kind == "tanh":
        return np.tanh(x)
    if kind == "tempered_sigmoid":
        half = 0.5 * layer["scale"]
        return half * np.tanh(0.5 * layer["temperature"] * x) + half - layer["offset"]
    rows = x.reshape(len(x), -1)
    if kind == "unit":  # a row of zeros stays as it is
        norm = np.sqrt((rows * rows).sum(1, keepdims=True))
        rows = rows / np.where(norm > 0.0, norm, 1.0)
    elif kind == "standard":
        rows = (rows - rows.mean(1, keepdims=True)) / np.sqrt(rows.var(1, keepdims=True) + 1e-5)
    else:
        raise BadInput("a layer %r that this file does not know" % kind)
    rows = rows.astype(np.float32).astype(np.float64)
    return np.where(np.isfinite(rows).all(1, keepdims=True), rows, 0.0).reshape(x.shape)


def _inputs_of(x):
    """What the first layer takes, [n, channels, height, width] float64."""
    x = np.asarray(x)
    channels, height, width = MODEL["input"]
    pixels = MODEL.get("pixels")
    if pixels and x.dtype != np.uint8:
        raise BadInput("expected pixels of type uint8, found %s" % x.dtype)
    if x.ndim < 2 or int(np.prod(x.shape[1:])) != channels * height * width or (
        x.ndim == 4 and height * width > 1 and x.shape[1:] != (channels, height, width)
    ):
        wanted = "%d x %d x %d" % (channels, height, width)
        raise BadInput("expected examples of %s numbers, found the shape %r" % (wanted, x.shape))
    if not pixels:
        x = x.astype(np.float32)
        if not np.isfinite(x).all():
            row = int(np.argwhere(~np.isfinite(x.reshape(len(x), -1)).all(1))[0, 0])
            raise BadInput("row %d: expected finite numbers, found another (counted from 0)" % row)
    x = x.astype(np.float64).reshape(len(x), channels, height, width)
    if pixels:
        x = (pixels["scale"] * x + pixels["shift"]).astype(np.float32).astype(np.float64)
    return x


def logits(x):
    """The outputs of the last layer for encoded rows, images or a matrix, [n, outputs] float32."""
    x = np.asarray(x)
    big = any(layer["type"] in ("conv2d", "maxpool", "avgpool") for layer in MODEL["layers"])
    size = 32 if big else max(1, (1 << 21) // int(np.prod(MODEL["input"])))
    parts = []
    for begin in range(0, len(x), size):
        y = _inputs_of(x[begin : begin + size])
        for layer in MODEL["layers"]:
            y = _apply(layer, y)
        parts.append(y.reshape(len(y), -1).astype(np.float32))
    return np.concatenate(parts) if parts else np.zeros((0, MODEL["outputs"]), np.float32)


def answers(z):
    """Probabilities [n, classes] of logits; margins [n] of a hinge loss; numbers [n] of a regression."""
    z = np.asarray(z, np.float64)
    if not np.isfinite(z).all():
        raise BadInput("row %d: the model gives no finite number" % int(np.argwhere(~np.isfinite(z))[0, 0]))
    if MODEL["loss"] == "target":
        low, high = MODEL["target"]
        return low + 0.5 * (np.clip(z[:, 0], -1.0, 1.0) + 1.0) * (high - low)
    if MODEL["loss"] == "hinge":
        return z[:, 0].astype(np.float32)
    if MODEL["loss"] == "logistic":
        e = np.exp(-np.abs(z))
        large, small = 1.0 / (1.0 + e), e / (1.0 + e)
        p = np.concatenate([np.where(z > 0.0, small, large), np.where(z > 0.0, large, small)], 1)
    else:
        e = np.exp(z - z.max(1, keepdims=True))
        p = e / e.sum(1, keepdims=True)
    return p.astype(np.float32)


def score(rows, malformed="refuse"):
    """The model's answers to rows of a table, images or a matrix; see answers()."""
    return answers(logits(encode(rows, malformed) if _TABLE else rows))


# ---- The program


def _cell(text):
    if text and (re.search(rb'[,"\r\n]', text) or text[:1] in b" \t" or text[-1:] in b" \t"):
        return b'"' + text.replace(b'"', b'""') + b'"'
    return text


def _blocks(path, malformed):
    """(ids or None, inputs [n, ...]) of some rows at a time, in order."""
    opened = sys.stdin.buffer if path == "-" else (gzip.open if path.endswith(".gz") else open)(path, "rb")
    with opened as file:
        name = "standard input" if path == "-" else path
        if _TABLE:
            ids, rows = [], []
            for row_id, row in read_table(file, name, malformed):
                ids.append(row_id)
                rows.append(row)
                if len(rows) == 1024:
                    yield (None if ids[0] is None else ids), np.array(rows)
                    ids, rows = [], []
            if rows:
                yield (None if ids[0] is None else ids), np.array(rows)
            return
        bare = path[:-3] if path.endswith(".gz") else path
        if bare.endswith((".npy", ".npz")):
            x = np.load(file, allow_pickle=False)
            x = x["x" if "x" in x else "X"] if bare.endswith(".npz") else x
        else:
            raw = file.read()
            if raw[:4] == b"\0\0\x08\x03":  # IDX images
                shape = [int.from_bytes(raw[i : i + 4], "big") for i in (4, 8, 12)]
                size, raw = int(np.prod(shape)), raw[16:]
            elif int(np.prod(MODEL["input"])) == 3072 and raw and len(raw) % 3073 == 0:  # records of CIFAR
                shape = [len(raw) // 3073, 3, 32, 32]
                size, raw = len(raw) // 3073 * 3072, np.frombuffer(raw, np.uint8).reshape(-1, 3073)[:, 1:].tobytes()
            else:
                raise BadInput("%s: expected .npy, .npz, IDX images or records of CIFAR, found another file" % name)
            if len(raw) != size:
                raise BadInput("%s: expected %d bytes of pixels, found %d" % (name, size, len(raw)))
            x = np.frombuffer(raw, np.uint8).reshape(shape)
        if malformed == "missing" and x.dtype.kind == "f":
            x = np.where(np.isfinite(x).all(tuple(range(1, x.ndim)), keepdims=True), x, 0.0)
        for begin in range(0, len(x), 1024):
            yield None, x[begin : begin + 1024]


def _lines(path, threshold, malformed):
    """The lines of `cudp predict`, as bytes."""
    names = [_cell(c.encode()) for c in CLASSES]
    loss, first = MODEL["loss"], 0
    for ids, x in _blocks(path, malformed):
        z = logits(x)
        found = answers(z)
        if first == 0:
            header = [b"row" if ids is None else b"id", b"prediction"]
            if loss == "hinge":
                header.append(b"margin")
            elif loss != "target":
                header += [_cell(b"p_" + c.encode()) for c in CLASSES]
            yield b",".join(header)
        for i in range(len(found)):
            cells = [b"%d" % (first + i + 1) if ids is None else _cell(ids[i])]
            if loss == "target":
                cells.append(repr(float(found[i])).encode())
            elif loss == "hinge":
                cells += [names[int(z[i, 0] > 0.0)], str(found[i]).encode()]
            else:
                best = int(z[i, 0] > 0.0) if loss == "logistic" else int(np.argmax(z[i]))
                if threshold is not None:
                    best = int(found[i, 1] >= np.float32(threshold))
                cells += [names[best]] + [str(p).encode() for p in found[i]]
            yield b",".join(cells)
        first += len(found)
    if first == 0:
        raise BadInput("%s: expected at least one row, found none" % path)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Predictions of the model %s, as CSV." % MODEL["name"])
    what = ".npy, .npz, IDX images or records of CIFAR" if not _TABLE else "a table, written as the training's was"
    parser.add_argument("data", help=what + "; - is the standard input")
    parser.add_argument("--out", default="-", help="the CSV of predictions, readable by its owner alone [-]")
    parser.add_argument("--threshold", type=float, help="of two classes: predict the second from this probability on")
    parser.add_argument("--malformed", choices=["refuse", "missing"], default="refuse", help="cells that cannot be read")
    options = parser.parse_args(arguments)
    for reason in MODEL["not_for_release"]:
        print("NOT FOR RELEASE: " + reason, file=sys.stderr)
    try:
        if options.threshold is not None and (len(CLASSES) != 2 or MODEL["loss"] == "hinge"):
            raise BadInput("--threshold: expected with two classes that have probabilities, found another model")
        with tempfile.TemporaryFile() as held:  # a wrong row leaves nothing written
            for line in _lines(options.data, options.threshold, options.malformed):
                held.write(line + b"\n")
            held.seek(0)
            if options.out == "-":
                for part in iter(lambda: held.read(1 << 16), b""):
                    sys.stdout.buffer.write(part)
                return 0
            with open(os.open(options.out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
                for part in iter(lambda: held.read(1 << 16), b""):
                    out.write(part)
    except (BadInput, OSError) as fault:
        print("scorer: %s" % fault, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
