"""Units of privacy of arrays: rows with one id."""

import pickle

import numpy as np
import pytest

import cudp

from conftest import released

COMMON = {"epsilon": 3.0, "delta": 1e-5, "epochs": 2, "batch": 64, "seed": 4, "size_is_public": True}


@pytest.fixture
def grouped(rows):
    x, y = rows
    return x, y, np.arange(len(y)) % 400


def program_table(x, y, ids, folder):
    """The files that a user of the program would write."""
    names = [f"x{i}" for i in range(x.shape[1])]
    lines = [",".join(["group", *names, "y"])]
    lines += [",".join([str(i), *(repr(float(v)) for v in row), str(label)])
              for i, row, label in zip(ids, x, y)]
    (folder / "arrays.csv").write_text("\n".join(lines) + "\n")
    columns = "".join(f'  {{name = "{n}", kind = "numeric", min = -4, max = 4}},\n' for n in names)
    (folder / "arrays.toml").write_text(
        'name = "arrays"\nunit = "group"\nmax_rows = 3\ncolumns = [\n  {name = "group", kind = "ignore"},\n'
        + columns + '  {name = "y", kind = "label", values = ["0", "1"]},\n]\n')


def test_the_same_bytes_as_the_program_on_a_table_with_ids(cli, in_folder, grouped):
    x, y, ids = grouped
    program_table(x, y, ids, in_folder)
    words = [f"--{key.replace('_', '-')}" + ("" if value is True else f"={value}")
             for key, value in COMMON.items()]
    cli("train", "--dataset", "arrays.csv", "--schema", "arrays.toml", "--out", "theirs", *words)
    run = cudp.train((x, y), groups=ids, max_rows=3, bounds=(-4, 4), classes=2, **COMMON)
    assert released("theirs") == released(run)
    assert run.certificate.unit == "3 rows by group"
    named = cudp.train((x, y), groups=[str(i) for i in ids], max_rows=3, bounds=(-4, 4), classes=2, **COMMON)
    assert released(named) == released(run)


def test_a_run_by_groups_scores_arrays(grouped):
    x, y, ids = grouped
    run = cudp.train((x, y), groups=ids, max_rows=3, bounds=(-4, 4), classes=2,
                     test_data=(x.copy(), y.copy()), **COMMON)
    assert set(run.predict(x)) <= {0, 1} and run.predict_proba(x).shape == (len(y), 2)
    shown = run.evaluate(x, y)["test_accuracy"]
    assert shown == pytest.approx(np.mean(run.predict(x) == y))
    assert run.private_metrics[-1]["test_accuracy"] == pytest.approx(shown)
    with pytest.raises(cudp.InputError, match="12 features"):
        run.predict(x[:, :5])
    numbers = cudp.train((x, 2.0 * x[:, 0]), groups=ids, max_rows=3, bounds=(-4, 4),
                         target_bounds=(-8, 8), **COMMON)
    assert numbers.predict(x).dtype == np.float64


def test_rows_beyond_max_rows_are_not_used(grouped):
    x, y, ids = grouped
    settings = {**COMMON, "max_rows": 3, "bounds": (-4, 4), "classes": 2}
    expected = cudp.train((x, y), groups=ids, **settings).state_dict()
    more = np.concatenate([x, x[:50]]), np.concatenate([y, 1 - y[:50]])
    others = cudp.train(more, groups=np.concatenate([ids, np.zeros(50, int)]), **settings).state_dict()
    # Unit 0 has its first three rows either way.
    assert all((expected[name] == others[name]).all() for name in expected)


def units_of(ids):
    """The number of units that a run counts, of which each has one row."""
    x = np.zeros((len(ids), 2), np.float32)
    run = cudp.train((x, np.zeros(len(ids), int)), groups=ids, max_rows=1, bounds=(-1, 1), classes=2,
                     epsilon=3.0, delta=1e-5, epochs=1, batch=4, size_is_public=True, threads=1)
    return round(4 / run.certificate["q"])


def test_ids_are_one_if_they_are_equal():
    names = [f"p{i}" for i in range(20)]
    for other in (" {}", "{} ", "{}\t", "{}\0", "{}\n", "P{}", "{},", '"{}"', "{}\ud800"):
        assert units_of(names + [other.format(name) for name in names]) == 40, other
    assert units_of(names + names) == 20
    assert units_of(["", "NA", "NaN", "null", "?", " ", *names]) == 26
    # A whole number and its text may be one person.
    assert units_of([*range(20), *(str(i) for i in range(20)), *(np.int64(i) for i in range(20))]) == 20
    assert units_of([*range(20), "x"]) == 21
    assert units_of([2**80 + i for i in range(20)]) == 20
    for kind in ("pandas", "polars"):
        series = pytest.importorskip(kind).Series
        assert units_of(series(names + names)) == units_of(series(list(range(20)) * 2)) == 20


def test_a_column_names_the_unit(grouped):
    pandas = pytest.importorskip("pandas")
    x, y, ids = grouped
    settings = {"max_rows": 3, "bounds": (-4, 4), "classes": 2, **COMMON}
    for name, unit in (("patient", "patient"), ("x1", "group"), ("y", "group"), ('a "b"', "group"), (3, "group")):
        run = cudp.train((x[:200], y[:200]), groups=pandas.Series(ids[:200], name=name), **settings)
        assert run.certificate.unit == f"3 rows by {unit}"
        assert run.predict(x).shape == y.shape
    with cudp.Budget(9, 1e-5), pytest.raises(cudp.InputError, match="in patient, found .* in hospital"):
        for name in ("patient", "hospital"):
            cudp.train((x, y), groups=pandas.Series(ids, name=name), **settings)


def test_messages_do_not_tell_the_number_of_rows(grouped):
    x, y, ids = grouped
    settings = {"groups": ids, "max_rows": 3, "bounds": (-4, 4), "classes": 2, **COMMON}
    for data, sentence in (((x, y[:-1]), "found fewer"), ((x[:-1], y), "found more|groups: .*found more"),
                           ((x, y[:, None]), "2 dimensions"), ((x[:, :0], y), "0 features"),
                           ((x[:, 0], y), "1 dimensions")):
        with pytest.raises(cudp.InputError, match=sentence) as refused:
            cudp.train(data, **settings)
        assert "1500" not in str(refused.value) and "1499" not in str(refused.value)


def test_one_label_changes_no_other_rows_label():
    """An array of floats has the labels of one of whole numbers."""
    x = np.zeros((40, 2), np.float32)
    settings = {"groups": list(range(40)), "max_rows": 1, "bounds": (-1, 1), "classes": 2, **COMMON, "batch": 4}
    whole = [0, 1] * 20
    of_floats, of_bools = ([*whole[:-1], kind(1)] for kind in (float, bool))
    expected = released(cudp.train((x, whole), **settings))
    assert expected == released(cudp.train((x, of_floats), **settings))
    assert expected == released(cudp.train((x, np.array(of_bools, bool)), **settings))


@pytest.mark.parametrize("change, sentence", [
    ({"groups": np.arange(10)}, "one id for each row, found fewer$"),
    ({"groups": np.arange(1501)}, "one id for each row, found more$"),
    ({"groups": np.zeros((1500, 1), int)}, "found something else"),
    ({"groups": "one text"}, "found something else"),
    ({"groups": np.zeros(1500)}, "whole numbers or texts, found one of type float"),
    ({"groups": [7.0] * 1499 + ["x"]}, "whole numbers or texts, found one of type float"),
    ({"groups": np.array([7.0] * 1499 + ["x"], dtype=object)}, "whole numbers or texts, found one of type float"),
    ({"groups": [True] * 1499 + ["x"]}, "whole numbers or texts, found one of type bool"),
    ({"groups": [b"7"] * 1500}, "whole numbers or texts, found one of type bytes"),
    ({"groups": [None] * 1500}, "whole numbers or texts"),
    ({"groups": None}, "max_rows: expected with groups only"),
    ({"groups": None, "max_rows": None}, "bounds: expected with groups only"),
    ({"max_rows": None}, "max_rows: expected the largest number of rows"),
    ({"max_rows": 0}, "max_rows: expected the largest number of rows"),
    ({"max_rows": 5000}, "max_rows"),
    ({"bounds": None}, "not public"),
    ({"bounds": (1, 1)}, "low < high"),
    ({"bounds": (0, np.inf)}, "finite"),
    ({"classes": None}, "classes: expected"),
    ({"accept_private_bounds": True}, "accept_private_bounds: expected none with groups"),
    ({"schema": "x.toml"}, "schema: expected none with groups"),
])
def test_what_does_not_fit_is_refused(grouped, change, sentence):
    x, y, ids = grouped
    settings = {"groups": ids, "max_rows": 3, "bounds": (-4, 4), "classes": 2, **COMMON, **change}
    with pytest.raises(cudp.InputError, match=sentence):
        cudp.train((x, y), **settings)


def test_other_data_and_shared_memory_are_refused(grouped, images):
    x, y, ids = grouped
    settings = {"max_rows": 3, "bounds": (-4, 4), "classes": 2, **COMMON}
    with pytest.raises(cudp.InputError, match="memory of their own"):
        cudp.train((x, y), groups=ids, test_data=(x[:9], y[:9].copy()), **settings)
    with pytest.raises(cudp.InputError, match=r"\[n, features\]"):
        cudp.train(images, groups=np.arange(400), **settings)
    with pytest.raises(cudp.InputError, match="a table's schema states its unit"):
        cudp.train("rows.csv", groups=ids, **settings)


@pytest.mark.parametrize("kind", ["DPLogisticRegression", "DPLinearSVC", "DPMLPClassifier"])
def test_estimators_by_groups(grouped, kind):
    pytest.importorskip("sklearn")
    x, y, ids = grouped
    settings = {"epsilon": 3.0, "delta": 1e-5, "bounds": (-4, 4), "classes": [0, 1], "epochs": 4,
                "batch_size": 64, "size_is_public": True}
    names = np.array(["no", "yes"])
    model = getattr(cudp, kind)(**{**settings, "classes": names}, max_rows=3, random_state=1)
    model.fit(x, names[y], groups=ids)
    assert model.certificate_.unit == "3 rows by group"
    assert len(model.certificate_.not_for_release) == 1, "but for the seed it is for release"
    assert model.score(x, names[y]) > 0.55
    copy = pickle.loads(pickle.dumps(model))
    assert (copy.decision_function(x) == model.decision_function(x)).all()
    with pytest.raises(cudp.InputError, match="max_rows: expected with fit"):
        getattr(cudp, kind)(**settings, max_rows=3).fit(x, y)
    with pytest.raises(cudp.InputError, match="max_rows: expected the largest"):
        getattr(cudp, kind)(**settings).fit(x, y, groups=ids)
    with pytest.raises(cudp.InputError, match="unsafe_from_data"):
        getattr(cudp, kind)(epsilon=3.0, delta=1e-5, unsafe_from_data=True, max_rows=3).fit(x, y, groups=ids)


def test_the_regressor_by_groups(grouped):
    pytest.importorskip("sklearn")
    x, _, ids = grouped
    model = cudp.DPRegressor(epsilon=3.0, delta=1e-5, bounds=(-4, 4), target_bounds=(-8, 8), epochs=2,
                             batch_size=64, size_is_public=True, max_rows=3)
    model.fit(x, 2.0 * x[:, 0], groups=ids)
    assert model.certificate_.unit == "3 rows by group" and model.predict(x).shape == (len(x),)


def test_a_number_beyond_float32_counts_as_its_bound(grouped, recwarn):
    x, y, ids = grouped
    x = x.astype(np.float64)
    models = []
    for value in (1e39, 4.0):
        x[3, 1] = value
        run = cudp.train((x, y), groups=ids, max_rows=3, bounds=(-4, 4), classes=2, **COMMON)
        models.append(released(run.path)["model.safetensors"])
    assert models[0] == models[1]
    assert not [w for w in recwarn if "overflow" in str(w.message)]
