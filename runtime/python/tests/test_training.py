import csv
import gc
import os
import pathlib
import pickle
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import cudp
from conftest import released

BUDGET = {"epsilon": 3.0, "delta": 1e-5}
SHORT = {**BUDGET, "classes": 2, "epochs": 2, "batch": 128, "seed": 5}


def words(settings):
    out = []
    for key, value in settings.items():
        flag = f"--{key.replace('_', '-')}"
        out += [flag] if value is True else [flag, str(value)]
    return out


def train_both(cli, data, settings, test_data=None):
    """The same run by the program, from a .npz file, and from arrays."""
    np.savez("rows.npz", x=data[0], y=data[1])
    more = []
    if test_data is not None:
        np.savez("rows-test.npz", x=test_data[0], y=test_data[1])
        more = ["--test-data", "rows-test.npz"]
    cli("train", "--dataset", "rows.npz", "--out", "theirs", *more, *words(settings))
    os.rename("rows.npz", "elsewhere.npz")  # the arrays alone are read
    run = cudp.train(data, dataset="rows.npz", test_data=test_data, out="ours", **settings)
    return pathlib.Path("theirs"), run


@pytest.mark.parametrize("more", [
    {}, {"method": "objpert"}, {"normalise": "unit"}, {"size_is_public": True},
    {"holdout": 0.2, "holdout_epsilon": 1.0, "holdout_delta": 1e-6}, {"malformed": "missing"},
], ids=str)
def test_the_same_bytes_as_the_programs_for_features(cli, in_folder, rows, more):
    settings = {**SHORT, **more}
    if "method" in more:
        settings = {key: settings[key] for key in (*BUDGET, "classes", "seed", "method")}
    theirs, run = train_both(cli, rows, settings)
    assert released(theirs) == released(run)


def test_the_same_bytes_for_images(cli, in_folder, images):
    x, y = images
    settings = {**SHORT, "batch": 32, "test_data_is_public": True}
    theirs, run = train_both(cli, (x[:300], y[:300]), settings, (x[300:].copy(), y[300:].copy()))
    assert "cnn" in repr(run)
    assert released(theirs) == released(run)
    assert "test_accuracy" in run.metrics[-1]


def test_the_same_bytes_for_a_number_to_predict(cli, in_folder, rows):
    x, _ = rows
    y = 3.0 * x[:, 0] + x[:, 1]
    settings = {**SHORT, "target_bounds": "-12,12"}
    del settings["classes"]
    theirs, run = train_both(cli, (x, y), settings)
    assert released(theirs) == released(run)
    assert run.predict(x).dtype == np.float64 and run.classes is None
    whole = np.round(y)
    expected = cudp.train((x, whole), **settings).predict(x)
    for kind in (np.float16, np.float64, np.int32):
        assert (cudp.train((x, whole.astype(kind)), **settings).predict(x) == expected).all()


def test_the_same_bytes_for_a_table(cli, in_folder):
    table(in_folder)
    settings = {**BUDGET, "seed": 5, "schema": "t.toml", "epochs": 3}
    cli("train", "--dataset", "t.csv", "--out", "theirs", *words(settings))
    run = cudp.train("t.csv", out="ours", **settings)
    assert released("theirs") == released(run)
    assert list(run.predict("t.csv", schema="t.toml")[:2]) == ["no", "no"]
    with pytest.raises(cudp.InputError, match="a table"):
        run.predict(np.zeros((3, 1), np.float32))


def test_the_same_bytes_for_texts(cli, in_folder):
    """A list of texts is the program's table of these names; so is its path."""
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 2, size=600)
    said = np.array([["bad", "awful"], ["good", "great"]])
    texts = [f'a {said[label, rng.integers(2)]} film, "x"\nand more' for label in labels]
    vectors = {"good": [1.0, 0.5], "great": [0.9, 0.3], "bad": [-1.0, 0.2], "awful": [-0.8, 0.1]}
    with open("texts.csv", "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([("text", "label"), *zip(texts, labels)])
    pathlib.Path("texts.toml").write_text(textwrap.dedent("""
        name = "texts"
        columns = [
          {name = "text", kind = "text"},
          {name = "label", kind = "label", values = ["0", "1"]},
        ]
        """))
    pathlib.Path("vectors.txt").write_text(
        "".join(" ".join([word, *map(str, row)]) + "\n" for word, row in vectors.items()))
    settings = {**BUDGET, "seed": 5, "model": "imdb-mean", "epochs": 3, "batch": 128}
    files = {"schema": "texts.toml", "embedding": "vectors.txt", "store_embedding": True}
    cli("train", "--dataset", "texts.csv", "--out", "theirs", *words({**settings, **files}))
    expected = released("theirs")
    assert released(cudp.train("texts.csv", out="ours", **settings, **files)) == expected
    assert released(cudp.train((texts, labels), classes=2, vectors=vectors, **settings)) == expected


def table(folder):
    (folder / "t.csv").write_text(
        "age,ill\n" + "".join(f"{i % 90},{'yes' if i % 90 > 60 else 'no'}\n" for i in range(2000)))
    (folder / "t.toml").write_text(textwrap.dedent("""
        columns = [
          {name = "age", kind = "numeric", min = 0, max = 100},
          {name = "ill", kind = "label", values = ["no", "yes"]},
        ]
        """))


def layouts(x):
    backwards = x[::-1][::-1]
    wide = np.zeros((len(x), 2 * x.shape[1]), np.float32)
    wide[:, ::2] = x
    raw = bytearray(b"_" + x.tobytes())
    unaligned = np.frombuffer(raw, np.uint8)[1:].view(np.float32).reshape(x.shape)
    read_only = x.copy()
    read_only.setflags(write=False)
    return {"backwards": backwards, "columns": np.asfortranarray(x), "strided": wide[:, ::2],
            "unaligned": unaligned, "read-only": read_only, "float64": x.astype(np.float64),
            "big-endian": x.astype(">f4"), "list": x.tolist()}


def test_layouts_and_types_do_not_matter(rows):
    x, y = rows
    x = x.astype(np.float16).astype(np.float32)
    expected = released(cudp.train((x, y), **SHORT))
    for name, other in {**layouts(x), "float16": x.astype(np.float16)}.items():
        assert released(cudp.train((other, y), **SHORT)) == expected, name
    for kind in (np.uint8, np.int8, np.int16, np.uint16, np.int32, np.uint32, np.uint64, bool, ">i8"):
        assert released(cudp.train((x, y.astype(kind)), **SHORT)) == expected, kind


def test_channels_last(cli, in_folder, images):
    x, y = images
    colour = np.stack([x, x // 2, 255 - x], axis=1)
    settings = {**SHORT, "batch": 32}
    first = cudp.train((colour, y), **settings)
    rows_last = np.ascontiguousarray(colour.transpose(0, 2, 3, 1))
    theirs, last = train_both(cli, (rows_last, y), {**settings, "channels_last": True})
    assert released(theirs) == released(last)
    weights = last.state_dict()
    assert all((values == weights[name]).all() for name, values in first.state_dict().items())
    assert (first.predict(colour) == last.predict(colour.transpose(0, 2, 3, 1), channels_last=True)).all()


def test_arrays_are_not_changed_and_are_let_go(rows):
    x, y = rows
    before = x.copy(), y.copy()
    owners = sys.getrefcount(x)
    run = cudp.train((x, y), **SHORT, normalise="unit")
    run.predict(x)
    assert (x == before[0]).all() and (y == before[1]).all()
    gc.collect()
    assert sys.getrefcount(x) == owners


def test_float32_is_used_where_it_is():
    """The peak of the memory is below that of a copy."""
    script = """
        import resource, sys, numpy as np, cudp
        x = np.zeros((60000, 512), np.float32); x[:, 0] = np.arange(60000) % 2 - 0.5
        y = (x[:, 0] > 0).astype(np.uint8)
        small = (x[:2000].copy(), y[:2000].copy())
        cudp.train(small, epsilon=3, delta=1e-5, classes=2, steps=2, batch=512)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        cudp.train((x, y), epsilon=3, delta=1e-5, classes=2, steps=2, batch=512)
        more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
        assert more < 0.2 * x.nbytes, (more, x.nbytes)
        """
    python(script)


def python(script, **more):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True,
                          text=True, check=False, **more)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("change, sentence", [
    ({"bacth": 3}, "the nearest is 'batch'"),
    ({"classes": None}, "expected classes=N"),
    ({"epsilon": None}, "privacy budget"),
    ({"delta": 0.5}, "^delta: expected below 0.1 .allow_weak_privacy=True."),
    ({"epochs": 1.5}, "^epochs: "),
    ({"epochs": [1]}, "^epochs: "),
    ({"ranks": 2}, "^ranks: expected 1 in Python"),
    ({"json": True}, "^json: "),
    ({"resume": "x"}, "^resume: "),
    ({"dataset": "mnist"}, "rows.npz"),
    ({"dataset": "a/b.npz"}, "rows.npz"),
    ({"schema": "t.toml"}, "no schema"),
])
def test_wrong_settings_are_refused(rows, change, sentence, capfd):
    with pytest.raises(cudp.InputError, match=sentence):
        cudp.train(rows, **{**SHORT, **change})
    assert capfd.readouterr() == ("", "")


def nan_in(x):
    x = x.copy()
    x[3, 2] = np.nan
    return x


@pytest.mark.parametrize("make, sentence", [
    (lambda x, y: (nan_in(x), y), "X, row 3, column 2: expected finite"),
    (lambda x, y: (nan_in(x).astype(np.float64), y), "X, row 3, column 2: expected finite"),
    (lambda x, y: (x, y + 1), "label of row"),
    (lambda x, y: (x, y - 1), "negative"),
    (lambda x, y: (x, y.astype(float)), "whole numbers"),
    (lambda x, y: (x, y[:-1]), "fewer"),
    (lambda x, y: (x[:-1], y), "more"),
    (lambda x, y: (x[:, 0], y), "matrix"),
    (lambda x, y: (x.astype(int), y), "numbers of type"),
    (lambda x, y: (x.astype(str), y), "an array of numbers"),
    (lambda x, y: (x, y, y), "expected \\(X, y\\)"),
    (lambda x, y: (x, None), "an array of numbers"),
    (lambda x, y: (np.float32(1), y), "array of rows"),
])
def test_wrong_arrays_are_refused_without_their_size(rows, make, sentence, capfd):
    with pytest.raises(cudp.InputError, match=sentence) as refused:
        cudp.train(make(*rows), **SHORT)
    assert str(len(rows[0])) not in str(refused.value)
    assert str(len(rows[0]) - 1) not in str(refused.value)
    assert capfd.readouterr() == ("", "")


def test_test_rows_in_memory_of_the_training_rows_are_refused(rows):
    x, y = rows
    for test in [(x, y.copy()), (x.copy(), y), (x[10:20], y[10:20].copy()), (x.T.T, y.copy())]:
        with pytest.raises(cudp.InputError, match="memory of their own"):
            cudp.train((x, y), test_data=test, test_data_is_public=True, **SHORT)
    half = len(x) // 2
    cudp.train((x[:half], y[:half]), test_data=(x[half:], y[half:]), **SHORT)


def test_private_test_rows_stay_private(rows):
    x, y = rows
    seen = []
    run = cudp.train((x[:1000], y[:1000]), test_data=(x[1000:], y[1000:]), on_epoch=seen.append, **SHORT)
    assert len(seen) == 2 and seen[-1].epsilon == run.metrics[-1]["epsilon"]
    assert not any("test" in key for row in [*run.metrics, *(p.metrics for p in seen)] for key in row)
    assert "test_accuracy" in run.private_metrics[-1]
    assert run.certificate["test_set"].startswith("not public")


def test_classes_read_from_rows_are_marked(rows):
    run = cudp.train(rows, accept_private_bounds=True, **BUDGET, classes=2, epochs=1)
    assert not run.certificate.for_release
    assert "private rows" in repr(run)


def test_a_run_without_a_seed_may_be_released_and_is_verified(cli, in_folder, rows):
    run = cudp.train(rows, out="mine", **BUDGET, classes=2, epochs=1)
    assert run.certificate.for_release and run.certificate.unit == "row"
    assert "may be released" in repr(run) and "epsilon 3" in run._repr_html_()
    assert run.certificate.epsilon <= 3.0
    cli("verify", "mine")


def test_several_runs_together_cost_what_the_program_says(cli_json, in_folder, rows):
    for name in ("a", "b"):
        cudp.train(rows, out=name, **BUDGET, classes=2, epochs=1)
    assert cudp.compose("a", cudp.load("b"), delta=1e-5) == cli_json("account", "a", "b", "--delta", "1e-5")


def test_a_path_with_a_comma_is_not_two_runs(rows, in_folder):
    for name in ("a", "b", "a,b"):
        cudp.train(rows, out=name, **SHORT)
    assert [run["certificate"] for run in cudp.compose("a,b", "a", delta=1e-5).runs] == [
        "a,b/release/privacy.json", "a/release/privacy.json"]
    with pytest.raises(cudp.InputError, match="compose: expected paths without a comma, found 'a,b'"):
        cudp.compose("a", "a,b")


def test_a_run_within_the_folder_of_another_has_no_certificate_of_it(rows, in_folder):
    cudp.train(rows, out="outer", **SHORT)
    inner = cudp.train(rows, out="outer/release/inner", method="sgd", classes=2, epochs=1)
    assert inner.certificate is None and "not for release" in repr(inner)
    for path in ("outer", "outer/release", "outer/release/model.safetensors"):
        assert cudp.load(path).certificate.epsilon == pytest.approx(3.0)


def test_nothing_is_printed(rows, capfd):
    cudp.train(rows, **SHORT).predict(rows[0])
    assert capfd.readouterr() == ("", "")
    cudp.train(rows, verbose=True, **SHORT)
    assert "epsilon" in capfd.readouterr().err


def test_predictions_are_the_programs(cli, in_folder, rows):
    x, y = rows
    np.savez("rows.npz", x=x, y=y)
    run = cudp.train(rows, out="mine", **SHORT)
    cli("predict", "mine", "--dataset", "rows.npz", "--out", "p.csv")
    theirs = np.genfromtxt("p.csv", delimiter=",", names=True)
    assert (theirs["prediction"] == run.predict(x)).all()
    assert (theirs["p_1"].astype(np.float32) == run.predict_proba(x)[:, 1]).all()
    logits = x @ run.state_dict()["linear.weight"][0] + run.state_dict()["linear.bias"][0]
    assert np.allclose(logits, run.logits(x)[:, 0], atol=1e-5)
    assert run.evaluate(x, y)["test_accuracy"] == np.mean(run.predict(x) == y)
    with pytest.raises(cudp.InputError, match="features|shape"):
        run.predict(x[:, :5])


def test_kinds_of_numbers_are_not_mixed(images):
    x, y = images
    run = cudp.train((x, y), **{**SHORT, "batch": 32})
    with pytest.raises(cudp.InputError, match="floating-point"):
        run.predict(x.astype(np.float32))


def test_load_pickle_and_temporary_folders(rows, in_folder):
    run = cudp.train(rows, **SHORT)
    folder = run.path
    copy = pickle.loads(pickle.dumps(run))
    expected = run.predict_proba(rows[0])
    assert (copy.predict_proba(rows[0]) == expected).all()
    assert copy.certificate == run.certificate
    loaded = cudp.load(folder / "release" / "model.safetensors")
    assert (loaded.predict_proba(rows[0]) == expected).all() and loaded.certificate == run.certificate
    del run, loaded
    gc.collect()
    assert not folder.exists()
    with pytest.raises(cudp.InputError):
        cudp.load(folder)


def test_a_run_without_privacy_says_so(rows):
    run = cudp.train(rows, method="sgd", classes=2, epochs=2)
    assert run.certificate is None and "not for release" in repr(run)
    assert len(run.metrics) == 2 and run.predict(rows[0]).shape == rows[1].shape
    with pytest.raises(cudp.InputError, match="without privacy"):
        pickle.dumps(run)


def test_two_fits_leave_nothing_of_each_other(rows):
    x, y = rows
    alone = released(cudp.train((x, y), **SHORT))
    cudp.train((x[::2], 1 - y[::2]), **{**SHORT, "seed": 9, "method": "dpsgd", "lr": 2.0})
    with pytest.raises(cudp.InputError):
        cudp.train((x, y + 5), **SHORT)
    assert released(cudp.train((x, y), **SHORT)) == alone


def test_two_threads_at_once(rows):
    x, y = rows
    alone = released(cudp.train((x, y), **SHORT))
    found = {}

    def fit(number):
        found[number] = released(cudp.train((x, y), **SHORT))

    threads = [threading.Thread(target=fit, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(found[i] == alone for i in range(4))


def test_the_lock_of_the_interpreter_is_released(rows):
    counted = 0
    done = threading.Event()

    def fit():
        cudp.train(rows, **{**SHORT, "epochs": 60})
        done.set()

    thread = threading.Thread(target=fit)
    thread.start()
    while not done.is_set():
        counted += 1
        time.sleep(0.001)
    thread.join()
    assert counted > 20


def test_an_exception_in_on_epoch_stops_the_run(rows, in_folder):
    def stop(progress):
        raise KeyError(progress.step)

    with pytest.raises(KeyError):
        cudp.train(rows, out="mine", on_epoch=stop, **{**SHORT, "epochs": 6})
    assert not pathlib.Path("mine/private/result.json").exists()
    again = cudp.resume("mine", rows)
    whole = cudp.train(rows, out="whole", **{**SHORT, "epochs": 6})
    assert released(again) == released(whole)
    with pytest.raises(cudp.InputError, match="other data|expected"):
        cudp.resume("mine", (rows[0][:-1], rows[1][:-1]), lr=7.0)


def test_a_run_resumes_on_its_own_data_only(rows, in_folder):
    def stop(progress):
        raise KeyError(progress.step)

    with pytest.raises(KeyError):
        cudp.train(rows, out="mine", on_epoch=stop, **{**SHORT, "epochs": 6})
    other = rows[0].copy()
    other[0, 0] += 1
    with pytest.raises(cudp.InputError, match="other data"):
        cudp.resume("mine", (other, rows[1]))
    with pytest.raises(cudp.InputError, match="no such file"):
        cudp.resume("mine")


def test_a_loaded_run_resumes(rows, in_folder, capfd):
    def stop(progress):
        raise KeyError(progress.step)

    settings = {**SHORT, "epochs": 4}
    with pytest.raises(KeyError):
        cudp.train(rows, out="mine", on_epoch=stop, **settings)
    run = cudp.load("mine")
    assert not run.is_finished and run.certificate["status"] == "not finished"
    for text in (repr(run), run._repr_html_()):
        assert "not finished" in text and "may be released" not in text
    for use in (lambda: run.predict(rows[0]), lambda: run.evaluate(*rows), run.state_dict, run.to_torch,
                lambda: run.classes):
        with pytest.raises(cudp.InputError, match="found one that was interrupted"):
            use()
    other = rows[0].copy()
    other[0, 0] += 1
    with pytest.raises(cudp.InputError, match="expected the training data that the run began with, found other data"):
        run.resume((other, rows[1]))
    assert not run.is_finished
    seen = []
    assert run.resume(rows, on_epoch=seen.append) is run
    assert run.is_finished and run.certificate["status"] == "finished" and seen[-1].epoch == 4
    assert released(run) == released(cudp.train(rows, out="whole", **settings))
    assert run.predict(rows[0]).shape == rows[1].shape
    assert capfd.readouterr().err == ""
    before = released(run)
    assert run.resume(rows, verbose=True) is run and released(run) == before
    assert "mine is complete; nothing to do" in capfd.readouterr().err
    with pytest.raises(cudp.InputError, match="expected a run folder, found none"):
        cudp.load("mine/release").resume(rows)


def test_a_run_of_another_build_is_not_continued(cli, in_folder, rows):
    """The same noise on other sums would show their difference, so builds are told apart."""
    def stop(progress):
        raise KeyError(progress.step)

    np.savez("rows.npz", x=rows[0], y=rows[1])
    with pytest.raises(KeyError):
        cudp.train("rows.npz", out="mine", on_epoch=stop, **{**SHORT, "epochs": 6})
    assert "another build" in cli("train", "--resume", "mine", expected=2).stderr
    assert cudp.resume("mine").certificate["status"] == "finished"


@pytest.fixture
def heeds_ctrl_c():
    """Python's handler, which a process that was started in the background has not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_stops_at_a_checkpoint(rows, in_folder, heeds_ctrl_c):
    def interrupt(progress):
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt) as stopped:
        cudp.train(rows, out="mine", on_epoch=interrupt, **{**SHORT, "epochs": 400})
    assert isinstance(stopped.value, cudp.InterruptedRun)
    assert "cudp.resume('" in str(stopped.value)
    assert signal.getsignal(signal.SIGINT) is before
    assert cudp.resume("mine", rows).certificate["status"] == "finished"


def test_a_temporary_run_resumes(rows, heeds_ctrl_c):
    def interrupt(progress):
        os.kill(os.getpid(), signal.SIGINT)

    settings = {**SHORT, "epochs": 400}
    with pytest.raises(cudp.InterruptedRun) as stopped:
        cudp.train(rows, on_epoch=interrupt, **settings)
    folder = re.search(r"cudp.resume\('([^']*)'", str(stopped.value))[1]
    try:
        assert released(cudp.resume(folder, rows)) == released(cudp.train(rows, **settings))
    finally:
        shutil.rmtree(pathlib.Path(folder).parent)


def test_the_import_loads_numpy_alone():
    python("""
        import sys, numpy
        before = {name.split(".")[0] for name in sys.modules}
        import cudp
        new = {name.split(".")[0] for name in sys.modules} - before
        for heavy in ("sklearn", "scipy", "pandas", "torch", "matplotlib"):
            assert heavy not in new, new
        """)


def test_the_program_comes_along():
    done = subprocess.run([sys.executable, "-m", "cudp", "info"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and f"version        {cudp.__version__}" in done.stdout
    assert done.stderr == ""  # Python would warn if the import had loaded cudp.__main__
    done = subprocess.run([sys.executable, "-m", "cudp", "nothing"], capture_output=True, text=True, check=False)
    assert done.returncode == 2


FRAME_SCHEMA = """columns = [
  {name = "age", kind = "numeric", min = 0, max = 100},
  {name = "ward", kind = "categorical", values = ["north", "south, east"]},
  {name = "ill", kind = "label", values = ["no", "yes"]},
]
"""


def frame_of(kind):
    rng = np.random.default_rng(3)
    age = rng.integers(1, 100, size=800) / 7
    columns = {"age": age, "ward": np.where(age > 7, "north", "south, east").tolist(),
               "ill": np.where(age > 8, "yes", "no").tolist()}
    return pytest.importorskip(kind).DataFrame(columns)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_frame_trains_as_its_table(kind, tmp_path):
    frame = frame_of(kind)
    schema = tmp_path / "schema.toml"
    schema.write_text(FRAME_SCHEMA)
    settings = {"schema": schema, "epsilon": 2.0, "delta": 1e-5, "epochs": 2, "seed": 1}
    run = cudp.train(frame, **settings)
    table = tmp_path / "frame.csv"
    if kind == "pandas":
        frame.to_csv(table, index=False)
    else:
        frame.write_csv(table)
    other = cudp.train(table, **settings)
    for name, values in other.state_dict().items():
        assert (run.state_dict()[name] == values).all()
    assert (run.predict(frame) == other.predict(table)).all()
    assert run.evaluate(frame)["test_accuracy"] == other.evaluate(table)["test_accuracy"]
    with pytest.raises(cudp.InputError, match="^schema: "):
        cudp.train(frame, epsilon=2.0, delta=1e-5)


def test_a_list_of_texts_with_vectors():
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 2, size=600)
    words = np.array([["bad", "awful"], ["good", "great"]])
    texts = [f'a {words[label, rng.integers(2)]} film, "x"\nand more' for label in labels]
    vectors = {"good": [1.0, 0.5], "great": [0.9, 0.3], "bad": [-1.0, 0.2], "awful": [-0.8, 0.1],
               "film": [0.0, 0.1]}
    settings = {"model": "imdb-mean", "epsilon": 3.0, "delta": 1e-5, "epochs": 5, "batch": 128}
    run = cudp.train((texts, labels), classes=2, vectors=vectors, **settings)
    assert (run.predict(["good film", "bad film"]) == ["1", "0"]).all()
    assert run.evaluate(texts, labels)["test_accuracy"] > 0.9
    assert cudp.load(run.path).predict_proba(["a great film"])[0, 1] > 0.5
    named = cudp.train((np.array(texts), np.array(["bad", "good"])[labels]), classes=["bad", "good"],
                       vectors=(list(vectors), np.array(list(vectors.values()))), **settings)
    assert (named.predict(["good film", "bad film"]) == ["good", "bad"]).all()
    with pytest.raises(cudp.InputError, match="classes: .*not public"):
        cudp.train((texts, labels), vectors=vectors, **settings)
    with pytest.raises(cudp.InputError, match="without spaces"):
        cudp.train((texts, labels), classes=2, vectors={"a b": [1.0]}, **settings)


def test_labels_of_texts_are_written_by_their_own_values():
    texts = ["good film", "bad film"] * 60
    vectors = {"good": [1.0, 0.5], "bad": [-1.0, 0.2], "film": [0.0, 0.1]}
    settings = {"model": "imdb-mean", "epsilon": 30.0, "delta": 1e-5, "epochs": 1, "batch": 8, "seed": 1,
                "size_is_public": True, "vectors": vectors}
    expected = cudp.train((texts, [1, 0] * 60), classes=2, **settings)
    for labels, classes in (([1, 0] * 59 + [1, 0.0], 2), (np.array([1.0, 0.0] * 60), [0.0, np.int64(1)])):
        other = cudp.train((texts, labels), classes=classes, **settings)
        assert all((other.state_dict()[name] == v).all() for name, v in expected.state_dict().items())
        assert other.evaluate(texts, labels) == expected.evaluate(texts, [1, 0] * 60)
    with pytest.raises(cudp.InputError, match="same length"):
        cudp.train((texts, [1, 0]), classes=2, **settings)
    with pytest.raises(cudp.InputError, match="same length"):
        expected.evaluate(texts)


def test_no_texts_are_trained_on_as_one_is():
    settings = {"model": "imdb-mean", "epsilon": 100.0, "delta": 1e-5, "epochs": 1, "batch": 1, "seed": 1,
                "vectors": {"good": [1.0, 0.5]}, "classes": ["no", "yes"]}
    for texts in (["good"], [], (), np.array([], dtype="<U4")):
        run = cudp.train((texts, ["yes"][: len(texts)]), **settings)
        assert run.certificate.epsilon == pytest.approx(100)


def test_no_text_decides_whether_the_others_are_texts():
    settings = {"model": "imdb-mean", "epsilon": 100.0, "delta": 1e-5, "epochs": 1, "batch": 1, "seed": 1,
                "vectors": {"good": [1.0, 0.5]}, "classes": ["no", "yes"]}
    for texts in ([None], [None, None], ["good", None], ["good", ["good"]], ["good", 1.0],
                  np.array([None, "good"], dtype=object), np.array([None], dtype=object)):
        run = cudp.train((texts, ["yes"] * len(texts)), **settings)
        assert run.certificate.epsilon == pytest.approx(100)


GROWTH = """
import gc, os, pathlib
import numpy as np
import cudp

rng = np.random.default_rng(1)
x, y = rng.uniform(size=(200, 12)).astype(np.float32), rng.integers(0, 2, size=200)

def fits(count):
    for _ in range(count):
        cudp.train((x, y), epsilon=1.0, delta=1e-5, classes=2, epochs=1, batch=50, threads=1,
                   size_is_public=True).predict(x)
    gc.collect()
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096

before = fits(15)
files = len(os.listdir("/proc/self/fd"))
print(fits(30) - before, len(os.listdir("/proc/self/fd")) - files)
"""


def test_many_trainings_in_one_process_do_not_grow():
    """1,000 of them went from 52.2 to 52.5 MiB."""
    done = subprocess.run([sys.executable, "-c", GROWTH], capture_output=True, text=True, check=True)
    memory, files = map(int, done.stdout.split())
    assert memory < 2 << 20
    assert files == 0


@pytest.mark.parametrize("value,digits,text", [
    (2.000033527940535, 4, "2.001"), (2.0, 4, "2"), (2.9999945, 4, "3"), (1e-5, 3, "1e-05"), (1.0001e-5, 3, "1.01e-05")])
def test_epsilon_in_words_is_rounded_up(value, digits, text):
    from cudp._runs import _rounded_up
    assert _rounded_up(value, digits) == text
