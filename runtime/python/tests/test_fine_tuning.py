"""Training from public weights, with frozen layers: settings of the program, under their names."""
import pathlib

import numpy as np
import pytest

import cudp
from conftest import released
from test_training import train_both

SETTINGS = {"epsilon": 3.0, "delta": 1e-5, "classes": 2, "epochs": 2, "batch": 128, "seed": 5,
            "model": "mlp"}


@pytest.fixture
def weights(in_folder, rows):
    cudp.train(rows, out="public", method="sgd", model="mlp", classes=2, epochs=1, batch=128,
               seed=4)
    return pathlib.Path("public/private/model.safetensors")


def test_frozen_layers_stay_and_the_bytes_are_the_programs(cli, weights, rows):
    before = cudp.load("public").state_dict()
    theirs, run = train_both(cli, rows, {**SETTINGS, "init": weights, "freeze": "fc1*"})
    assert released(theirs) == released(run)
    after = run.state_dict()
    assert np.array_equal(before["fc1.weight"], after["fc1.weight"])
    assert not np.array_equal(before["fc2.weight"], after["fc2.weight"])


def test_a_list_of_layers_is_taken(weights, rows):
    run = cudp.train(rows, init=weights, freeze=["fc1.weight", "fc1.bias"], **SETTINGS)
    assert np.array_equal(cudp.load("public").state_dict()["fc1.bias"],
                          run.state_dict()["fc1.bias"])


@pytest.mark.parametrize("freeze, words", [
    ("*", "expected a layer that is left to train"),
    ("conv*", "expected names of the model's tensors or layers"),
])
def test_what_cannot_work_is_an_input_error(weights, rows, freeze, words):
    with pytest.raises(cudp.InputError, match=words):
        cudp.train(rows, init=weights, freeze=freeze, **SETTINGS)


def test_no_weight_changed_is_an_input_error(weights, rows):
    with pytest.raises(cudp.InputError, match="no weight changed"):
        cudp.train(rows, init=weights, lr=1e-29, **SETTINGS)
