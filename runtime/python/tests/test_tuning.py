import os
import signal
import threading

import numpy as np
import pytest

import cudp
from conftest import released

SCHEMA = """columns = [
  {name = "age", kind = "numeric", min = 0, max = 100},
  {name = "ill", kind = "label", values = ["0", "1"]},
]
"""
SETTINGS = {"epsilon": 2.0, "delta": 1e-5, "batch": 64, "steps": 12, "device": "cpu", "runs": 2, "most_runs": 8,
            "seed": 5}
GRID = {"lr": [0.1, 0.5], "clip": [0.1, 1]}
WORDS = ("--epsilon", 2, "--delta", 1e-5, "--batch", 64, "--steps", 12, "--device", "cpu", "--runs", 2, "--most-runs", 8,
         "--seed", 5, "--lr", "0.1,0.5", "--clip", "0.1,1", "--quiet")


@pytest.fixture
def table(in_folder):
    """A table of 600 rows in the working directory."""
    (in_folder / "visits.csv").write_text(
        "age,ill\n" + "".join(f"{i * 37 % 90},{int(i * 37 % 90 > 60)}\n" for i in range(600)))
    (in_folder / "visits.toml").write_text(SCHEMA)
    return "visits.csv"


def private_text(folder, name):
    return open(os.path.join(str(folder), "private", name)).read()


def test_a_table_is_tuned_as_by_the_program(table, cli):
    run = cudp.tune(table, schema="visits.toml", grid=GRID, out="ours", **SETTINGS)
    cli("tune", "--dataset", table, "--schema", "visits.toml", *WORDS, "--out", "theirs")
    assert released(run) == released("theirs")
    assert private_text("ours", "tune.toml") == private_text("theirs", "tune.toml")
    assert run.certificate.epsilon <= 2.0 and len(run.certificate["tuning"]["grid"]) == 4
    assert set(run.predict(table)) <= {"0", "1"}


def test_arrays_are_tuned_as_a_file_by_the_program(rows, in_folder, cli):
    x, y = rows
    public = {"test_data_is_public": True, "classes": 2}
    run = cudp.tune((x[:1000], y[:1000]), test_data=(x[1000:], y[1000:]), grid=GRID, out="ours", **public, **SETTINGS)
    np.savez("arrays.npz", x=x[:1000], y=y[:1000])
    np.savez("arrays-test.npz", x=x[1000:], y=y[1000:])
    cli("tune", "--dataset", "arrays.npz", "--test-data", "arrays-test.npz", "--test-data-is-public", "--classes", 2,
        *WORDS, "--out", "theirs")
    assert released(run) == released("theirs")
    # The same call continues the tuning, here a finished one.
    again = cudp.tune((x[:1000], y[:1000]), test_data=(x[1000:], y[1000:]), grid=GRID, out="ours", **public, **SETTINGS)
    assert released(again) == released("theirs")
    with pytest.raises(cudp.InputError, match="expected the settings of the tuning in it"):
        cudp.tune((x[:1000], y[:1000]), test_data=(x[1000:], y[1000:]), grid={"lr": [0.1, 0.2]}, out="ours", **public,
                  **SETTINGS)


def test_frames_texts_and_models(table):
    pandas = pytest.importorskip("pandas")
    model = {"name": "small", "loss": "cross_entropy",
             "layers": [{"type": "dense", "name": "a", "out": 3}, {"type": "relu"},
                        {"type": "dense", "name": "b", "out": "outputs"}]}
    plan = cudp.tune(pandas.read_csv(table), schema="visits.toml", model=model, grid={"lr": [0.1, 0.5]}, dry_run=True,
                     **SETTINGS)
    assert [c["settings"] for c in plan["candidates"]] == ["lr 0.1", "lr 0.5"] and plan["unit"] == "each row"
    texts = ["good fine"] * 200 + ["bad poor"] * 200
    plan = cudp.tune((texts, ["good"] * 200 + ["bad"] * 200), classes=["bad", "good"], model="imdb-mean",
                     vectors={w: [float(i), 1.0] for i, w in enumerate(("good", "fine", "bad", "poor"))},
                     grid={"lr": [0.1, 0.5]}, dry_run=True, **SETTINGS)
    assert len(plan["candidates"]) == 2


def test_a_dry_run_writes_nothing(rows, in_folder):
    plan = cudp.tune(rows, classes=2, grid=GRID, dry_run=True, out="none", **SETTINGS)
    assert len(plan["candidates"]) == 4 and plan["expected_runs"] == pytest.approx(2.0, abs=1e-6)
    assert os.listdir(in_folder) == []


def test_what_is_wrong_is_refused(table, rows):
    def refused(match, data=table, kind=cudp.InputError, **settings):
        merged = {**SETTINGS, "schema": "visits.toml", "grid": GRID, **settings}
        with pytest.raises(kind, match=match):
            cudp.tune(data, out="refused", **merged)
        assert not os.path.exists("refused")

    refused("expected a known setting, found 'lrr'.*'lr'", lrr=1)
    refused("expected a known setting, found 'clipp'.*'clipping'", grid={"clipp": [1.0]})
    refused("^lr: expected a number", grid={"lr": ["high"]})
    refused("grid: expected a list of values of 'lr'", grid={"lr": 0.5})
    refused("grid: expected at least one value of 'lr'", grid={"lr": []})
    refused("^lr: expected each value once", grid={"lr": [1, 1.0]})
    refused("^lr: .*found it in both", lr=0.5)
    refused("^runs: expected in the grid", runs=None, grid={"runs": [2, 3]})
    refused("^sigma: expected none", sigma=1.0)
    refused("^epsilon: expected a privacy budget", epsilon=None)
    refused("^resume: expected on the command line only", resume="x")
    refused("found no such file", data="nothing.csv")
    refused("epsilon", kind=cudp.BudgetError, epsilon=1e-9)


def test_a_grid_in_a_file(table, in_folder, cli):
    (in_folder / "grid.toml").write_text("lr = [0.1, 0.5]\nclip = [0.1, 1.0]\nruns = 2\nmost-runs = 8\n")
    settings = {key: value for key, value in SETTINGS.items() if key not in ("runs", "most_runs")}
    run = cudp.tune(table, schema="visits.toml", grid="grid.toml", out="ours", **settings)
    cli("tune", "--dataset", table, "--schema", "visits.toml", *WORDS, "--out", "theirs")
    assert released(run) == released("theirs")


def test_a_budget_is_charged_whole_before_the_tuning_starts(table):
    settings = {**SETTINGS, "schema": "visits.toml", "grid": GRID}
    with cudp.Budget(epsilon=4, delta=1e-4) as budget:
        run = cudp.tune(table, out="tuned", **settings)
        assert len(budget.runs) == 1 and "tuning of visits.csv" in budget.runs[0]["what"]
        left = budget.remaining
        assert 0.0 < left < 1.0 and run.certificate.epsilon <= 2.0
        with pytest.raises(cudp.InputError, match="a new folder within a Budget"):
            cudp.tune(table, out="tuned", **settings)
        # What a training would refuse is found before anything is charged.
        with pytest.raises(cudp.InputError, match="^holdout: "):
            cudp.tune(table, out="other", holdout=1.5, **settings)
        with pytest.raises(cudp.BudgetError, match="tuning of visits.csv needs .* % is left"):
            cudp.tune(table, out="other", **{**settings, "epsilon": 6.0})
        assert budget.remaining == left and not os.path.exists("other")
        # A training in the same budget has the same unit of privacy.
        cudp.train(table, schema="visits.toml", epsilon=budget.rest() / 2, delta=1e-5, steps=5)
        assert budget.remaining < left
    with cudp.Budget(epsilon=4, delta=1e-4) as budget:
        x = np.random.default_rng(1).normal(size=(400, 3)).astype(np.float32)
        data = (x, (x[:, 0] > 0).astype(int))
        cudp.tune(data, classes=2, groups=np.arange(400) // 2, max_rows=2, bounds=(-4, 4), grid=GRID, **SETTINGS)
        with pytest.raises(cudp.InputError, match="unit|each row"):
            cudp.tune(data, classes=2, grid=GRID, **SETTINGS)


def interrupted(tune, out):
    """What a call raises that gets Ctrl-C when its second training has begun; None if it ended before."""
    def interrupt():
        while not os.path.isdir(f"{out}/private/runs/000001"):
            ended.wait(0.005)
            if ended.is_set():
                return
        os.kill(os.getpid(), signal.SIGINT)

    ended = threading.Event()
    watch = threading.Thread(target=interrupt)
    # A process that a shell starts in the background ignores Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    watch.start()
    try:
        tune(out)
        ended.set()
        watch.join()  # the signal may come late
        return None
    except KeyboardInterrupt as e:
        return e
    finally:
        ended.set()
        watch.join()
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_stops_a_tuning_which_then_continues(rows, in_folder):
    for steps in (3000, 30000, 100000):  # a machine may be so fast that a tuning ends first
        def tune(out, steps=steps):
            return cudp.tune(rows, classes=2, grid=GRID, out=out, **{**SETTINGS, "steps": steps, "jobs": 1})

        out = f"stopped{steps}"
        stopped = interrupted(tune, out)
        if stopped is not None:
            break
    assert stopped is not None
    if isinstance(stopped, cudp.InterruptedRun):  # it had not ended yet
        assert "interrupted" in str(stopped) and "--resume" not in str(stopped)
    assert released(tune(out)) == released(tune("whole"))
    assert not [name for name in os.listdir(in_folder) if not name.startswith(("stopped", "whole"))], (
        "arrays are left beside the folders")


def test_a_tuning_without_a_seed_may_be_released(table):
    run = cudp.tune(table, schema="visits.toml", grid=GRID, **{**SETTINGS, "seed": None})
    assert run.certificate.for_release and len(run.certificate["tuning"]["grid"]) == 4
