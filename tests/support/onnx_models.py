"""Runs ONNX files and prints how far their outputs are from those that are expected.

    python onnx_models.py numpy FOLDER...         # with the reader and the operators below
    python onnx_models.py onnxruntime FOLDER...

A folder has model.onnx, NAME.in.npy for each input and NAME.out.npy for each output. A line is written for each
output: the folder's name, the output's and the largest |difference| / max(1, |expected|). What the file must not
have (a field that ONNX does not know, an operator that the list below lacks, an input without a use) is an error.
"""
import os
import struct
import sys

import numpy as np

TYPES = {1: np.float32, 2: np.uint8, 6: np.int32, 7: np.int64, 11: np.float64}


def varint(data, at):
    value, shift = 0, 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return (value - (1 << 64) if value >> 63 else value), at


def fields(data, known):
    """The fields of a message by name; known: number -> (name, kind)."""
    found = {name: [] for name, _ in known.values()}
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        name, kind = known[key >> 3]
        if kind == "int":
            assert key & 7 == 0, name
            value, at = varint(data, at)
        elif kind == "float":
            assert key & 7 == 5, name
            value, at = struct.unpack("<f", data[at : at + 4])[0], at + 4
        else:
            assert key & 7 == 2, name
            size, at = varint(data, at)
            assert at + size <= len(data), name
            value, at = data[at : at + size], at + size
            value = value.decode() if kind == "text" else value
        found[name].append(value)
    return found


def one(values):
    assert len(values) == 1, values
    return values[0]


def read_tensor(data):
    t = fields(data, {1: ("dims", "int"), 2: ("type", "int"), 8: ("name", "text"), 9: ("raw", "bytes")})
    values = np.frombuffer(one(t["raw"]), np.dtype(TYPES[one(t["type"])]).newbyteorder("<"))
    return one(t["name"]), values.reshape(t["dims"])


def read_value(data):
    info = fields(data, {1: ("name", "text"), 2: ("type", "bytes")})
    tensor = one(fields(one(info["type"]), {1: ("tensor", "bytes")})["tensor"])
    tensor = fields(tensor, {1: ("type", "int"), 2: ("shape", "bytes")})
    sides = fields(one(tensor["shape"]), {1: ("dim", "bytes")})["dim"]
    sides = [fields(s, {1: ("value", "int"), 2: ("name", "text")}) for s in sides]
    return one(info["name"]), TYPES[one(tensor["type"])], [one(s["value"] + s["name"]) for s in sides]


def read_node(data):
    known = {1: ("inputs", "text"), 2: ("outputs", "text"), 3: ("name", "text"), 4: ("type", "text")}
    n = fields(data, {**known, 5: ("attributes", "bytes")})
    attributes = {}
    for attribute in n["attributes"]:
        known = {1: ("name", "text"), 2: ("f", "float"), 3: ("i", "int"), 4: ("s", "text"), 8: ("ints", "int")}
        a = fields(attribute, {**known, 20: ("type", "int")})
        value = {1: a["f"], 2: a["i"], 3: a["s"], 7: [a["ints"]]}[one(a["type"])]
        attributes[one(a["name"])] = one(value)
    return one(n["type"]), n["inputs"], n["outputs"], attributes


def read_model(data):
    m = fields(
        data,
        {
            1: ("ir", "int"),
            2: ("producer", "text"),
            3: ("version", "text"),
            6: ("doc", "text"),
            7: ("graph", "bytes"),
            8: ("opset", "bytes"),
            14: ("metadata", "bytes"),
        },
    )
    assert one(m["ir"]) == 8 and one(m["producer"]) == "cudp" and one(m["doc"])
    opset = fields(one(m["opset"]), {1: ("domain", "text"), 2: ("version", "int")})
    assert one(opset["domain"]) == "" and one(opset["version"]) == 17
    for entry in m["metadata"]:
        entry = fields(entry, {1: ("key", "text"), 2: ("value", "text")})
        assert one(entry["key"]) and one(entry["value"])
    known = {1: ("nodes", "bytes"), 2: ("name", "text"), 5: ("constants", "bytes"), 11: ("inputs", "bytes")}
    g = fields(one(m["graph"]), {**known, 12: ("outputs", "bytes")})
    assert one(g["name"])
    return g


# ---- The operators, of opset 17


def windows(x, kernel, stride):
    view = np.lib.stride_tricks.sliding_window_view(x, tuple(kernel), axis=(2, 3))
    return view[:, :, :: stride[0], :: stride[1]]


def conv(a, x, w, b):
    top, left, bottom, right = a["pads"]
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    assert list(w.shape[2:]) == a["kernel_shape"]
    y = np.tensordot(windows(x, a["kernel_shape"], a["strides"]), w, ((1, 4, 5), (1, 2, 3)))
    return np.moveaxis(y + b, 3, 1)


def gemm(a, x, w, b=0.0):
    return np.dot(x, w.T if a["transB"] else w) + b


def instance_norm(a, x, scale, bias):
    axes = tuple(range(2, x.ndim))
    y = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + a["epsilon"])
    side = [1, -1] + [1] * len(axes)
    return y * scale.reshape(side) + bias.reshape(side)


def reshape(a, x, shape):
    return x.reshape([x.shape[i] if s == 0 else s for i, s in enumerate(shape)])


def sigmoid(x):
    return 0.5 * np.tanh(0.5 * x) + 0.5


def softmax(a, x):
    e = np.exp(x - x.max(a["axis"], keepdims=True))
    return e / e.sum(a["axis"], keepdims=True)


def recurrent(step):
    """Y [words, directions, N, hidden] and the last states [directions, N, hidden]; zeros behind a text's end."""

    def apply(a, x, w, r, b, lengths):
        words, n, _ = x.shape
        hidden = a["hidden_size"]
        directions = {"forward": [1], "bidirectional": [1, -1]}[a["direction"]]
        y, last = np.zeros((words, len(directions), n, hidden)), np.zeros((len(directions), n, hidden))
        for d, way in enumerate(directions):
            for i in range(n):
                state = (np.zeros(hidden), np.zeros(hidden))
                for t in range(lengths[i])[::way]:
                    state = step(a, w[d] @ x[t, i], r[d], b[d], *state)
                    y[t, d, i] = state[0]
                last[d, i] = state[0]
        return y, last

    return apply


def lstm(a, wx, r, b, h, c):
    half = len(b) // 2
    i, o, f, g = np.split(wx + r @ h + b[:half] + b[half:], 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru(a, wx, r, b, h, _):
    assert a["linear_before_reset"] == 1
    half = len(b) // 2
    wz, wr, wh = np.split(wx + b[:half], 3)
    rz, rr, rh = np.split(r @ h + b[half:], 3)
    z, reset = sigmoid(wz + rz), sigmoid(wr + rr)
    return (1.0 - z) * np.tanh(wh + reset * rh) + z * h, None


OPERATORS = {
    "Add": lambda a, x, y: x + y,
    "AveragePool": lambda a, x: windows(x, a["kernel_shape"], a["strides"]).mean((4, 5)),
    "Cast": lambda a, x: x.astype(TYPES[a["to"]]),
    "Clip": lambda a, x, low, high: np.clip(x, low, high),
    "Concat": lambda a, *x: np.concatenate(x, a["axis"]),
    "Conv": conv,
    "Div": lambda a, x, y: x / y,
    "Equal": lambda a, x, y: x == y,
    "Flatten": lambda a, x: x.reshape(int(np.prod(x.shape[: a["axis"]])), -1),
    "GRU": recurrent(gru),
    "Gather": lambda a, x, i: np.take(x, i, a["axis"]),
    "Gemm": gemm,
    "Identity": lambda a, x: x,
    "InstanceNormalization": instance_norm,
    "LSTM": recurrent(lstm),
    "Less": lambda a, x, y: x < y,
    "MatMul": lambda a, x, y: np.matmul(x, y),
    "Max": lambda a, x, y: np.maximum(x, y),
    "MaxPool": lambda a, x: windows(x, a["kernel_shape"], a["strides"]).max((4, 5)),
    "Mul": lambda a, x, y: x * y,
    "Neg": lambda a, x: -x,
    "Range": lambda a, begin, end, step: np.arange(begin, end, step),
    "ReduceSum": lambda a, x, axes: x.sum(tuple(axes), keepdims=bool(a["keepdims"])),
    "Relu": lambda a, x: np.maximum(x, 0.0),
    "Reshape": reshape,
    "Shape": lambda a, x: np.array(x.shape, np.int64),
    "Sigmoid": lambda a, x: sigmoid(x),
    "Softmax": softmax,
    "Sqrt": lambda a, x: np.sqrt(x),
    "Sub": lambda a, x, y: x - y,
    "Tanh": lambda a, x: np.tanh(x),
    "Transpose": lambda a, x: np.transpose(x, a["perm"]),
    "Where": lambda a, c, x, y: np.where(c, x, y),
}


def check_shape(name, value, kind, shape, sizes):
    assert value.dtype == kind and value.ndim == len(shape), (name, value.dtype, value.shape, kind, shape)
    for found, side in zip(value.shape, shape):
        wanted = sizes.setdefault(side, found) if isinstance(side, str) else side
        assert found == wanted, (name, value.shape, shape)


def run_with_numpy(data, given):
    graph = read_model(data)
    values = dict(read_tensor(t) for t in graph["constants"])
    inputs, sizes = [read_value(v) for v in graph["inputs"]], {}
    assert {name for name, _, _ in inputs} == set(given)
    for name, kind, shape in inputs:
        check_shape(name, given[name], kind, shape, sizes)
        values[name] = given[name]
    used = set()
    for kind, names, outputs, attributes in map(read_node, graph["nodes"]):
        used.update(names)
        x = [values[name] for name in names]
        floats = [v.dtype for v in x if v.dtype.kind == "f"]
        assert len(set(floats)) <= 1, (kind, floats)  # ONNX has no implicit conversions
        y = OPERATORS[kind](attributes, *[v.astype(np.float64) if v.dtype.kind == "f" else v for v in x])
        y = y if isinstance(y, tuple) else (y,)
        for name, value in zip(outputs, y):
            if not name:
                continue
            assert name not in values, name
            keeps = kind == "Cast" or value.dtype.kind != "f"
            values[name] = value if keeps else value.astype(floats[-1])
    outputs = [read_value(v) for v in graph["outputs"]]
    unused = set(values) - used - {name for name, _, _ in outputs}
    assert not unused, unused
    for name, kind, shape in outputs:
        check_shape(name, values[name], kind, shape, sizes)
    return {name: values[name] for name, _, _ in outputs}


def run_with_onnxruntime(data, given):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, given)))


def main(program, folders):
    run = {"numpy": run_with_numpy, "onnxruntime": run_with_onnxruntime}[program]
    for folder in folders:
        with open(os.path.join(folder, "model.onnx"), "rb") as file:
            data = file.read()
        load = lambda end: {
            f[: -len(end)]: np.load(os.path.join(folder, f)) for f in os.listdir(folder) if f.endswith(end)
        }
        expected = load(".out.npy")
        found = run(data, load(".in.npy"))
        for name in sorted(expected):
            assert found[name].shape == expected[name].shape, (folder, name, found[name].shape, expected[name].shape)
            e = expected[name].astype(np.float64)
            error = np.abs(found[name].astype(np.float64) - e) / np.maximum(1.0, np.abs(e))
            print(os.path.basename(folder), name, float(error.max()))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
