"""Cells of tables that are written from DataFrames: one row changes the text of no other row."""

import datetime
import decimal

import numpy as np
import pytest

import cudp
from cudp import _cells

SCHEMA = """columns = [
  {name = "since", kind = "date", format = "%Y-%m-%d", min = "2010-01-01", max = "2019-12-31", fill = "2015-01-01"},
  {name = "seen", kind = "date", format = "%Y-%m-%d %H:%M:%S", min = "2010-01-01 00:00:00", max = "2019-12-31 00:00:00"},
  {name = "ward", kind = "categorical", values = ["0", "1"]},
  {name = "ill", kind = "label", values = ["0", "1"]},
]
"""


def lines_of(frame, folder, schema=""):
    path = folder / "frame.csv"
    try:
        _cells.write_frame(frame, path, schema)
        return path.read_text().splitlines()
    finally:
        path.unlink(missing_ok=True)


def first_and(values, last):
    """Two columns as a user makes them, without the last value and with it."""
    return list(values), [*values, last]


@pytest.mark.parametrize("values, last", [
    ([1, 2, 3], None),
    ([1, 2, 3], 0.5),
    ([1, 2, 3], float("inf")),
    ([1, 2, 3], "x"),
    ([1, 2, 3], 10**30),
    ([1.0, 2.5, -0.0], None),
    ([1.0, 2.5, 0.1], 1e300),
    ([True, False], None),
    ([True, False], 0.5),
    ([decimal.Decimal("1.0"), decimal.Decimal("20")], decimal.Decimal("1.25")),
    ([datetime.datetime(2020, 1, 1), None], datetime.datetime(2020, 1, 1, 12)),
    ([datetime.datetime(2020, 1, 1)], datetime.datetime(2020, 1, 1, 0, 0, 0, 5)),
    ([datetime.datetime(2020, 1, 1, 12)], datetime.datetime(2020, 1, 1, 0, 0, 0, 5)),
    ([datetime.datetime(2020, 1, 1)], None),
    ([datetime.datetime(2020, 1, 1)], "x"),
    ([datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)],
     datetime.datetime(2020, 1, 1, 0, 0, 0, 5, tzinfo=datetime.timezone.utc)),
    ([datetime.date(2020, 1, 1)], datetime.datetime(2020, 1, 1, 12)),
    ([datetime.timedelta(2), datetime.timedelta(-2)], datetime.timedelta(2, 5)),
    ([datetime.timedelta(2), datetime.timedelta(-2, 30)], "x"),
    (["a", "b, c", ""], None),
    (["a", 'b "c"'], 1.0),
    (["1", "2"], 1),
])
def test_one_row_changes_no_other_rows_cells(values, last, tmp_path):
    pandas = pytest.importorskip("pandas")
    for make in (lambda v: v, lambda v: pandas.Series(v, dtype=object), lambda v: pandas.Categorical(v)):
        try:
            alone, more = (pandas.DataFrame({"a": make(v), "b": 7}) for v in first_and(values, last))
        except TypeError:  # categories that have no order
            continue
        assert lines_of(more, tmp_path)[:-1] == lines_of(alone, tmp_path)


def test_rows_that_pandas_joins(tmp_path):
    """Columns of one type each, whose common type follows from both."""
    pandas = pytest.importorskip("pandas")
    columns = [np.array([1, 2], np.int32), np.array([1, 2], np.int64), np.array([0.5, 3], np.float32),
               np.array([0.1, 2], np.float64), np.array([1, 2], np.uint8), np.array([True, False]),
               pandas.array([1, None], dtype="Int64"), pandas.array([0.5, None], dtype="Float32"),
               pandas.array([True, None], dtype="boolean"), pandas.array(["a", None], dtype="string"),
               np.array(["2020-01-01", "2020-01-02T12:00"], "datetime64[s]"),
               np.array(["2020-01-01", "2020-01-02T12:00:00.000000001"], "datetime64[ns]")]
    for one in columns:
        first = pandas.DataFrame({"a": one, "b": 7})
        expected = lines_of(first, tmp_path)
        for other in columns:
            joined = pandas.concat([first, pandas.DataFrame({"a": other, "b": 7})])
            if first["a"].dtype == bool and joined["a"].dtype.kind in "iuf":
                continue  # True has become 1, which README.md states
            assert lines_of(joined, tmp_path)[:3] == expected, (first.dtypes, joined.dtypes)


def test_polars_columns_that_became_floats(tmp_path):
    polars = pytest.importorskip("polars")
    for values, last in (([1, 2, None], 0.5), ([1.0, 2.5], None), ([1.0, 2.5], float("nan")),
                         ([decimal.Decimal("1.0")], decimal.Decimal("1.25"))):
        alone, more = (polars.DataFrame({"a": v, "b": ["x"] * len(v)}, strict=False)
                       for v in first_and(values, last))
        assert lines_of(more, tmp_path)[:-1] == lines_of(alone, tmp_path)
    assert lines_of(polars.DataFrame({"a": [1.0, None, float("nan"), 0.1], "b": 7}), tmp_path) == [
        "a,b", "1,7", ",7", "NaN,7", "0.1,7"]


def test_what_stands_in_a_cell(tmp_path):
    pandas = pytest.importorskip("pandas")
    when = [pandas.Timestamp("2020-01-01"), pandas.Timestamp("2020-01-01 12:30"), None]
    frame = pandas.DataFrame({"since": when, "seen": when, "n": [1, 0.1, None], 'a "b", c': ["x", None, ""]})
    assert lines_of(frame, tmp_path, SCHEMA) == [
        'since,seen,n,"a ""b"", c"', "2020-01-01,2020-01-01 00:00:00,1,x",
        "2020-01-01 12:30:00,2020-01-01 12:30:00,0.1,", ",,,"]
    assert lines_of(pandas.DataFrame({"a": ["\ud800"]}, dtype=object), tmp_path) == ['"a"', '"?"']
    numbers = np.random.default_rng(1).normal(size=300) * 10.0 ** np.arange(-150, 150)
    lines = lines_of(pandas.DataFrame({"a": numbers, "b": ""}), tmp_path)
    assert [float(line.removesuffix(",")) for line in lines[1:]] == numbers.tolist()


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_long_frame_is_written_in_parts(kind, tmp_path, monkeypatch):
    make = pytest.importorskip(kind).DataFrame
    frame = make({"a": [0.5 * i for i in range(100)], "b": ["x"] * 100})
    monkeypatch.setattr(_cells, "_ROWS_AT_ONCE", 7)
    lines = lines_of(frame, tmp_path)
    assert lines[:4] == ["a,b", "0,x", "0.5,x", "1,x"] and len(lines) == 101
    assert lines_of(frame[:0], tmp_path) == ["a,b"]


def test_columns_whose_dates_have_times(monkeypatch):
    inline = SCHEMA.replace("%Y-%m-%d\"", "%Y%%H\"")
    tables = '[[columns]]\nname = "since"\nformat = "%Y"\n[[columns]]\nformat = \'%d %H\'\nname = "seen"\n'
    for schema in (inline, tables):
        assert _cells.times_of(schema) == {"seen"}
        with monkeypatch.context() as before_3_11:
            before_3_11.setitem(__import__("sys").modules, "tomllib", None)
            assert _cells.times_of(schema) == {"seen"}
    assert _cells.times_of("columns = [") == set() == _cells.times_of("")


def test_one_row_with_a_time_or_without_a_number_leaves_others_as_they_are(tmp_path):
    pandas = pytest.importorskip("pandas")
    (tmp_path / "schema.toml").write_text(SCHEMA)
    rng = np.random.default_rng(2)
    days = rng.integers(0, 3650, 400)
    frame = pandas.DataFrame({"since": pandas.Timestamp("2010-01-01") + pandas.to_timedelta(days, unit="D"),
                              "seen": pandas.Timestamp("2010-01-01") + pandas.to_timedelta(days, unit="h"),
                              "ward": days % 2, "ill": (days > 1825).astype(int)})
    more = pandas.concat([frame, frame[:1].assign(since=pandas.Timestamp("2015-01-01 12:00"), ward=np.nan)])
    assert more["ward"].dtype == float
    settings = {"schema": tmp_path / "schema.toml", "epsilon": 50.0, "delta": 1e-5, "epochs": 4, "batch": 32,
                "seed": 1, "size_is_public": True, "model": "logistic", "lr": 2.0, "threads": 1}
    run = cudp.train(more, malformed="missing", **{**settings, "schema": _with_fills(tmp_path)})
    assert run.evaluate(frame)["test_accuracy"] > 0.8
    assert cudp.train(frame, **settings).evaluate(frame)["test_accuracy"] > 0.8
    with pytest.raises(cudp.InputError, match="1 error.*|line 402"):
        cudp.train(more, **settings)


def _with_fills(folder):
    """The schema with a value for each cell that is missing."""
    path = folder / "fills.toml"
    path.write_text(SCHEMA.replace('max = "2019-12-31 00:00:00"',
                                   'max = "2019-12-31 00:00:00", fill = "2015-01-01 00:00:00"')
                    .replace('{name = "ill", kind = "label", values = ["0", "1"]}',
                             '{name = "ill", kind = "label", values = ["0", "1"], fill = "0"}'))
    return path
