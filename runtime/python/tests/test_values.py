"""Features and labels as arrays: no row decides how others are converted, and messages tell nothing of them."""

import decimal
import pathlib
import warnings

import numpy as np
import pytest

import cudp
from cudp import _arrays
from test_frames import COLUMNS, SETTINGS, Bad, frame_of


def test_the_training_rows_are_no_test_rows(in_folder):
    pathlib.Path("visits.toml").write_text(COLUMNS)
    pandas, polars = (pytest.importorskip(kind) for kind in ("pandas", "polars"))
    public = {"test_data_is_public": True, **SETTINGS}
    texts, labels, x = ["good film"] * 100, [0, 1] * 50, np.zeros((100, 2)).tolist()
    words = {"classes": 2, "model": "imdb-mean", "vectors": {"good": [1.0, 2.0]}, **public}
    groups = {"groups": list(range(100)), "max_rows": 1, "bounds": (0, 1), "classes": 2, **public}
    swapped = np.zeros((100, 2), ">f4")
    cases = []
    for kind in (pandas, polars):
        frame = frame_of(kind.__name__)
        cases += [(frame, part, {"schema": "visits.toml", **public}) for part in (frame, frame[:], frame[3:40])]
    cases += [((texts, labels), (texts, list(labels)), words), ((texts, labels), (list(texts), labels), words),
              ((x, labels), (x, labels), {"classes": 2, **public}), ((x, labels), (x, labels), groups),
              ((swapped, labels), (swapped[5:], labels[5:]), {"classes": 2, **public})]
    for case in cases:
        for call in (cudp.train, cudp.tune):
            with pytest.raises(cudp.InputError, match="test_data: expected test rows in memory of their own"):
                call(case[0], test_data=case[1], **case[2])
    frame = frame_of("pandas")
    for one, other in ((frame[:50], frame[50:]), (frame[::2], frame[1::2]), (frame, frame.copy())):
        cudp.train(one, test_data=other, schema="visits.toml", **public)
    frame = frame_of("polars")
    cudp.train(frame[:50], test_data=frame[50:], schema="visits.toml", **public)


def test_memory_is_found_whatever_holds_it():
    pandas, polars = (pytest.importorskip(kind) for kind in ("pandas", "polars"))
    x, y = np.arange(200.0).reshape(100, 2), np.arange(100)
    objects = pandas.DataFrame({"a": pandas.Series(["x", None] * 50, dtype=object)})
    masked = pandas.DataFrame({"a": pandas.array([1, None] * 50, dtype="Int64")})
    two = polars.DataFrame({"a": x[:, 0], "b": x[:, 1]})
    for one, other in ((objects, objects[:]), (masked, masked[3:]), (two, two.select("b", "a")), ((x, y), (list(x), list(y)))):
        with pytest.raises(cudp.InputError, match="memory of their own"):
            _arrays.check_apart(one, other)
    for one, other in ((objects, objects.copy()), (masked[:50], masked[50:]), (two[:50], two[50:]), ((x[::2], y[::2]), (x[1::2], y[1::2]))):
        _arrays.check_apart(one, other)


def test_no_value_of_a_list_decides_about_another():
    for last in ("3", 3, None, np.array(5.0)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            rows = _arrays.features([[np.complex64(2), 1.0], [np.array(5.0), 1.0], [last, 1.0]], missing=True)
        assert np.isnan(rows[0, 0]) and rows[1].tolist() == [5.0, 1.0]


CLASSES = {"classes": 2, "size_is_public": True, **SETTINGS, "malformed": "missing"}


def test_a_missing_value_stops_no_run_that_takes_it_as_missing():
    pandas, polars = (pytest.importorskip(kind) for kind in ("pandas", "polars"))
    rng = np.random.default_rng(1)
    x = rng.normal(size=(100, 2)).astype(np.float32)
    labels = [*(x[:-1, 0] > 0).astype(int).tolist(), None]
    expected = cudp.train((x, np.array([*labels[:-1], -1])), **CLASSES).state_dict()
    found = cudp.train((x, polars.Series(labels, dtype=polars.Int64)), **CLASSES).state_dict()
    assert all((found[name] == v).all() for name, v in expected.items())
    for y in (labels, polars.Series(labels, dtype=polars.Int64), polars.Series(labels, dtype=polars.UInt8),
              pandas.Series(labels, dtype="Int64"), pandas.Series(labels, dtype=object),
              polars.DataFrame({"y": labels}), [*labels[:-1], "x"], [*labels[:-1], 0.5], [*labels[:-1], 2**70]):
        assert _arrays.labels(y, missing=True).tolist() == [*labels[:-1], -1]
    for y in (labels, polars.Series(labels), pandas.Series(labels, dtype="Int64")):
        with pytest.raises(cudp.InputError, match="y: expected whole numbers 0, 1, ..., one for each row, found some"):
            cudp.train((x, y), **{**CLASSES, "malformed": "refuse"})
    whole = [0, 1] * 50
    x[-1, 0] = np.nan
    values = x.astype(float)
    first = [*values[:-1, 0].tolist(), None]
    for given in ([[a, b] for a, b in zip(first, values[:, 1].tolist())],
                  pandas.DataFrame({"a": pandas.array(first, dtype="Float64"), "b": values[:, 1]}),
                  polars.DataFrame({"a": first, "b": values[:, 1]})):
        assert np.array_equal(_arrays.features(given, missing=True), values, equal_nan=True)
    cudp.train((given, whole), **CLASSES)


def test_no_row_of_a_list_decides_the_type_of_others():
    x, y = [[i % 9, i % 5] for i in range(60)], [i % 2 for i in range(60)]
    whole = _arrays.features(x)
    assert whole.dtype == np.float64 and _arrays.labels(y).dtype == np.int64
    for row in ([0.5, 1], ["0.5", "x"], [None, 1], [10**400, 1j], [np.float32(0.1), True], [decimal.Decimal(1), Bad()],
                [np.complex64(1j), 1]):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            more = _arrays.features([*x, row], missing=True)
        assert (more[:-1] == whole).all() and more.dtype == whole.dtype
    small = [[np.float32(v) for v in row] for row in np.random.default_rng(1).normal(size=(9, 2))]
    assert (_arrays.features([*small, ["a", None]])[:-1] == _arrays.features(small)).all()
    for label in (1.0, True, None, "yes", 0.5, 2**70, [1, 2], Bad(), np.int8(1), 1j):
        more = _arrays.labels([*y, label], missing=True)
        assert (more[:-1] == y).all() and more.dtype == np.int64
    targets = [0.1, 2, np.float32(0.3)]
    for target in (None, "x", 10**400, 3):
        assert (_arrays.labels([*targets, target], target=True)[:-1] == [0.1, 2.0, float(np.float32(0.3))]).all()
    polars = pytest.importorskip("polars")
    for values in ([1, 2], [1, None]):
        assert _arrays.features(polars.DataFrame({"a": values})).dtype == np.float64
        assert _arrays.features(polars.DataFrame({"a": values}, schema={"a": polars.Float32})).dtype == np.float32
        pixels = polars.DataFrame({"a": values}, schema={"a": polars.UInt8})
        assert _arrays.features(pixels, missing=True).dtype == np.uint8
    with pytest.raises(cudp.InputError, match="a missing one"):
        _arrays.features(pixels)


@pytest.mark.parametrize("make, sentence", [
    (lambda x, y: x, r"data: expected \(X, y\), found something else"),
    (lambda x, y: (x[:-1] + [[1.0]], y), "X: expected rows of one length"),
    (lambda x, y: ([[[1.0, 2.0], [3.0]]] * 2 + [[[1.0, 2.0]] * 2] * 35, y), "X: expected rows of one length"),
    (lambda x, y: (x[:-1] + [None], y), "X: expected rows of one length"),
    (lambda x, y: (x, [y]), "y: expected whole numbers|y: expected one"),
    (lambda x, y: (np.array(x), np.array([y])), "y: expected one number for each row"),
    (lambda x, y: (np.array(x), np.eye(2)[y]), r"y: expected one number for each row, as argmax\(axis=1\)"),
    (lambda x, y: (np.ma.masked_greater(x, 1), y), r"X: expected an array without a mask, as its filled\(VALUE\)"),
    (lambda x, y: (np.array(x), np.ma.array(y)), r"y: expected an array without a mask"),
    (lambda x, y: (x, ["no"] * 36 + ["yes"]), "y: expected whole numbers"),
    (lambda x, y: ([np.zeros(2, np.uint8)] * 36 + [np.zeros(2)], y), "X: expected rows of one type"),
])
def test_no_message_has_the_number_of_rows_or_a_type_that_follows_from_them(make, sentence):
    x, y = np.random.default_rng(1).normal(size=(37, 2)).tolist(), [0, 1] * 18 + [1]
    for groups in ({}, {"groups": list(range(37)), "max_rows": 1, "bounds": (0, 1)}):
        with pytest.raises(cudp.InputError, match=sentence) as refused:
            cudp.train(make(x, y), **groups, **{**CLASSES, "malformed": "refuse"})
        assert not any(word in str(refused.value) for word in ("37", "36", "<U", "dtype", "int64"))


def test_a_sparse_matrix_is_refused_with_what_makes_an_array_of_it():
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(cudp.InputError, match=r"X: expected an array of numbers, as its toarray\(\) is"):
        cudp.train((sparse.csr_matrix(np.eye(4)), [0, 1, 0, 1]), **CLASSES)


@pytest.mark.parametrize("data", [np.zeros((4, 2)), {"x": np.zeros((4, 2))}, iter(())])
def test_data_that_are_neither_a_pair_nor_a_path_are_an_input_error(data, in_folder):
    with pytest.raises(cudp.InputError, match=r"data: expected \(X, y\), a path, .* found a " + type(data).__name__):
        cudp.train(data, **CLASSES)
    assert not list(pathlib.Path(".").iterdir())


def test_a_run_on_lists_is_resumed_on_them(in_folder):
    def stop(progress):
        raise KeyError(progress.step)

    x, settings = np.random.default_rng(1).normal(size=(60, 2)).tolist(), {**CLASSES, "epochs": 3}
    del settings["classes"]
    for name, y, more in (("classes", [0, 1, None] * 20, {"classes": 2}),
                          ("target", [0.5, 1, None] * 20, {"target_bounds": (0, 1)})):
        with pytest.raises(KeyError):
            cudp.train((x, y), out=name, on_epoch=stop, **settings, **more)
        assert cudp.resume(name, (x, y)).certificate["status"] == "finished"


def test_a_text_that_is_none_stops_no_run():
    settings = {"model": "imdb-mean", "vectors": {"good": [1.0, 0.5]}, **CLASSES, "malformed": "refuse"}
    labels = [0, 1] * 20
    expected = cudp.train((["good film"] * 39 + [""], labels), **settings)
    for text in (None, float("nan"), 5, Bad()):
        texts = ["good film"] * 39 + [text]
        assert len(expected.predict(texts)) == 40
        assert len(expected.predict(np.array(texts, dtype=object))) == 40
    found = cudp.train((texts, labels), **settings).state_dict()
    assert all((found[name] == v).all() for name, v in expected.state_dict().items())
