"""Runs: training, and trained models with their certificates."""

import dataclasses
import json
import os
import pathlib
import re
import shutil
import tempfile
import weakref

import numpy as np

from . import _arrays, _budget, _cells, _core, _groups, _models
from ._settings import data_alone, plain_settings

_ARRAYS = "arrays.npz"
_TABLE = "cudp-table-"  # folders of temporary tables


class Certificate(dict):
    """The statements of release/privacy.json, in the program's form."""

    @property
    def epsilon(self):
        """Epsilon of everything that is released; None if the file claims no privacy."""
        return self["epsilon"]

    @property
    def delta(self):
        return self["delta"]

    @property
    def for_release(self):
        """Whether the run may be published."""
        return not self.not_for_release

    @property
    def not_for_release(self):
        """The reasons why it may not."""
        return list(self.get("not_for_release") or [])

    @property
    def unit(self):
        """Whose privacy it is: "row", or "N rows by COLUMN"."""
        if "unit" not in self:
            return "row"
        return f"{self['max_rows']} rows by {self['unit']}"

    def to_dp_event(self):
        """What the run released, as an event of dp_accounting. Its accountants compose it for the
        unit's single rows. If the number of rows is private, the training was planned by a noisy
        number, and the statement is the sum of both parts' epsilon and delta: an accountant of all
        releases at once finds less.

        Throws InputError if the releases in the certificate are not all that epsilon covers (the
        result of a tuning, noisy figures of held-out rows, a run that is not finished), or if their
        number followed from earlier ones (a lost key, a filter)."""
        from dp_accounting import dp_event

        for found, why in (
            (self.get("status", "finished") == "not finished", "a run that is not finished"),
            ("tuning" in self, "the result of a tuning: the choice among its trainings is no release of this one"),
            ("epsilon" in (self.get("holdout") or {}), "noisy figures of held-out rows, which are not in the list"),
            (self.get("keys_lost", 0) > 0, "a run whose key was lost: how many releases there are was not fixed"),
            ("filter" in self or self.get("order_fixed_before", False), "releases that a filter admitted one by one"),
        ):
            if found:
                raise _core.InputError(
                    f"to_dp_event: expected a run whose list of releases is all that epsilon bounds, found {why}; "
                    "cudp.compose adds up runs"
                )

        def of(release):
            if "mechanism" not in release:
                noise = dp_event.GaussianDpEvent(release["sigma"])
                if release["q"] == 1.0:
                    return noise, release["steps"]
                return dp_event.PoissonSampledDpEvent(release["q"], noise), release["steps"]
            kind = release["mechanism"]
            if kind == "allocated-gaussian":
                raise _core.InputError(
                    "to_dp_event: expected a mechanism with an event, found random allocation, "
                    "which released versions of dp_accounting (0.6.0) do not have"
                )
            count = release["count"]
            if kind == "gaussian":
                return dp_event.GaussianDpEvent(release["sigma"]), count
            if kind in ("bounded-range", "approximate-dp") and hasattr(dp_event, "EpsilonDeltaDpEvent"):
                return dp_event.EpsilonDeltaDpEvent(release["epsilon"], release.get("delta", 0.0)), count
            raise _core.InputError(f"to_dp_event: expected a mechanism with an event, found {kind}")

        if not self.get("releases"):
            raise _core.InputError("to_dp_event: expected a certificate with releases, found none")
        return dp_event.ComposedDpEvent([dp_event.SelfComposedDpEvent(event, count)
                                         for event, count in map(of, self["releases"])])

    @property
    def unsafe_settings(self):
        return list(self.get("unsafe_flags") or [])


@dataclasses.dataclass(frozen=True)
class Progress:
    """What may be known of a run while it trains: no number of it is private."""

    epoch: float
    step: int
    epsilon: float  #: spent so far
    metrics: dict  #: with numbers of the test set only if that is public


def _stated(settings, name):
    """The value of a setting, also if a file of settings states it; None if it is not stated."""
    if settings.get(name) is not None or settings.get("config") is None:
        return settings.get(name)
    found = re.search(rf'^{name.replace("_", "[-_]")} *= *(.*)$', _text_of(settings["config"]), re.MULTILINE)
    return found and found[1].strip().strip("\"'")


def _text_of(file):
    """The text of a file; "" if there is none: the program says so."""
    try:
        return pathlib.Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError, TypeError):
        return ""


def _takes_missing(settings):
    return _stated(settings, "malformed") == "missing"


def _pair(data, name, settings):
    """(X, y) as two arrays."""
    if len(data) != 2:
        raise _core.InputError(f"{name}: expected (X, y), found something else")
    missing = _takes_missing(settings)
    target = bool(_stated(settings, "target_bounds"))
    return _arrays.features(data[0], "X", missing), _arrays.labels(data[1], "y", target, missing)


def _state_texts(settings):
    """Whether settings, which are public, are those of texts. Then no row decides how the others are read."""
    if any(_stated(settings, name) is not None for name in ("vectors", "embedding", "vocabulary")):
        return True
    return any(str(_stated(settings, name)).startswith(("imdb", "sentences")) for name in ("model", "preset"))


def _is_texts(values, settings=None):
    """Whether values are a list or an array of texts, of which some may be missing or something else. An empty one is,
    since rows of features have two dimensions: with no texts a run ends as with one. settings: of the training. If they
    are those of texts, any list is one; otherwise, and to score rows, its values decide."""
    if isinstance(values, np.ndarray):
        if values.dtype.kind != "O" or values.ndim != 1:
            return values.dtype.kind == "U" and values.ndim == 1
    elif not isinstance(values, (list, tuple)):
        return False
    if settings is not None and _state_texts(settings):
        return True
    return (all(isinstance(v, (str, bytes)) or not hasattr(v, "__len__") for v in values)
            and (len(values) == 0 or any(isinstance(v, str) for v in values)))


def _label_texts(labels, texts):
    """The labels of texts as cells, each by its own value."""
    values = _cells.values_of(labels)
    if values is None or len(values) != len(texts):
        raise _core.InputError("data: expected (texts, labels) of the same length, found others")
    return [_cells.cell_text(label) for label in values]


def _write_texts(texts, labels, path, names=("text", "label")):
    """Writes texts as a table, with labels unless they are None. names: of both columns."""
    with _cells.open_table(path) as file:
        writer = _cells.table_writer(file, 1 if labels is None else 2)
        writer.writerow(names[:1] if labels is None else names)
        for i, text in enumerate(texts):
            cell = _cells.cell_text(text)
            writer.writerow([cell] if labels is None else [cell, labels[i]])
    return path


def _write_vectors(vectors, path):
    """Writes public vectors of words, a dict or (words, array), in GloVe's format."""
    words, rows = (vectors.keys(), vectors.values()) if isinstance(vectors, dict) else vectors
    with open(path, "w", encoding="utf-8") as file:
        for word, row in zip(words, rows):
            if not isinstance(word, str) or not word or any(c.isspace() for c in word):
                raise _core.InputError(f"vectors: expected words without spaces, found {word!r}")
            file.write(" ".join([word, *(repr(float(v)) for v in row)]) + "\n")
    return path


def _texts_as_table(data, test_data, settings, folder):
    """Writes texts, and their public vectors, into the folder. Returns the data with their paths."""
    classes = settings.pop("classes", None)
    if classes is None:
        raise _core.InputError(
            "classes: expected the number of classes or their names with texts, found none: which "
            "labels private texts have is not public"
        )
    if isinstance(classes, (int, np.integer)):
        classes = range(classes)
    names = [_cells.cell_text(c) for c in classes]
    if "schema" in settings:
        raise _core.InputError("schema: expected none with a list of texts, found one")
    schema = os.path.join(folder, "texts.toml")
    with open(schema, "w", encoding="utf-8") as file:
        file.write('name = "texts"\ncolumns = [\n  {name = "text", kind = "text"},\n'
                   f'  {{name = "label", kind = "label", values = {json.dumps(names)}}},\n]\n')
    settings["schema"] = schema
    if "vectors" in settings:
        if "embedding" in settings:
            raise _core.InputError("embedding: expected it once, found vectors beside it")
        settings["embedding"] = _write_vectors(settings.pop("vectors"),
                                               os.path.join(folder, "vectors.txt"))
    # The files are gone after the training, so the model brings the vectors.
    settings.setdefault("store_embedding", True)
    given = []
    for name, pair in (("texts.csv", data), ("texts-test.csv", test_data)):
        if not _is_pair(pair):
            given.append(pair)
            continue
        if len(pair) != 2 or not _is_texts(pair[0], settings):
            raise _core.InputError("data: expected (texts, labels) of the same length, found others")
        given.append(_write_texts(pair[0], _label_texts(pair[1], pair[0]), os.path.join(folder, name)))
    return given


def _frames_as_tables(data, test_data, settings, folder):
    """Writes DataFrames, and tables of Arrow, into the folder, and returns the data with their paths. What the schema
    says of a file's dialect is not for them: the schema of the settings becomes one of the dialect in which they are
    written."""
    frames = [_cells.is_table(data), _cells.is_table(test_data)]
    if not any(frames):
        return data, test_data
    schema = settings.get("schema")
    if not isinstance(schema, (str, os.PathLike, type(None))):
        raise _core.InputError("schema: expected the path of a .toml file, or the name of a schema, found a "
                               f"{type(schema).__name__}")
    written = None
    if schema is not None or not frames[0]:
        beside = os.fspath(data) if isinstance(data, (str, os.PathLike)) else ""
        written = _core.written_schema("" if schema is None else os.fspath(schema), beside)
    if written is None:
        raise _core.InputError(
            "schema: expected a .toml file for a DataFrame, since ranges and values of private "
            "columns are not public, found none; `cudp schema TABLE` writes one to complete"
        )
    if not written["is_stated"]:
        if not (frames[0] and (frames[1] or test_data is None)):
            raise _core.InputError(
                "test_data: expected it in a DataFrame if the training data are in one, and in a file if "
                "not, since the schema's delimiter, quotes, header and skip_prefix are for files alone, "
                "found one of each"
            )
        settings["schema"] = _write_schema(written, folder, schema)
        # If a run released the schema, the program tells by the run's certificate, which is next to it, whether it was
        # read from private rows.
        certificate = os.path.join(os.path.dirname(os.path.realpath(written["source"])), "privacy.json")
        if os.path.isfile(certificate):
            shutil.copyfile(certificate, os.path.join(folder, "privacy.json"))

    def path_of(frame, name):
        path = os.path.join(folder, name)
        _cells.write_frame(frame, path, written["text"])
        return path

    if frames[0]:
        data = path_of(data, "frame.csv")
    if frames[1]:
        test_data = path_of(test_data, "frame-test.csv")
    return data, test_data


def _write_schema(written, folder, name):
    """Writes a schema into the folder, under the name of the file from which it was read."""
    path = os.path.join(folder, os.path.basename(os.fspath(name)).removesuffix(".toml") + ".toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(written["text"])
    return path


def _is_pair(data):
    return isinstance(data, (tuple, list))


def _named(settings, data, test_data):
    """Adds the names of the data to the settings. Returns the arrays of training and test, or
    None."""
    arrays = test_arrays = None
    if _is_pair(data):
        _arrays.check_classes(settings.get("classes"))
        arrays = _pair(data, "data", settings)
        name = str(settings.setdefault("dataset", _ARRAYS))
        if os.path.basename(name) != name or not name.endswith(".npz"):
            raise _core.InputError(
                "dataset: expected a name such as rows.npz for arrays, by which files of the run "
                f"call them, found {name!r}"
            )
    elif data is not None:
        if "dataset" in settings:
            raise _core.InputError("dataset: expected it once, found data beside it")
        if not isinstance(data, (str, os.PathLike)):
            raise _core.InputError("data: expected (X, y), a path, the name of a data set, or a DataFrame with schema, "
                                   f"found a {type(data).__name__}")
        settings["dataset"] = os.fspath(data)
    if _is_pair(test_data):
        if arrays is None:
            raise _core.InputError(
                "test_data: expected a path, as the training data have, found arrays"
            )
        test_arrays = _pair(test_data, "test_data", settings)
        settings["test_data"] = settings["dataset"][: -len(".npz")] + "-test.npz"
    elif test_data is not None:
        settings["test_data"] = os.fspath(test_data)
    return arrays, test_arrays


def _on_row(on_epoch):
    if on_epoch is None:
        return None

    def call(line):
        row = json.loads(line)
        known = {key: row.pop(key) for key in ("epoch", "step", "epsilon")}
        on_epoch(Progress(metrics=row, **known))

    return call


def _remove_if_finished(folder):
    """Removes a temporary folder, unless an interrupted run is in it."""
    run = os.path.join(folder, "run")
    if os.path.isdir(run) and not os.path.exists(os.path.join(run, "private", "result.json")):
        return
    shutil.rmtree(folder, ignore_errors=True)


@data_alone(1, "cudp.train((X, y), epsilon=..., delta=..., classes=...)")
def train(data=None, *, epsilon=None, delta=None, test_data=None, groups=None, max_rows=None,
          bounds=None, out=None, on_epoch=None, verbose=False, **settings):
    """Trains a model with differential privacy, and returns the Run.

    data: (X, y), the path of a data set, or the name of a built-in one; with `preset` none; or a
    DataFrame of pandas or polars, or another table with __arrow_c_stream__ (pyarrow's, duckdb's), with
    the setting `schema`, which is written to a temporary file; or
    (texts, labels) with `classes`, and public vectors of words: `vectors`, a dict of words or (words,
    array), or the setting `embedding`. X is
    [n, features] of float16, float32 or float64, or images [n, height, width] or
    [n, channels, height, width] of uint8 or floats (channels_last=True: [n, height, width,
    channels]). y are classes 0, 1, ...; `classes` says how many. Or y are numbers to predict between
    public bounds, target_bounds=(low, high). The arrays are never changed, and
    must not change meanwhile.
    test_data: rows to test on, in the same form; private unless test_data_is_public=True.
    groups: with (X, y) of features, an id for each row, a whole number or a text: the privacy is that
    of all rows with one id. A column of a DataFrame names the unit. The first max_rows rows of an id are used, a public number. The rows
    become a temporary table, whose features are scaled from their public `bounds`, (low, high), to
    0..1.
    out: the folder of the run; None: a temporary one, which goes with the Run.
    on_epoch: called with a Progress after each epoch. An exception in it stops the run.
    settings: those of `cudp train`, with "_" for "-".

    Ctrl-C stops at a checkpoint and raises InterruptedRun, a KeyboardInterrupt; load(out).resume(data) goes on.
    Raises InputError, a ValueError, and BudgetError.
    """
    return train_within(_budget.Charged(), data, epsilon=epsilon, delta=delta,
                        test_data=test_data, groups=groups, max_rows=max_rows, bounds=bounds,
                        out=out, on_epoch=on_epoch, verbose=verbose, **settings)


def _check_groups(data, groups, max_rows, bounds, settings):
    """Throws InputError if a unit of privacy, or a part of one, is stated where it has no effect."""
    if groups is None:
        if max_rows is not None or bounds is not None:
            name = "bounds" if max_rows is None else "max_rows"
            raise _core.InputError(
                f"{name}: expected with groups only, an id for each row of (X, y), found it alone"
            )
    elif not _is_pair(data) or (len(data) == 2 and _is_texts(data[0], settings)):
        raise _core.InputError(
            "groups: expected with (X, y) of features only, since a table's schema states its unit "
            "(unit and max_rows), found other data"
        )


def train_within(charged, data, *, test_data=None, groups=None, max_rows=None, bounds=None, out=None,
                 on_epoch=None, verbose=False, _pictures=True, **settings):
    """Trains within the budgets of `charged`, a _budget.Charged. _pictures: whether gnuplot draws the
    results into the folder of the run."""
    _check_groups(data, groups, max_rows, bounds, settings)
    _arrays.check_apart(data, test_data)
    frames = None
    texts = _is_pair(data) and len(data) == 2 and _is_texts(data[0], settings)
    if texts or groups is not None or _cells.is_table(data) or _cells.is_table(test_data):
        frames = tempfile.mkdtemp(prefix=_TABLE)
    try:
        if texts:
            data, test_data = _texts_as_table(data, test_data, settings, frames)
        elif groups is not None:
            tested = _pair(test_data, "test_data", settings) if _is_pair(test_data) else test_data
            data, test_data = _groups.as_table(_pair(data, "data", settings), tested, groups, max_rows, bounds,
                                               settings, frames)
        elif frames is not None:
            data, test_data = _frames_as_tables(data, test_data, settings, frames)
        return _train_on(charged, data, test_data, out, on_epoch, verbose, _pictures, settings)
    finally:
        if frames is not None:
            shutil.rmtree(frames, ignore_errors=True)


def _train_on(charged, data, test_data, out, on_epoch, verbose, pictures, settings):
    arrays, test_arrays = _named(settings, data, test_data)
    keeper = None
    if out is None:
        keeper = tempfile.mkdtemp(prefix="cudp-")
        out = os.path.join(keeper, "run")
    settings["out"] = os.fspath(out)
    files = None
    try:
        if isinstance(settings.get("model"), dict):
            files = tempfile.mkdtemp(prefix="cudp-model-")
            _use_model(settings, files)
        path = _core.train(plain_settings(settings), arrays, test_arrays, _on_row(on_epoch),
                           bool(verbose), charged.files, pictures, keeper is not None)
    except BaseException:
        if keeper is not None:
            _remove_if_finished(keeper)
        raise
    finally:
        if files is not None:
            shutil.rmtree(files, ignore_errors=True)
    return Run(path, _keeper=keeper)


def _use_model(settings, folder):
    """Writes the files of a model that is a dict, and names them in the settings."""
    model = settings["model"]
    settings["model"] = _models.write_model(model, folder)
    weights = getattr(model, "weights", None)
    if weights is None:
        return
    if "init" in settings:
        raise _core.InputError("init: expected it once, found it beside public_weights=True")
    settings["init"] = os.path.join(folder, "public.safetensors")
    _models.write_tensors(weights, settings["init"])


@data_alone(2, "cudp.resume(run, (X, y))")
def resume(run, data=None, *, test_data=None, on_epoch=None, verbose=False, **settings):
    """Goes on with an interrupted run, and returns the Run. run: its folder. data, test_data: the
    arrays that it began with; none if it began with a path or a name. Within a Budget it must be a run
    that began in it."""
    path = os.fspath(getattr(run, "path", run))
    arrays = test_arrays = None
    if data is not None:
        if not _is_pair(data):
            raise _core.InputError("data: expected (X, y), or none for a run that began with a path or a name; found "
                                   "something else; a run on a DataFrame cannot be resumed")
        _arrays.check_apart(data, test_data)
        begun = _begun_with(path)
        arrays = _pair(data, "data", begun)
        if test_data is not None:
            test_arrays = _pair(test_data, "test_data", begun)
    charged = _budget.Charged()
    try:
        folder = _core.resume(path, plain_settings(settings), arrays, test_arrays, _on_row(on_epoch),
                              bool(verbose), charged.files)
    except _core.InputError as e:
        if f"/{_TABLE}" not in str(e):
            raise
        raise _core.InputError(f"{path}: expected a run on arrays, a path or a name, found one on a DataFrame, texts or "
                               "groups, whose table was temporary and is gone; train anew") from None
    return Run(folder)


def _begun_with(run):
    """The settings of an interrupted run that say how its arrays are read."""
    for folder in ("release", "private"):
        file = os.path.join(run, folder, "config.toml")
        if os.path.exists(file):
            return {"config": file}
    return {}


def load(path):
    """Opens a run's folder, also of a run that was interrupted, its release folder or a model's file."""
    return Run(path)


def _read_metadata(file):
    """The metadata of a safetensors file, a dict of texts."""
    with open(file, "rb") as content:
        header = json.loads(content.read(int.from_bytes(content.read(8), "little")))
    return header.get("__metadata__", {})


def _read_tensors(file):
    """The tensors of a safetensors file, by name, in the order of their bytes."""
    data = file.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        values = np.frombuffer(data[begin:end], dtype="<f4")
        tensors[name] = values.reshape(entry["shape"]).astype(np.float32)
    return tensors


def _rounded_up(value, digits):
    """A number in words, with so many digits, never below its value: what is stated of a certificate holds."""
    import decimal

    context = decimal.Context(prec=digits, rounding=decimal.ROUND_CEILING)
    return f"{float(context.create_decimal(repr(float(value)))):.{digits}g}"


class Run:
    """A trained model, with the certificate of its privacy."""

    def __init__(self, path, *, _keeper=None):
        self.path = pathlib.Path(path)  #: the run's folder
        self._keep(_keeper)
        self._read()

    def _keep(self, folder):
        """Removes a temporary folder when this object goes."""
        self._folder = folder
        if folder is not None:
            weakref.finalize(self, _remove_if_finished, folder)

    def _read(self):
        self._certificate = None
        is_interrupted = self._model_file() is None and _core.is_interrupted(os.fspath(self.path))
        self._model = None if is_interrupted else _core.Model(os.fspath(self.path), "")
        schema = self._released("schema.toml") if self.is_finished and self._model.reads_table else None
        self._grouped = None  # number of features, if the run was made with groups
        if schema is not None:
            self._grouped = _groups.features_of(schema.read_text(encoding="utf-8"))

    @property
    def _core(self):
        self._check_finished()
        return self._model

    def _check_finished(self):
        if not self.is_finished:
            raise _core.InputError(f"{self.path}: expected a finished run, found one that was interrupted; its method "
                                   "resume continues it")

    @property
    def is_finished(self):
        """Whether the training ended. Otherwise it was interrupted, and `resume` continues it."""
        return self._model is not None

    def resume(self, data=None, *, test_data=None, on_epoch=None, verbose=False, **settings):
        """Continues the training if it was interrupted, and returns this Run. data, test_data: the arrays with which
        it began; None if it began with a path or a name. A finished run stays as it is."""
        resume(self, data, test_data=test_data, on_epoch=on_epoch, verbose=verbose, **settings)
        self._read()
        return self

    def _released(self, name):
        """The path of a released file, or of the owner's copy of a run without privacy."""
        if self.path.is_file():
            folders = [self.path.parent]
        else:  # never the parent of a run's folder, which may be that of another run
            folders = [self.path / "release", self.path / "private", self.path]
        for folder in folders:
            if (folder / name).is_file():
                return folder / name
        return None

    def _model_file(self):
        return self.path if self.path.is_file() else self._released("model.safetensors")

    def _table_to_score(self, write, settings, folder):
        """Returns the path of a table that `write`(its path, its schema) makes, the settings, and the number of rows,
        which `write` returns. The table has the dialect of tables that Python writes, whatever that of the
        training's."""
        written, path = None, os.path.join(folder, "table.csv")
        stated = settings.get("schema")
        if isinstance(stated, (str, os.PathLike)):
            written = _core.written_schema(os.fspath(stated), "")
        elif text := _read_metadata(self._model_file()).get("schema"):
            written = _core.written_schema_of(text, os.fspath(self.path))
        if written is not None and not written["is_stated"]:
            settings = {**settings, "schema": _write_schema(written, folder, stated or "schema")}
        return path, settings, write(path, written or {})

    @property
    def certificate(self):
        """The Certificate; None for a model without one, or one trained without privacy."""
        if self._certificate is None:
            file = self._released("privacy.json")
            if file is None:
                return None
            self._certificate = Certificate(
                json.loads(_core.certificate(file.read_text(), os.fspath(file)))
            )
        return self._certificate

    @property
    def metrics(self):
        """The released rows of metrics, one an epoch. They have figures of the test set only if it
        is public."""
        file = self._released("metrics.jsonl")
        return [] if file is None else [json.loads(line) for line in file.read_text().splitlines()]

    @property
    def private_metrics(self):
        """The rows of metrics with exact figures of a private test set, for the owner alone; None
        if there are none."""
        file = self.path / "private" / "metrics.jsonl"
        if not file.is_file():
            return None
        return [json.loads(line) for line in file.read_text().splitlines()]

    @property
    def classes(self):
        """The names of the classes, or their numbers; None if the model predicts a number."""
        if self._core.predicts_target:
            return None
        names = self._core.class_names if self._grouped is None else None
        return np.array(names) if names else np.arange(self._core.classes)

    def _with_table(self, data, y, settings, score):
        """Calls score(path, settings, number of rows) if data must be written as a table first; else
        score(None, settings, None)."""
        # A model of arrays takes a table of Arrow as the array that NumPy makes of it.
        is_of_table = self._core.reads_table and self._grouped is None
        if _cells.is_frame(data) or (is_of_table and _cells.is_table(data)):
            def write(path, schema):
                return _cells.write_frame(data, path, schema.get("text", ""))
        elif _is_texts(data):
            labels = None if y is None else _label_texts(y, data)

            def write(path, schema):
                _write_texts(data, labels, path, [schema.get("examples") or "text", schema.get("label") or "label"])
                return len(data)
        elif self._grouped is not None and not isinstance(data, (str, os.PathLike)):
            missing = _takes_missing(settings)
            x = _arrays.features(data, "X", missing)
            labels = None if y is None else _arrays.labels(y, "y", self._core.predicts_target, missing)

            def write(path, schema):
                _groups.write_scored(x, labels, self._grouped, path)
                return len(x)
        else:
            return score(None, settings, None)
        with tempfile.TemporaryDirectory(prefix=_TABLE) as folder:
            return score(*self._table_to_score(write, settings, folder))

    def _outputs(self, data, settings):
        def score(table, settings, rows):
            if table is not None:
                out = self._core.predict(plain_settings({"dataset": table, **settings}), None)
                if len(out["logits"]) != rows:
                    raise _core.Error("predict: expected an output for each row, found fewer or more")
                return out
            return self._core.predict(*self._scored(data, settings))

        return self._with_table(data, None, settings, score)

    def _scored(self, data, settings, y=None):
        if isinstance(data, (str, os.PathLike)):
            return plain_settings({"dataset": data, **settings}), None
        missing = _takes_missing(settings)
        x = _arrays.features(data, "X", missing)
        if y is not None:
            y = _arrays.labels(y, "y", self._core.predicts_target, missing)
        return plain_settings(settings), (x, y)

    def predict(self, data, **settings):
        """The predicted class of each row (a name, if the classes have names), or the predicted
        number. data: an array, or the path of a data set. settings: those of `cudp predict`."""
        out = self._outputs(data, settings)
        if "values" in out:
            return out["values"]
        return self.classes[out["classes"]]

    def predict_proba(self, data, **settings):
        """The probability of each class, [n, classes]."""
        if not self._core.gives_probabilities:
            raise _core.InputError(
                f"predict_proba: expected a model that gives probabilities, found "
                f"{self._core.name}"
            )
        return self._outputs(data, settings)["probabilities"]

    def logits(self, data, **settings):
        """The outputs of the network, [n, outputs]."""
        return self._outputs(data, settings)["logits"]

    def evaluate(self, data, y=None, **settings):
        """Exact figures of the model on labelled rows, as `cudp eval --json` prints. No certificate
        covers them: do not publish those of private rows."""
        if isinstance(data, (tuple, list)) and y is None and not _is_texts(data):
            data, y = data
        if y is None and not _cells.is_table(data) and not isinstance(data, (str, os.PathLike)):
            raise _core.InputError("y: expected one label for each row, found none; the data are (X, y) or "
                                   "(texts, labels) of the same length")

        def score(table, settings, _):
            if table is not None:
                return self._core.evaluate(plain_settings({"dataset": table, **settings}), None)
            return self._core.evaluate(*self._scored(data, settings, y))

        return json.loads(self._with_table(data, y, settings, score))

    def state_dict(self):
        """The parameters by PyTorch's names, in its layouts, as NumPy arrays."""
        self._check_finished()
        return _read_tensors(self._model_file())

    def to_torch(self):
        """An nn.Module of PyTorch that computes the program's logits from the rows that it was
        trained on; images of uint8 are pixels."""
        return _models.to_torch(json.loads(self._core.description()), self.state_dict(),
                                os.fspath(self.path))

    def _privacy_text(self):
        if not self.is_finished:
            return "interrupted, not finished: resume() continues it"
        c = self.certificate
        if c is None or c.epsilon is None:
            return "no certificate: not for release"
        text = f"epsilon {_rounded_up(c.epsilon, 4)} at delta {_rounded_up(c.delta, 3)} for each {c.unit}"
        if c.for_release:
            return text + ", may be released"
        return text + ", NOT for release: " + "; ".join(c.not_for_release)

    def _model_text(self, joint):
        return f"{self._core.name}{joint}{self._core.parameters} parameters" if self.is_finished else "without a model"

    def __repr__(self):
        return f"<cudp.Run {self._model_text(' of ')}: {self._privacy_text()}; {self.path}>"

    def _repr_html_(self):
        import html

        rows = [("model", self._model_text(", ")),
                ("privacy", self._privacy_text()), ("folder", os.fspath(self.path))]
        cells = "".join(f"<tr><th>{name}</th><td>{html.escape(text)}</td></tr>"
                        for name, text in rows)
        return f"<table>{cells}</table>"

    def __getstate__(self):
        """What may be published of the run: private files stay where they are."""
        release = self.path / "release"
        folder = release if release.is_dir() else self.path
        if folder.is_file():
            return {"model.safetensors": folder.read_bytes()}
        files = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
        if "model.safetensors" not in files:
            raise _core.InputError(
                f"{self.path}: expected a released model to pickle, found none: a run without "
                "privacy keeps its model in private/"
            )
        return files

    def __setstate__(self, files):
        keeper = tempfile.mkdtemp(prefix="cudp-")
        release = pathlib.Path(keeper) / "release"
        release.mkdir()
        for name, content in files.items():
            (release / os.path.basename(name)).write_bytes(content)
        self.path = release
        self._keep(keeper)
        self._read()
