import pickle
import tracemalloc
import warnings

import numpy as np
import pytest

import cudp

pytest.importorskip("sklearn", minversion="1.6")

from sklearn.base import clone  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import FunctionTransformer  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402

ESTIMATORS = [cudp.DPLogisticRegression, cudp.DPLinearSVC, cudp.DPMLPClassifier]
PUBLIC = {"epsilon": 3.0, "delta": 1e-5, "bounds": (-4.0, 4.0), "classes": [0, 1], "epochs": 5, "batch_size": 128}


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_check_estimator(kind):
    model = kind(epsilon=100.0, delta=1e-3, unsafe_from_data=True, batch_size=8, epochs=20, threads=1)
    failed = [r for r in check_estimator(model, on_fail=None, on_skip=None) if r["status"] == "failed"]
    assert not failed, [(r["check_name"], r["exception"]) for r in failed]


def test_check_estimator_of_the_regressor():
    # Some checks have ten rows, of which a noisy count would be below the batch once in 200 runs.
    model = cudp.DPRegressor(epsilon=100.0, delta=1e-3, unsafe_from_data=True, batch_size=8, epochs=60,
                             learning_rate=0.05, optimizer="adam", threads=1, size_is_public=True)
    failed = [r for r in check_estimator(model, on_fail=None, on_skip=None) if r["status"] == "failed"]
    assert not failed, [(r["check_name"], r["exception"]) for r in failed]


@pytest.mark.parametrize("kind", [*ESTIMATORS, cudp.DPRegressor])
def test_check_estimator_at_epsilon_1(kind):
    """The checks that ask for an accuracy seed the estimator, so they come out the same every time."""
    model = kind(epsilon=1.0, delta=1e-3, unsafe_from_data=True, size_is_public=True, threads=1)
    failed = [r for r in check_estimator(model, on_fail=None, on_skip=None) if r["status"] == "failed"]
    assert not failed, [(r["check_name"], r["exception"]) for r in failed]


def test_linear_regression_has_defaults_for_few_rows():
    """The program's defaults reach R2 = -0.3 here: their noise is larger than what 200 rows can add up to."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(200, 10))
    y = x[:, 0] + 0.5 * x[:, 1]
    model = cudp.DPRegressor(epsilon=1.0, delta=1e-3, bounds=(-4, 4), target_bounds=(-4, 4), size_is_public=True,
                             random_state=1)
    assert model.fit(x, y).score(x, y) > 0.5
    # A setting that is given is not combined with those that were measured together.
    chosen = cudp.DPRegressor(epsilon=1.0, delta=1e-3, bounds=(-4, 4), target_bounds=(-4, 4), size_is_public=True,
                              learning_rate=0.25).fit(x, y)
    config = (chosen.run_.path / "release" / "config.toml").read_text()
    assert "clip = 1.0\n" in config and 'optimizer = "momentum"' in config and "lr = 0.25" in config


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_fit_predict_pickle_and_clone(kind, rows):
    x, y = rows
    model = kind(**PUBLIC).fit(x, y)
    assert model.certificate_.for_release and model.certificate_.epsilon <= 3.0
    assert model.score(x, y) > 0.75
    copy = pickle.loads(pickle.dumps(model))
    assert (copy.decision_function(x) == model.decision_function(x)).all()
    assert clone(model).get_params() == model.get_params()
    pipeline = make_pipeline(FunctionTransformer(), kind(**PUBLIC)).fit(x, y)
    assert pipeline.predict(x).shape == y.shape


def test_a_regressor(rows):
    x, _ = rows
    y = 2.0 * x[:, 0] - x[:, 1]
    public = {key: PUBLIC[key] for key in ("epsilon", "delta", "bounds", "epochs", "batch_size")}
    model = cudp.DPRegressor(**public, target_bounds=(-9.0, 9.0)).fit(x, y)
    assert model.certificate_.for_release and model.score(x, y) > 0.3
    assert (pickle.loads(pickle.dumps(model)).predict(x) == model.predict(x)).all()
    with pytest.raises(cudp.InputError, match="target_bounds.*not public"):
        cudp.DPRegressor(**public).fit(x, y)
    with pytest.raises(cudp.InputError, match="sample_weight"):
        cudp.DPRegressor(**public).fit(x, y, sample_weight=y)


def test_what_is_not_public_is_refused(rows):
    x, y = rows
    for missing, sentence in (("bounds", "not public"), ("classes", "not public")):
        with pytest.raises(cudp.InputError, match=sentence):
            cudp.DPLogisticRegression(**{**PUBLIC, missing: None}).fit(x, y)
    for bounds in (([0.0] * 99, [1.0] * 99), ("a", "b"), ([[0.0], 1.0], 1.0)):
        with pytest.raises(cudp.InputError, match="bounds: expected low and high as numbers, or as arrays of"):
            cudp.DPLogisticRegression(**{**PUBLIC, "bounds": bounds}).fit(x, y)
    with pytest.raises(cudp.InputError, match="sample_weight"):
        cudp.DPLogisticRegression(**PUBLIC).fit(x, y, sample_weight=np.ones(len(y)))
    with pytest.raises(cudp.InputError, match="class_weight"):
        cudp.DPLogisticRegression(**PUBLIC, class_weight="balanced").fit(x, y)
    for labels, classes in ((y + 1, [0, 1]), (np.array(["no", "yes"])[y], ["maybe", "no"])):
        with pytest.raises(cudp.InputError) as refused:
            cudp.DPLogisticRegression(**{**PUBLIC, "classes": classes}).fit(x, labels)
        assert str(refused.value) == (f"y: expected one of the classes {', '.join(map(repr, classes))} in each row, found "
                                      f"another label in row {np.argmax(y)}, counted from 0")


def test_what_is_taken_from_rows_is_marked(rows):
    x, y = rows
    unsafe = cudp.DPLogisticRegression(**{**PUBLIC, "bounds": None, "classes": None}, unsafe_from_data=True)
    assert not unsafe.fit(x, y).certificate_.for_release
    seeded = cudp.DPLogisticRegression(**PUBLIC, random_state=3).fit(x, y)
    assert not seeded.certificate_.for_release
    again = cudp.DPLogisticRegression(**PUBLIC, random_state=3).fit(x, y)
    assert (again.predict_proba(x) == seeded.predict_proba(x)).all()


def test_stated_classes_may_be_missing_from_y(rows):
    x, _ = rows
    model = cudp.DPLogisticRegression(**{**PUBLIC, "classes": ["no", "yes"]})
    assert set(model.fit(x, np.full(len(x), "no")).predict(x)) <= {"no", "yes"}


def test_public_class_weights(rows):
    x, y = rows
    plain = cudp.DPLogisticRegression(**PUBLIC, random_state=1).fit(x, y)
    weighted = cudp.DPLogisticRegression(**PUBLIC, random_state=1, class_weight={0: 1.0, 1: 20.0}).fit(x, y)
    assert weighted.predict(x).mean() > plain.predict(x).mean()
    assert weighted.certificate_["class_weights"] == [1.0, 20.0]


def test_one_row_moves_no_other_rows_features(rows):
    """Scaling uses the public bounds alone."""
    x, y = rows
    model = cudp.DPLogisticRegression(**PUBLIC).fit(x, y)
    other = x.copy()
    other[0] = 1e6
    assert (model.decision_function(other)[1:] == model.decision_function(x)[1:]).all()
    assert (model._scaled(other)[0] == 1.0).all()


def test_scaling_needs_no_second_copy():
    """Rows of every layout are scaled to the same numbers as by NumPy, in double precision."""
    x = np.random.default_rng(4).normal(size=(40000, 24))
    x[:4, 0] = -np.inf, np.inf, -0.0, 1e308
    model = cudp.DPLogisticRegression(**PUBLIC)
    model.bounds_ = np.full(24, -2.0), np.append(np.full(23, 2.0), -2.0)  # a constant feature, too
    tracemalloc.start()
    try:
        scaled = model._scaled(x)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < scaled.nbytes + (2 << 20)
    low, high = model.bounds_
    width = np.where(high > low, high - low, 1.0)
    wide = np.zeros((len(x), 48), np.float32)
    single = np.clip(x, -8.0, 8.0).astype(np.float32)
    wide[:, 1::2] = single
    packed = np.zeros(len(x), dtype=[("byte", np.uint8), ("row", np.float64, 24)])
    packed["row"] = x
    unaligned = np.frombuffer(b"_" + x.tobytes(), np.uint8)[1:].view(np.float64).reshape(x.shape)
    for rows in (x, single, np.asfortranarray(x), wide[:, 1::2], x[::-1], packed["row"], unaligned):
        expected = (2.0 * (np.clip(rows, low, high) - low) / width - 1.0).astype(np.float32)
        assert model._scaled(rows).tobytes() == expected.tobytes()
    model.bounds_ = np.full(24, -8e307), np.full(24, 8e307)  # no value overflows
    assert np.isfinite(model._scaled(np.clip(x, -1e308, 1e308))).all()


def outcome(fit):
    """What a caller sees of a training: warnings, and an error's words."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            fit()
            error = None
        except ValueError as e:
            error = str(e)
    return error, [str(w.message) for w in seen]


@pytest.mark.parametrize("kind", [cudp.DPLogisticRegression, cudp.DPRegressor])
def test_no_message_tells_how_many_rows_there_are(kind):
    x = np.random.default_rng(3).normal(size=(31, 3))
    public = {"epsilon": 100.0, "delta": 1e-5, "bounds": (-4, 4), "batch_size": 1, "epochs": 1, "threads": 1,
              "random_state": 1}
    if kind is cudp.DPRegressor:
        public["target_bounds"] = (0, 40)
    else:
        public["classes"] = list(range(40))
    labels = np.arange(31) % 16
    # No row, and more labels than half of the rows, which scikit-learn warns of.
    for rows in (0, 31):
        assert outcome(lambda: kind(**public).fit(x[:rows], labels[:rows])) == (None, []), rows
    for data in ((x, labels[:-1]), (x[:-1], labels), (x, np.stack([labels, labels], 1)), (x[0], labels),
                 (x[:, :0], labels), ([[1.0], [1.0, 2.0], *x[:29].tolist()], labels)):
        error, _ = outcome(lambda: kind(**public).fit(*data))
        assert error and error.startswith(("X: ", "y: ")) and "31" not in error and "30" not in error, error


def test_a_label_that_is_no_class_is_refused(rows):
    x, y = rows
    for labels in (np.where(np.arange(len(y)) == 3, 0.5, y), np.where(np.arange(len(y)) == 3, 7, y)):
        with pytest.raises(cudp.InputError, match="label in row 3,"):
            cudp.DPLogisticRegression(**PUBLIC).fit(x, labels)
