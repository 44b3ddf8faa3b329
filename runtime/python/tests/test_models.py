import numpy as np
import pytest

import cudp

TRAIN = {"epsilon": 3.0, "delta": 1e-5, "classes": 2, "epochs": 1, "batch": 128, "seed": 1,
         "threads": 1}


def layer(kind, **attributes):
    """A stand-in for a module of PyTorch, which need not be installed."""
    made = type(kind, (), {})()
    type(made).__module__ = "torch.nn.modules." + kind.lower()
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def sequential(*layers, **named):
    children = [*((str(i), part) for i, part in enumerate(layers)), *named.items()]
    return layer("Sequential", named_children=lambda: children)


def linear(out):
    return layer("Linear", out_features=out, bias=True)


def conv(out, kernel, **others):
    return layer("Conv2d", **{"out_channels": out, "kernel_size": (kernel, kernel), "stride": (1, 1),
                              "padding": (0, 0), "dilation": (1, 1), "groups": 1,
                              "padding_mode": "zeros", "bias": True, **others})


POOL = {"kernel_size": 2, "stride": 2, "padding": 0, "dilation": 1, "ceil_mode": False}


def test_from_torch_translates_layers(images):
    net = sequential(
        sequential(conv(4, 3, padding="same"), layer("GroupNorm", num_groups=2, eps=1e-5, affine=True)),
        layer("Tanh"), layer("MaxPool2d", **POOL), conv(6, 3, stride=(2, 2), padding=1),
        layer("ReLU"), layer("Flatten", start_dim=1, end_dim=-1), linear(8), layer("Tanh"), linear(2))
    model = cudp.from_torch(net)
    assert [part["type"] for part in model["layers"]] == [
        "conv2d", "groupnorm", "tanh", "maxpool", "conv2d", "relu", "dense", "tanh", "dense"]
    run = cudp.train(images, model=model, **TRAIN)
    shapes = {name: values.shape for name, values in run.state_dict().items()}
    assert shapes["0.0.weight"] == (4, 1, 3, 3) and shapes["3.weight"] == (6, 4, 3, 3)
    assert shapes["8.weight"] == (2, 8)
    assert cudp.load(run.path).logits(images[0]).shape == (len(images[0]), 2)


def test_a_description_is_a_dict(rows):
    model = {"name": "mine", "loss": "cross_entropy",
             "layers": [{"type": "dense", "name": "a", "out": 3}, {"type": "relu"},
                        {"type": "dense", "name": "b", "out": "outputs"}]}
    assert cudp.train(rows, model=model, **TRAIN).state_dict()["a.weight"].shape == (3, 12)
    with pytest.raises(cudp.InputError, match="found 'layer'"):
        cudp.train(rows, model={"layer": []}, **TRAIN)


@pytest.mark.parametrize("wrong, sentence", [
    (sequential(layer("BatchNorm2d"), linear(2)), "layer 0, BatchNorm2d: it mixes the examples"),
    (sequential(linear(4), layer("Dropout"), linear(2)), "layer 1, Dropout: "),
    (sequential(linear(4), layer("GELU"), linear(2)), "layer 1, GELU: it has no counterpart"),
    (sequential(linear(4), layer("Softmax")), "the loss includes it"),
    (sequential(conv(4, 3, groups=2), linear(2)), "expected groups=1, found 2"),
    (sequential(conv(4, 3, bias=None), linear(2)), "expected bias=True"),
    (sequential(conv(4, 3, stride=(1, 2)), linear(2)), "same stride"),
    (sequential(layer("MaxPool2d", **{**POOL, "padding": 1}), linear(2)), "expected padding=0"),
    (sequential(linear(4), layer("ReLU")), "expected a last layer Linear"),
    (layer("Transformer"), "expected an nn.Sequential, found Transformer"),
])
def test_what_has_no_counterpart_is_named(wrong, sentence):
    with pytest.raises(cudp.InputError, match=sentence):
        cudp.from_torch(wrong)


class Weights:
    """A stand-in for a tensor of PyTorch."""

    def __init__(self, values):
        self.values = values

    def detach(self):
        return self

    cpu = detach

    def numpy(self):
        return self.values


def test_public_weights_are_where_a_training_starts(rows):
    rng = np.random.default_rng(1)
    weights = {name: rng.normal(size=shape).astype(np.float32) for name, shape in
               {"0.weight": (3, 12), "0.bias": (3,), "2.weight": (2, 3), "2.bias": (2,)}.items()}
    net = sequential(linear(3), layer("ReLU"), linear(2))
    net.state_dict = lambda: {name: Weights(values) for name, values in weights.items()}
    model = cudp.from_torch(net, public_weights=True)
    released = cudp.train(rows, model=model, freeze="0.*", **TRAIN)
    found = released.state_dict()
    assert (found["0.weight"] == weights["0.weight"]).all()
    assert (found["0.bias"] == weights["0.bias"]).all()
    assert (found["2.weight"] != weights["2.weight"]).any()
    assert released.certificate["public_inputs"][0]["frozen"] == ["0.weight", "0.bias"]


def test_a_class_of_the_users_own_is_not_trusted():
    mine = linear(2)
    type(mine).__module__ = "mine"
    with pytest.raises(cudp.InputError, match="no counterpart"):
        cudp.from_torch(sequential(mine))


def test_to_torch_computes_the_same_logits(images, rows):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    nn = torch.nn
    net = nn.Sequential(nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.GroupNorm(2, 4)), nn.Tanh(),
                        nn.MaxPool2d(2), nn.Conv2d(4, 6, 3, stride=2), nn.ReLU(), nn.AvgPool2d(2, 1),
                        nn.Flatten(), nn.Linear(24, 8), nn.Tanh(), nn.Linear(8, 2))
    for data, model in ((images, cudp.from_torch(net)), (images, "cnn"), (rows, "mlp"),
                        (rows, "logistic")):
        run = cudp.train(data, model=model, **TRAIN)
        module = run.to_torch()
        logits = module(torch.from_numpy(data[0])).detach().numpy()
        assert np.abs(logits - run.logits(data[0])).max() <= 1e-6 * max(1, np.abs(logits).max())
        assert module.state_dict().keys() == run.state_dict().keys()
    net.load_state_dict({k: torch.from_numpy(v) for k, v in cudp.train(
        images, model=cudp.from_torch(net), **TRAIN).state_dict().items()})
