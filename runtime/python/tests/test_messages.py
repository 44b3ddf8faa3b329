"""Messages in Python's words: arguments, not flags of the program."""

import inspect
import pickle
import threading

import numpy as np
import pytest

import cudp
from cudp import _settings

SHORT = {"epsilon": 1, "delta": 1e-5, "classes": 2, "epochs": 1}


@pytest.mark.parametrize("text, expected", [
    ("--epsilon: expected a number > 0, found -1", "epsilon: expected a number > 0, found -1"),
    ("expected --test-data FILE or --holdout", "expected test_data=FILE or holdout"),
    ("(or --target-bounds LOW,HIGH for a number)", "(or target_bounds=LOW,HIGH for a number)"),
    ("type --batch 800 or more", "type batch=800 or more"),
    ("type --delta 1e-5. Or --lr 0.5.", "type delta=1e-5. Or lr=0.5."),
    ("pass --size-is-public if it is public", "pass size_is_public=True if it is public"),
    ("--size-is-public: expected true", "size_is_public: expected true"),
    ("--input-shape CxHxW", "input_shape=CxHxW"),
    ("the nearest is '--lr'", "the nearest is 'lr'"),
    ("finish it (cudp tune --resume DIR); --out names another", "finish it (cudp tune --resume DIR); out names another"),
    ("`cudp schema t.csv --out t.toml` drafts --schema", "`cudp schema t.csv --out t.toml` drafts schema"),
    ("/data/a--b.csv: a - b -- c", "/data/a--b.csv: a - b -- c"),
    ("--out /tmp/a--b: expected a new folder", "out /tmp/a--b: expected a new folder"),
    ("", ""),
])
def test_flags_become_arguments(text, expected):
    assert _settings.in_python(text) == expected


def test_every_error_of_the_extension_is_reworded(tmp_path, rows):
    for call in (lambda: cudp.train(rows, **{**SHORT, "epsilon": -1}),
                 lambda: cudp.train(rows, **{**SHORT, "epsilon": None}),
                 lambda: cudp.train(rows, epsilon=1, delta=1e-5),
                 lambda: cudp.train(rows, **SHORT, sigma_=1),
                 lambda: cudp.train(rows, **SHORT, out=tmp_path.parent),
                 lambda: cudp.train(rows, **SHORT, label="y", schema="t.toml"),
                 lambda: cudp.calibrate(delta=1e-5),
                 lambda: cudp.account(sigma=1)):
        with pytest.raises(cudp.InputError) as refused:
            call()
        assert "--" not in str(refused.value), refused.value
        assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)


@pytest.mark.parametrize("settings, sentence", [
    ({"sample_rate": 2}, r"^sample_rate: expected a number in \[0, 1\], found 2"),
    ({"sampling_rate": 2}, r"^sampling_rate: expected"),
    ({"q": 2}, r"^q: expected"),
    ({"q": 0.1, "sample_rate": 0.1}, "^sample_rate: expected one name of this setting, found q as well"),
    ({"q": 0.1, "noise_multiplier": -1}, "^noise_multiplier: expected"),
])
def test_an_argument_has_the_name_that_was_typed(settings, sentence):
    with pytest.raises(cudp.InputError, match=sentence):
        cudp.account(**{"sigma": 1, "steps": 10, "delta": 1e-5, **settings})


def test_a_setting_that_is_near_to_none():
    with pytest.raises(cudp.InputError, match="found 'volume'; cudp train --help-all lists them$"):
        cudp.train("glyphs", volume=1)
    with pytest.raises(cudp.InputError, match="found 'volume'; cudp account --help lists them$"):
        cudp.account(volume=1)


def test_names_are_those_of_the_thread():
    with _settings.named({"lr": "learning_rate"}):
        found = []
        other = threading.Thread(target=lambda: found.append(_settings.in_python("--lr: expected")))
        other.start()
        other.join()
        assert _settings.in_python("--lr: expected") == "learning_rate: expected"
    assert found == ["lr: expected"] and _settings.in_python("--lr: expected") == "lr: expected"


def test_estimators_name_their_parameters(rows):
    pytest.importorskip("sklearn")
    public = {"epsilon": 1, "delta": 1e-5, "bounds": (-4, 4), "classes": [0, 1]}
    for name, value in (("learning_rate", -1), ("batch_size", 1.5), ("clip_norm", 0), ("epsilon", -1), ("random_state", -1)):
        with pytest.raises(cudp.InputError, match=f"^{name}: expected"):
            cudp.DPLogisticRegression(**{**public, name: value}).fit(*rows)


@pytest.mark.parametrize("call, sentence", [
    (lambda x, y: cudp.train(x, y, **SHORT), r"^train\(\) takes .*cudp.train\(\(X, y\), "),
    (lambda x, y: cudp.train(x, y, 1, 1e-5), r"^train\(\) takes .*cudp.train\(\(X, y\), "),
    (lambda x, y: cudp.tune(x, y, **SHORT), r"^tune\(\) takes .*cudp.tune\(\(X, y\), "),
    (lambda x, y: cudp.resume("run", x, y), r"^resume\(\) takes .*cudp.resume\(run, \(X, y\)\)"),
    (lambda x, y: cudp.load("run", x), "load"),
])
def test_features_and_labels_are_one_argument(rows, call, sentence):
    with pytest.raises(TypeError, match=sentence):
        call(*rows)


def test_the_signature_is_that_of_the_function():
    assert list(inspect.signature(cudp.train).parameters)[:2] == ["data", "epsilon"]
    assert pickle.loads(pickle.dumps(cudp.train)) is cudp.train


@pytest.mark.parametrize("groups", [None, 1])
@pytest.mark.parametrize("classes", [[0, 1], ("no", "yes"), np.array([0, 1]), range(2)])
def test_classes_of_arrays_are_a_number(rows, classes, groups):
    more = {} if groups is None else {"groups": np.arange(len(rows[0])), "max_rows": 1, "bounds": (-4, 4)}
    with pytest.raises(cudp.InputError, match=r"^classes: expected the number of classes .*type classes=2$"):
        cudp.train(rows, **{**SHORT, "classes": classes}, **more)


def test_labels_that_are_texts(rows):
    x, y = rows
    with pytest.raises(cudp.InputError, match=r"^y: expected whole numbers 0, 1, \.\.\., the position .* found texts"):
        cudp.train((x, np.array(["no", "yes"])[y]), **SHORT)
