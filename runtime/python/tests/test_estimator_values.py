"""Rows that estimators are given: what is seen of a fit, but for the model, follows from none of them."""

import warnings

import numpy as np
import pytest

import cudp


def test_estimators_quote_no_rows_and_no_type_of_lists():
    pytest.importorskip("sklearn")
    x = np.random.default_rng(1).normal(size=(37, 2))
    y = [0, 1] * 18 + [1]
    public = {"epsilon": 3.0, "delta": 1e-5, "bounds": (-4, 4), "batch_size": 8, "epochs": 1, "threads": 1,
              "random_state": 1, "size_is_public": True}
    model = cudp.DPLogisticRegression(classes=[0, 1], **public)
    for data, sentence in (((x + 1j, y), "^X: Complex data not supported"), ((x, np.array(y) + 1j), "^y: Complex data"),
                           ((x, [[a, a] for a in y]), "^y: expected one value for each row, found more$"),
                           ((x, [[a] for a in y[:-1]] + [[0, 1]]), "^y: expected one value"),
                           ((x[:-1].tolist() + [[0.0]], y), "^X: expected rows of one length")):
        with pytest.raises(cudp.InputError, match=sentence) as refused:
            model.fit(*data)
        assert "37" not in str(refused.value) and "[" not in str(refused.value)
    expected = model.fit(x, y).decision_function(x)
    assert (model.fit(x.tolist(), [[a] for a in y]).decision_function(x) == expected).all()
    assert (model.fit(x, [*y[:-1], 1.0]).decision_function(x) == expected).all()
    names = cudp.DPLogisticRegression(classes=["no", "yes"], **public)
    assert (names.fit(x, [["no", "yes"][a] for a in y]).decision_function(x) == expected).all()
    with pytest.raises(cudp.InputError, match="label in row 36,"):
        names.fit(x, [*[["no", "yes"][a] for a in y[:-1]], 1])


def test_estimators_quote_no_cell_that_is_no_number():
    pytest.importorskip("sklearn")
    pandas = pytest.importorskip("pandas")
    x, y = np.random.default_rng(1).normal(size=(37, 2)), [0, 1] * 18 + [1]
    public = {"epsilon": 3.0, "delta": 1e-5, "bounds": (-4, 4), "batch_size": 8, "epochs": 1, "threads": 1,
              "size_is_public": True}
    objects = x.astype(object)
    objects[5, 1] = "Smith"
    for cells in (objects, objects.astype(str), pandas.DataFrame(objects), objects.tolist()):
        with pytest.raises(ValueError) as refused:
            cudp.DPLogisticRegression(classes=[0, 1], **public).fit(cells, y)
        assert "Smith" not in str(refused.value) and "37" not in str(refused.value)
    for target in ([*map(float, y[:-1]), "Smith"], np.array([*map(str, y[:-1]), "Smith"])):
        with pytest.raises(ValueError) as refused:
            cudp.DPRegressor(target_bounds=(0, 1), **public).fit(x, target)
        assert "Smith" not in str(refused.value)
    numbers = x.astype(object)
    assert cudp.DPLogisticRegression(classes=[0, 1], **public).fit(numbers, y).certificate_.epsilon == pytest.approx(3, rel=0.01)


def test_wide_bounds_warn_for_no_row():
    pytest.importorskip("sklearn")
    public = {"epsilon": 3.0, "delta": 1e-5, "classes": [0, 1], "batch_size": 8, "epochs": 1, "threads": 1,
              "size_is_public": True}
    for value in (0.0, 8e307):
        x = np.zeros((40, 2))
        x[0] = value
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            cudp.DPLogisticRegression(bounds=(-8e307, 8e307), **public).fit(x, [0, 1] * 20)
    with pytest.raises(cudp.InputError, match="bounds: expected finite"):
        cudp.DPLogisticRegression(bounds=(-1e308, 1e308), **public).fit(x, [0, 1] * 20)


def test_searches_that_train_no_best_model_are_refused_before_they_spend(rows):
    selection = pytest.importorskip("sklearn.model_selection")
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401

    model = cudp.DPLogisticRegression(epsilon=1.0, delta=1e-5, bounds=(-4, 4), classes=[0, 1], epochs=1, batch_size=128,
                                      size_is_public=True, threads=1)
    grid = {"learning_rate": [0.5, 1.0]}
    for search in (selection.GridSearchCV(model, grid, cv=2, refit=False),
                   selection.HalvingGridSearchCV(model, grid, cv=2)):
        with cudp.Budget(6, 1e-5) as budget:
            with pytest.raises(cudp.BudgetError, match="SearchCV: settings would be chosen by exact scores.*cudp.tune"):
                search.fit(*rows)
            assert budget.remaining == 1 and not hasattr(search, "best_params_")
    with cudp.Budget(6, 1e-5, scores_are_public=True) as budget:
        selection.GridSearchCV(model, grid, cv=2, refit=False).fit(*rows)
        assert len(budget.runs) == 4
