"""Descriptions of models, and networks of PyTorch."""

import json
import os
import struct

import numpy as np

from . import _core


class Model(dict):
    """A model's description: name, loss, activation and layers, with the keys of a .toml file."""

    weights = None  #: public weights to start from, arrays by name; None: initialised at random


def _toml(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(v)}" for key, v in value.items()) + " }"
    if isinstance(value, (int, float)):
        return repr(value)
    return json.dumps(str(value))


def write_model(model, folder):
    """Writes a model's description as a .toml file for the program. Returns the file's path."""
    unknown = set(model) - {"name", "loss", "activation", "layers"}
    if unknown or not model.get("layers"):
        raise _core.InputError(
            "model: expected a dict of name, loss, activation and layers, found "
            + (repr(sorted(unknown)[0]) if unknown else "no layers")
        )
    lines = [f"{key} = {_toml(model[key])}" for key in ("name", "loss", "activation") if key in model]
    lines += ["layers = [", *(f"  {_toml(layer)}," for layer in model["layers"]), "]"]
    path = os.path.join(folder, "model.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return path


def write_tensors(tensors, path):
    """Writes arrays of float32 as a safetensors file."""
    header, offset = {}, 0
    for name, values in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(values.shape),
                        "data_offsets": [offset, offset + values.nbytes]}
        offset += values.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for values in tensors.values():
            file.write(np.ascontiguousarray(values, dtype="<f4").tobytes())


_WHY = {
    "BatchNorm1d": "it mixes the examples of a batch: one example's gradient depends on all others, "
                   "and clipping it bounds nothing; GroupNorm normalises each example by itself",
    "Dropout": "training with it has no counterpart; leave it out, since the noise regularises",
    "Softmax": "the loss includes it: leave it out",
    "Sigmoid": "it is tanh up to scale, (tanh(x / 2) + 1) / 2: use Tanh",
    "Embedding": "texts are trained on models such as imdb-lstm",
}
for _same, _as in (("BatchNorm2d", "BatchNorm1d"), ("BatchNorm3d", "BatchNorm1d"),
                   ("SyncBatchNorm", "BatchNorm1d"), ("Dropout2d", "Dropout"),
                   ("LogSoftmax", "Softmax")):
    _WHY[_same] = _WHY[_as]


def _refuse(name, layer, why):
    raise _core.InputError(f"from_torch: layer {name}, {type(layer).__name__}: {why}")


def _square(name, layer, key):
    value = getattr(layer, key)
    if isinstance(value, (tuple, list)):
        if len(set(value)) != 1:
            _refuse(name, layer, f"expected the same {key} in both directions, found {value}")
        value = value[0]
    return int(value)


def _only(name, layer, **expected):
    for key, value in expected.items():
        found = getattr(layer, key, value)
        if isinstance(found, (tuple, list)) and len(set(found)) == 1:
            found = found[0]
        if found != value:
            _refuse(name, layer, f"expected {key}={value!r}, found {found!r}")


def _padding(name, layer):
    if layer.padding == "valid":
        return 0
    if layer.padding == "same":
        kernel = _square(name, layer, "kernel_size")
        if kernel % 2 == 0:
            _refuse(name, layer, "expected an odd kernel with padding='same', found an even one")
        return (kernel - 1) // 2
    return _square(name, layer, "padding")


def _needs_bias(name, layer):
    if layer.bias is None:
        _refuse(name, layer, "expected bias=True, since layers of cudp have one")


def _conv2d(name, layer):
    _only(name, layer, dilation=1, groups=1, padding_mode="zeros")
    _needs_bias(name, layer)
    return [{"type": "conv2d", "name": name, "out": layer.out_channels,
             "kernel": _square(name, layer, "kernel_size"), "stride": _square(name, layer, "stride"),
             "pad": _padding(name, layer)}]


def _linear(name, layer):
    _needs_bias(name, layer)
    return [{"type": "dense", "name": name, "out": layer.out_features}]


def _pool(kind):
    def translate(name, layer):
        _only(name, layer, padding=0, dilation=1, ceil_mode=False, return_indices=False,
              divisor_override=None)
        return [{"type": kind, "kernel": _square(name, layer, "kernel_size"),
                 "stride": _square(name, layer, "stride")}]

    return translate


def _groupnorm(name, layer):
    _only(name, layer, affine=True)
    return [{"type": "groupnorm", "name": name, "groups": layer.num_groups, "epsilon": layer.eps}]


def _flatten(name, layer):
    _only(name, layer, start_dim=1, end_dim=-1)
    return []  # a dense layer flattens as PyTorch does


_TRANSLATED = {
    "Linear": _linear,
    "Conv2d": _conv2d,
    "MaxPool2d": _pool("maxpool"),
    "AvgPool2d": _pool("avgpool"),
    "GroupNorm": _groupnorm,
    "Flatten": _flatten,
    "Identity": lambda name, layer: [],
    "ReLU": lambda name, layer: [{"type": "relu"}],
    "Tanh": lambda name, layer: [{"type": "tanh"}],
}


def _layers(net, prefix):
    for name, layer in net.named_children():
        kind = type(layer).__name__
        # A class of the user's own may compute something else under the same name.
        known = type(layer).__module__.startswith("torch.nn.")
        if kind == "Sequential" and known:
            yield from _layers(layer, f"{prefix}{name}.")
        elif kind in _TRANSLATED and known:
            yield from _TRANSLATED[kind](prefix + name, layer)
        else:
            _refuse(prefix + name, layer, _WHY.get(kind, "it has no counterpart; known are "
                                                         + ", ".join(sorted(_TRANSLATED))))


def from_torch(net, *, public_weights=False):
    """The description of an nn.Sequential, for the setting `model` of train and the estimators.

    Weights are initialised at random. public_weights=True starts from those of `net`, which must
    have been trained on public data alone, or drawn at random. A single output of the last layer
    is the logit of two classes, or the number of a regression. Run.state_dict() has the names of
    net.state_dict().
    """
    if type(net).__name__ != "Sequential" or not hasattr(net, "named_children"):
        raise _core.InputError(
            f"from_torch: expected an nn.Sequential, found {type(net).__name__}, whose computation "
            "is not a list of layers"
        )
    layers = list(_layers(net, ""))
    if not layers or layers[-1]["type"] != "dense":
        raise _core.InputError(
            "from_torch: expected a last layer Linear, which gives the logits, found "
            + (layers[-1]["type"] if layers else "none")
        )
    loss = "cross_entropy" if layers[-1]["out"] == 1 else "softmax"
    model = Model(name="torch", loss=loss, layers=layers)
    if public_weights:
        model.weights = {name: np.asarray(value.detach().cpu().numpy(), dtype=np.float32)
                         for name, value in net.state_dict().items()}
    return model


def to_torch(description, tensors, path):
    """The nn.Module of a released model. description: of _core.Model; tensors: by name, in the
    order of the layers; path: the model's, for messages."""
    import torch
    from torch import nn

    class TemperedSigmoid(nn.Module):
        def __init__(self, scale, temperature, offset):
            super().__init__()
            self.scale, self.temperature, self.offset = scale, temperature, offset

        def forward(self, x):
            return self.scale * torch.sigmoid(self.temperature * x) - self.offset

    class Network(nn.Module):
        """The network, on the rows that cudp trains on; bytes are pixels."""

        def __init__(self, layers):
            super().__init__()
            self._steps = []
            for name, layer in layers:
                self._steps.append(layer)
                parent = self
                *outer, last = name.split(".")
                for part in outer:
                    if part not in parent._modules:
                        parent.add_module(part, nn.Module())
                    parent = parent._modules[part]
                parent.add_module(last, layer)

        def forward(self, x):
            if x.dtype == torch.uint8:
                x = x.to(torch.float32) * scale + shift
            x = x.reshape(len(x), *shape)
            for step in self._steps:
                x = step(x)
            return x

    if description.get("table"):
        raise _core.InputError(f"{path}: expected a model of arrays for to_torch, found one of a table, "
                               "whose cells cudp encodes")
    pixels = description.get("pixels") or {"scale": 1.0 / 255.0, "shift": 0.0}
    scale, shift = pixels["scale"], pixels["shift"]
    shape = description["input"]
    if shape[1:] == [1, 1]:
        shape = shape[:1]
    names = iter(tensors)
    layers, flat, count = [], len(shape) == 1, 0
    for layer in description["layers"]:
        kind = layer["type"]
        held = [next(names) for _ in layer.get("tensors", ())]
        name = held[0].rsplit(".", 1)[0] if held else None
        values = [torch.from_numpy(np.array(tensors[key])) for key in held]
        if kind == "dense":
            if not flat:
                layers.append((f"flatten_{count}", nn.Flatten()))
                flat = True
            made = nn.Linear(values[0].shape[1], values[0].shape[0])
        elif kind == "conv2d":
            out, into, kernel, _ = values[0].shape
            made = nn.Conv2d(into, out, kernel, stride=layer["stride"], padding=layer["pad"])
        elif kind in ("maxpool", "avgpool"):
            pool = nn.MaxPool2d if kind == "maxpool" else nn.AvgPool2d
            made = pool(layer["kernel"], stride=layer["stride"])
        elif kind == "groupnorm":
            made = nn.GroupNorm(layer["groups"], len(values[0]), eps=layer["epsilon"])
        elif kind in ("relu", "tanh"):
            made = nn.ReLU() if kind == "relu" else nn.Tanh()
        elif kind == "tempered_sigmoid":
            made = TemperedSigmoid(layer["scale"], layer["temperature"], layer["offset"])
        else:
            raise _core.InputError(f"{path}: expected a model without transforms of its features for "
                                   f"to_torch, found {kind}")
        if values:
            with torch.no_grad():
                made.weight.copy_(values[0].reshape(made.weight.shape))
                made.bias.copy_(values[1])
        layers.append((name or f"{kind}_{count}", made))
        count += 1
    return Network(layers).eval()
