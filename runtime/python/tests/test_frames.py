"""Rows of a DataFrame as rows of the program: each is one, whatever its cells and the dialect of the schema."""

import csv
import datetime
import decimal
import pathlib

import numpy as np
import pytest

import cudp
from cudp import _cells

SETTINGS = {"epsilon": 3.0, "delta": 1e-5, "epochs": 1, "batch": 20, "device": "cpu", "threads": 1, "seed": 1}
COLUMNS = """columns = [
  {name = "tag", kind = "ignore"},
  {name = "x", kind = "numeric", min = 0, max = 1},
  {name = "y", kind = "label", values = ["0", "1"]},
  {name = "note", kind = "ignore"},
]
"""
DIALECTS = ["quotes = false\n", 'skip_prefix = "#"\n', "header = false\n", 'delimiter = ";"\n', 'delimiter = " "\n']
LINES = "a" + "\nt,0.9,1,z" * 200


def frame_of(kind, rows=100, tag="#", note=LINES):
    """`rows` usual rows, and one whose texts look like others of the dialect."""
    frame = {"tag": ["t"] * rows + [tag], "x": [i % 10 / 10 for i in range(rows)] + [0.5],
             "y": [i % 2 for i in range(rows)] + [1], "note": ["fine"] * rows + [note]}
    return FRAMES[kind](frame)


class OnlyArrow:
    """A table of which nothing is known but that Arrow's C stream hands it over."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


FRAMES = {
    "pandas": lambda columns: pytest.importorskip("pandas").DataFrame(columns),
    "polars": lambda columns: pytest.importorskip("polars").DataFrame(columns),
    "pyarrow": lambda columns: pytest.importorskip("pyarrow").table(columns),
    "arrow of polars": lambda columns: OnlyArrow(pytest.importorskip("polars").DataFrame(columns)),
}


def rows_of(run, batch=20):
    """The number of rows that a run with a public number of rows has read."""
    return round(batch / run.certificate["q"])


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_one_row_of_a_frame_is_one_row_whatever_the_schemas_dialect(kind, dialect, in_folder, cli):
    pathlib.Path("visits.toml").write_text(dialect + COLUMNS)
    frame = frame_of(kind)
    run = cudp.train(frame, schema="visits.toml", size_is_public=True, out="run", **SETTINGS)
    assert rows_of(run) == 101
    assert run.certificate["assumptions"][0].startswith("a row is what the table's quotes and line breaks make one")
    pathlib.Path("usual.toml").write_text(COLUMNS)
    usual = cudp.train(frame, schema="usual.toml", size_is_public=True, **SETTINGS)
    assert (run.path / "release" / "schema.toml").read_bytes() == (usual.path / "release" / "schema.toml").read_bytes()
    assert all((usual.state_dict()[name] == v).all() for name, v in run.state_dict().items())
    if dialect == DIALECTS[0]:
        cli("verify", "run")
        cli("report", "run")
    for settings in ({}, {"schema": "visits.toml"}):
        assert len(run.predict(frame, **settings)) == 101
        assert run.evaluate(frame, **settings)["test_examples"] == 101


def test_a_frame_is_tuned_as_it_is_trained_on(in_folder):
    pathlib.Path("visits.toml").write_text(DIALECTS[0] + COLUMNS)
    plan = cudp.tune(frame_of("pandas"), test_data=frame_of("pandas"), test_data_is_public=True, schema="visits.toml",
                     size_is_public=True, grid={"lr": [0.1, 0.2]}, runs=2, most_runs=8, dry_run=True, **SETTINGS)
    # Two trainings of an epoch, of 101 rows each.
    assert plan["expected_gradients"] == pytest.approx(200)


@pytest.mark.parametrize("dialect", DIALECTS[:3])
def test_a_frame_and_a_file_of_another_dialect_are_not_mixed(dialect, in_folder):
    pathlib.Path("visits.toml").write_text(dialect + COLUMNS)
    pathlib.Path("visits.csv").write_text("tag,x,y,note\nt,0.5,1,fine\n")
    frame = frame_of("pandas")
    for data, test in (("visits.csv", frame), (frame, "visits.csv")):
        with pytest.raises(cudp.InputError, match="test_data: expected it in a DataFrame"):
            cudp.train(data, test_data=test, schema="visits.toml", **SETTINGS)
    pathlib.Path("visits.csv.schema.toml").write_text(dialect + COLUMNS)
    with pytest.raises(cudp.InputError, match="test_data: expected it in a DataFrame"):
        cudp.train("visits.csv", test_data=frame, **SETTINGS)


def test_a_schema_that_a_run_read_from_private_rows_is_that_for_a_frame_too(in_folder):
    frame = frame_of("pandas", note="fine")
    frame.to_csv("visits.csv", sep=";", index=False)
    pathlib.Path("open.toml").write_text(DIALECTS[3] + COLUMNS.replace(", min = 0, max = 1", ""))
    cudp.train("visits.csv", schema="open.toml", accept_private_bounds=True, out="first", **SETTINGS)
    settings = {**SETTINGS, "schema": "first/release/schema.toml"}
    with pytest.raises(cudp.InputError, match="expected public bounds, categories and classes, found those that a run"):
        cudp.train(frame, **settings)
    run = cudp.train(frame, accept_private_bounds=True, **settings)
    assert "bounds, categories or classes were read from private rows" in run.certificate["unsafe_flags"]


@pytest.mark.parametrize("kind", FRAMES)
def test_a_frame_is_scored_by_a_model_of_a_file_of_another_dialect(kind, in_folder):
    pathlib.Path("visits.toml").write_text(DIALECTS[0] + COLUMNS)
    pathlib.Path("visits.csv").write_text("tag,x,y,note\n" + 'u",0.5,1,fine\nt,0.1,0,fine\n' * 50)
    run = cudp.train("visits.csv", schema="visits.toml", size_is_public=True, **SETTINGS)
    assert rows_of(run) == 100
    assert run.certificate["assumptions"][0].startswith("a row is a line of the table")
    frame = frame_of(kind, tag='"')
    assert len(run.predict(frame)) == 101 == run.evaluate(frame)["test_examples"]
    assert len(run.predict(frame, schema="visits.toml")) == 101
    assert len(run.predict("visits.csv")) == 100


def test_texts_are_scored_by_a_model_of_a_file_of_another_dialect(in_folder):
    pathlib.Path("v.txt").write_text("good 1.0 0.5\nbad -1.0 0.2\n")
    pathlib.Path("reviews.tsv").write_text("1\tgood film\n0\ta \"bad\" film\n" * 60)
    settings = {"embedding": "v.txt", "model": "imdb-mean", "store_embedding": True, **SETTINGS, "epsilon": 30}
    run = cudp.train("reviews.tsv", schema="imdb", size_is_public=True, **settings)
    assert rows_of(run) == 120
    texts = ["good", "", " ", '"bad', "bad\n0\tgood", "\0", "# good"]
    assert len(run.predict(texts)) == 7
    assert run.evaluate(texts, [1, 0, 0, 0, 0, 0, 1])["test_examples"] == 7
    # A shipped schema is for frames, too.
    polars = pytest.importorskip("polars")
    columns = [c.split('"')[1] for c in cudp._core.written_schema("imdb", "")["text"].splitlines() if "name = " in c][1:]
    frame = polars.DataFrame({columns[0]: ["1", "0"] * 60, columns[1]: ["good\tfilm\n0\tbad", '"bad'] * 60})
    assert rows_of(cudp.train(frame, schema="imdb", size_is_public=True, **settings)) == 120


def test_a_column_of_its_own_is_scored_row_by_row(in_folder):
    """The program skips blank lines."""
    pathlib.Path("visits.toml").write_text(COLUMNS.replace("max = 1}", "max = 1, fill = 0}"))
    run = cudp.train(frame_of("pandas"), schema="visits.toml", **SETTINGS)
    values = [0.5, None, 0.25, None]
    for kind in ("pandas", "polars"):
        make = pytest.importorskip(kind).DataFrame
        for column in (values, ["0.5", "", "0.25", " "]):
            assert len(run.predict(make({"x": column}), malformed="missing")) == 4


def arrow_columns(pyarrow):
    """Columns of three rows by type; the second row is missing."""
    moment, day = datetime.datetime, datetime.date
    array, money = pyarrow.array, decimal.Decimal
    columns = {str(kind): array([1, None, 100], kind)
               for kind in map(pyarrow.type_for_alias, ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
                                                        "uint64", "float16", "float32", "float64"))}
    columns |= {str(kind): array(["", None, "longer, than \"twelve\" bytes"], kind)
                for kind in (pyarrow.string(), pyarrow.large_string(), pyarrow.string_view())}
    columns |= {str(kind): array([b"a", None, b"\xff"], kind)
                for kind in (pyarrow.binary(), pyarrow.large_binary(), pyarrow.binary(1), pyarrow.binary_view())}
    columns |= {f"time in {unit}": array([-1, None, 1577881800000000001 // 10 ** (9 - 3 * i)], pyarrow.timestamp(unit))
                for i, unit in enumerate(("s", "ms", "us", "ns"))}
    columns |= {f"days in {unit}": array([-1, None, 86400 * 10 ** (3 * i)], pyarrow.duration(unit))
                for i, unit in enumerate(("s", "ms", "us", "ns"))}
    return {
        **columns, "bool": array([True, None, False]), "null": pyarrow.nulls(3),
        "decimal128": array([money("1.50"), None, money("-12345678901234567890123456789.12")], pyarrow.decimal128(38, 2)),
        "decimal256": array([money("1.50"), None, money(-1)], pyarrow.decimal256(70, 5)),
        "date32": array([day(2020, 1, 1), None, day(1, 1, 1)]),
        "date64": array([day(2020, 1, 1), None, day(1960, 2, 3)], pyarrow.date64()),
        "time32": array([5, None, 3600], pyarrow.time32("s")), "time64": array([5, None, 3600], pyarrow.time64("us")),
        "Berlin": array([moment(2020, 6, 1, 12), None, moment(1960, 1, 1)], pyarrow.timestamp("ms", tz="Europe/Berlin")),
        "offset": array([0, None, 1], pyarrow.timestamp("s", tz="-02:30")),
        "dictionary": array(["x", None, "y"]).dictionary_encode(), "of numbers": array([7, None, 5]).dictionary_encode(),
    }


def arrow_lines(table, path):
    assert _cells.write_frame(table, path) == len(table)
    with open(path, encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file))
    path.unlink()
    return lines


def test_a_value_of_arrow_has_the_text_of_pandas(tmp_path):
    pyarrow, pandas = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    for name, column in arrow_columns(pyarrow).items():
        values = pandas.Series(column, dtype=pandas.ArrowDtype(column.type)).tolist()
        expected = [[name], *([_cells.cell_text(value)] for value in values)]
        table = pyarrow.table({name: column})
        assert arrow_lines(table, tmp_path / "t.csv") == expected, name
        assert expected[2] == [""] and expected[1] != expected[3] or name == "null"
        # Each text follows from its own value: rows alone, and many of them in several parts, have the same.
        for i in range(3):
            assert arrow_lines(table.slice(i, 1), tmp_path / "t.csv")[1] == expected[i + 1], name
        many = pyarrow.concat_tables([table.slice(1), table.slice(0, 1)] * 11).combine_chunks()
        assert arrow_lines(many, tmp_path / "t.csv")[1:] == [*expected[2:], expected[1]] * 11, name
    rows = pyarrow.StructArray.from_arrays([pyarrow.array([1, 2, 3])], ["x"], mask=pyarrow.array([False, True, False]))
    missing = arrow_lines(pyarrow.chunked_array([rows, rows.slice(1)]), tmp_path / "t.csv")
    assert missing == [["x"], ["1"], [""], ["3"], [""], ["3"]]
    far = pyarrow.table({"d": pyarrow.array([0, 2**31 - 1], pyarrow.int32()).cast(pyarrow.date32())})
    assert arrow_lines(far, tmp_path / "t.csv")[1:] == [["1970-01-01"], ["unreadable"]]


def test_a_model_of_arrays_takes_a_table_of_arrow_as_an_array(in_folder):
    pyarrow = pytest.importorskip("pyarrow")
    x = np.linspace(0, 1, 200, dtype=np.float64).reshape(100, 2)
    run = cudp.train((x, np.arange(100) % 2), classes=2, **SETTINGS)
    table = pyarrow.table({"a": x[:, 0], "b": x[:, 1]})
    assert (run.predict(table) == run.predict(x)).all()


def test_a_run_on_a_frame_is_not_resumed(in_folder):
    def stop(progress):
        raise KeyError(progress.step)

    pathlib.Path("visits.toml").write_text(COLUMNS)
    frame = frame_of("pandas")
    with pytest.raises(KeyError):
        cudp.train(frame, schema="visits.toml", out="run", on_epoch=stop, **{**SETTINGS, "epochs": 2})
    for data, sentence in ((None, "on a DataFrame, texts or groups, whose table was temporary"),
                           (frame, "data: expected .* a run on a DataFrame cannot be resumed")):
        with pytest.raises(cudp.InputError, match=sentence):
            cudp.load("run").resume(data)


def test_what_arrow_cannot_give_as_a_table_is_refused(in_folder):
    pyarrow = pytest.importorskip("pyarrow")
    pathlib.Path("visits.toml").write_text(COLUMNS)
    for table, sentence in ((pyarrow.table({"x": [[1]]}), "column 'x': expected numbers, .* found Arrow's type '[+]l'"),
                            (pyarrow.chunked_array([[1]]), "expected a table with columns, found Arrow's type 'l'")):
        with pytest.raises(cudp.InputError, match=sentence):
            cudp.train(table, schema="visits.toml", **SETTINGS)

    class Fails:
        def __arrow_c_stream__(self, requested_schema=None):
            raise OSError("cannot read 'patient 7'")

    with pytest.raises(cudp.Error, match="Arrow stream failed with OSError; .* into memory first$"):
        cudp.train(Fails(), schema="visits.toml", **SETTINGS)
    # A reader gives its rows once.
    table = frame_of("pyarrow")
    run = cudp.train(pyarrow.RecordBatchReader.from_batches(table.schema, table.to_batches(7)), schema="visits.toml",
                     size_is_public=True, **SETTINGS)
    assert rows_of(run) == 101
    assert (run.predict(table) == run.predict(frame_of("pandas"))).all()

    def fails():
        yield table.to_batches()[0]
        raise OSError("cannot read 'patient 7'")

    with pytest.raises(cudp.Error, match="Arrow's stream failed with error [0-9]+; .* into memory first$"):
        cudp.train(pyarrow.RecordBatchReader.from_batches(table.schema, fails()), schema="visits.toml", **SETTINGS)


class Bad:
    def __str__(self):
        raise RuntimeError("the cell of patient 7")


def test_a_value_without_a_text_stops_no_run(in_folder, capfd):
    pandas, polars = (pytest.importorskip(kind) for kind in ("pandas", "polars"))
    pathlib.Path("visits.toml").write_text(
        COLUMNS.replace("max = 1}", "max = 1, fill = 0}").replace('"1"]}', '"1"], fill = "0"}'))
    odd = [10**5000, Bad(), decimal.Decimal("1E+99999999999"), float("inf"), b"\xff", "\0"]
    frames = [frame_of("pandas").assign(note=pandas.Series([*[0] * (101 - len(odd)), *odd], dtype=object))]
    far = polars.Series([*[0] * 99, 2**31 - 1, -(2**31)], dtype=polars.Int32).cast(polars.Date)
    frames.append(frame_of("polars").with_columns(far.alias("note")))
    for frame in frames:
        run = cudp.train(frame, schema="visits.toml", malformed="missing", size_is_public=True, **SETTINGS)
        assert rows_of(run) == 101
    assert capfd.readouterr() == ("", "")
    assert [_cells.cell_text(value) for value in odd[:3]] == ["unreadable", "unreadable", "1E+99999999999"]


def test_far_dates_change_no_other_dates_text(tmp_path):
    polars = pytest.importorskip("polars")
    for kind, far in ((polars.Date, 2**31 - 1), (polars.Datetime("us"), -(2**63)), (polars.Datetime("ms"), 2**63 - 1),
                      (polars.Datetime("us", "Europe/Berlin"), 2**63 - 1)):
        def lines(values, name):
            column = polars.Series("d", values, dtype=polars.Int64)
            column = (column.cast(polars.Int32) if kind == polars.Date else column).cast(kind)
            _cells.write_frame(polars.DataFrame({"d": column, "n": 1}), tmp_path / name)
            text = (tmp_path / name).read_text()
            (tmp_path / name).unlink()
            return text.splitlines()

        alone = lines([0, 18262, None, -5], "alone")
        assert lines([0, 18262, None, -5, far], "far") == [*alone, "unreadable,1"]
