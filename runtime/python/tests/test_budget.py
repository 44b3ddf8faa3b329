import json
import os
import pathlib
import pickle
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import pytest

import cudp

FIT = {"epsilon": 1.0, "delta": 1e-5, "classes": 2, "epochs": 2, "batch": 256, "threads": 1}
PUBLIC_SIZE = {**FIT, "size_is_public": True}


def test_two_runs_of_epsilon_1(rows):
    """The number that the README states."""
    with cudp.Budget(1.66, 1e-5) as budget:
        first = cudp.train(rows, **PUBLIC_SIZE)
        second = cudp.train(rows, **PUBLIC_SIZE)
        left = budget.remaining
        with pytest.raises(cudp.BudgetError, match=r"% is left: about epsilon 0\.[0-9]"):
            cudp.train(rows, **PUBLIC_SIZE)
        assert budget.remaining == left < 0.03
    assert len(budget.runs) == 2 and all(0.4 < run["fraction"] < 0.5 for run in budget.runs)
    # Without a budget that is stated ahead, the same two runs come to more.
    assert cudp.compose(first, second).epsilon == pytest.approx(2.2, abs=0.1)
    cudp.train(rows, **PUBLIC_SIZE)  # outside
    assert len(budget.runs) == 2


def test_a_private_number_of_rows_is_charged_before_it_is_released(rows, tmp_path):
    with cudp.Budget(3, 1e-5) as budget:
        run = cudp.train(rows, **FIT)
        assert "size_release" in run.certificate
        assert 0.1 < budget.remaining < 0.9
        while True:
            before = budget.remaining
            try:
                cudp.train(rows, out=tmp_path / "run", **{**FIT, "epsilon": budget.rest()})
                break
            except cudp.BudgetError:  # only an estimate may be refused: then nothing is charged
                assert budget.remaining == before and not (tmp_path / "run").exists()
                raise
        assert budget.remaining < 0.4


def test_the_rest(rows):
    with cudp.Budget(2, 1e-5) as budget:
        cudp.train(rows, **PUBLIC_SIZE)
        rest = budget.rest(size_is_public=True)
        assert 1.0 < rest < 2.0
        cudp.train(rows, **{**PUBLIC_SIZE, "epsilon": 0.95 * rest})
        assert budget.remaining < 0.2
        assert budget.rest() < 0.5


def test_nested_budgets_are_all_charged(rows):
    with cudp.Budget(5, 1e-5) as outer:
        cudp.train(rows, **PUBLIC_SIZE)
        with cudp.Budget(1.5, 1e-5) as inner:
            cudp.train(rows, **PUBLIC_SIZE)
            with pytest.raises(cudp.BudgetError):
                cudp.train(rows, **PUBLIC_SIZE)
        assert len(inner.runs) == 1
        assert len(outer.runs) == 2  # a run that the inner one refused is charged to none
        cudp.train(rows, **PUBLIC_SIZE)
        assert len(outer.runs) == 3 and len(inner.runs) == 1


def test_threads_of_the_process_are_charged(rows):
    done = []
    with cudp.Budget(5, 1e-5) as budget:
        threads = [threading.Thread(target=lambda: done.append(cudp.train(rows, **PUBLIC_SIZE)))
                   for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(done) == len(budget.runs) == 2


def test_exceptions_give_nothing_back(rows):
    def stop(progress):
        raise ZeroDivisionError

    with cudp.Budget(5, 1e-5) as budget:
        with pytest.raises(ZeroDivisionError):
            cudp.train(rows, on_epoch=stop, **PUBLIC_SIZE)
        assert len(budget.runs) == 1
        with pytest.raises(cudp.InputError):  # refused before it began
            cudp.train((rows[0], rows[1] + 1), **PUBLIC_SIZE)
        assert len(budget.runs) == 1
        with pytest.raises(cudp.BudgetError, match="with privacy"):
            cudp.train(rows, method="sgd", classes=2, epochs=1)
    with pytest.raises(ZeroDivisionError), budget:
        raise ZeroDivisionError
    cudp.train(rows, **PUBLIC_SIZE)
    assert len(budget.runs) == 1


def test_a_ledger_goes_on_later(rows, tmp_path):
    ledger = tmp_path / "ledger"
    with cudp.Budget(2, 1e-5, ledger=ledger) as budget:
        cudp.train(rows, **PUBLIC_SIZE)
    with cudp.Budget(2, 1e-5, ledger=ledger) as again:
        assert again.remaining == budget.remaining < 1
        assert "1 trainings" in repr(again) and str(ledger) in repr(again)
    with pytest.raises(cudp.InputError, match="epsilon 2 and delta 1e-05"):
        cudp.Budget(3, 1e-5, ledger=ledger)
    ledger.write_text(ledger.read_text().replace("run", "rum", 1))
    with pytest.raises(cudp.BudgetError, match="line 4"):
        cudp.Budget(2, 1e-5, ledger=ledger)
    with pytest.raises(TypeError, match="ledger=FILE"):
        pickle.dumps(budget)


def test_a_ledger_that_is_gone_is_not_made_again(rows, tmp_path):
    ledger = tmp_path / "ledger"
    with cudp.Budget(2, 1e-5, ledger=ledger):
        cudp.train(rows, **PUBLIC_SIZE)
    kept = ledger.read_bytes()
    ledger.unlink()
    with pytest.raises(cudp.BudgetError, match="ledger.lock is there; what was spent is not known. Put"):
        cudp.Budget(2, 1e-5, ledger=ledger)
    assert not ledger.exists()
    ledger.write_bytes(kept)
    with cudp.Budget(2, 1e-5, ledger=ledger) as budget:
        assert budget.remaining < 1
        ledger.unlink()
        (tmp_path / "ledger.lock").unlink()
        with pytest.raises(cudp.BudgetError, match="a Budget of it is in use"):
            cudp.Budget(2, 1e-5, ledger=tmp_path / "." / "ledger")
        with pytest.raises(cudp.BudgetError, match="what was spent is not known"):
            cudp.train(rows, **PUBLIC_SIZE)
    assert cudp.Budget(2, 1e-5, ledger=tmp_path / "another").remaining == 1


def test_a_budget_that_is_refused_leaves_no_lock(tmp_path):
    with pytest.raises((cudp.InputError, cudp.BudgetError)):
        cudp.Budget(2, 2.0, ledger=tmp_path / "ledger")
    assert not list(tmp_path.iterdir())
    assert cudp.Budget(2, 1e-5, ledger=tmp_path / "ledger").remaining == 1


def test_threads_make_one_ledger(tmp_path):
    made, failed = [], []

    def make(start):
        try:
            start.wait()
            made.append(cudp.Budget(2, 1e-5, ledger=tmp_path / "ledger"))
        except Exception as e:
            failed.append(e)

    start = threading.Barrier(8)
    threads = [threading.Thread(target=make, args=(start,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and len(made) == 8


def in_fork(work):
    """Runs work() in a process that is forked, and returns its exit code."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = work()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_forked_process_needs_a_ledger(rows, tmp_path):
    def fit():
        try:
            cudp.train(rows, **PUBLIC_SIZE)
            return 7
        except cudp.BudgetError as e:
            return 8 if "ledger=FILE" in str(e) else 9

    with cudp.Budget(3, 1e-5) as budget:
        assert in_fork(fit) == 8
        assert budget.remaining == 1
    with cudp.Budget(3, 1e-5, ledger=tmp_path / "ledger") as budget:
        assert in_fork(fit) == 7
        assert len(budget.runs) == 1


CHILD = """
import sys, numpy as np, cudp
x = np.random.default_rng(1).normal(size=(1500, 12)).astype(np.float32)
try:
    cudp.train((x, (x[:, 0] > 0).astype(int)), **{settings!r})
except cudp.BudgetError as e:
    sys.exit(8 if "ledger=FILE" in str(e) else 9)
"""


def test_processes_started_within_a_budget_are_charged(tmp_path):
    words = [sys.executable, "-c", CHILD.replace("{settings!r}", repr(PUBLIC_SIZE))]
    with cudp.Budget(3, 1e-5, ledger=tmp_path / "ledger") as budget:
        assert subprocess.run(words, check=False).returncode == 0
        assert len(budget.runs) == 1
    with cudp.Budget(3, 1e-5):
        assert subprocess.run(words, check=False).returncode == 8
    assert "CUDP_BUDGETS" not in os.environ


def test_a_program_that_takes_the_place_of_this_one_is_charged(tmp_path):
    train = CHILD.replace("{settings!r}", repr(PUBLIC_SIZE))
    parent = f"""
import os, sys, cudp
with cudp.Budget(3, 1e-5, ledger={str(tmp_path / "ledger")!r}):
    os.execv(sys.executable, [sys.executable, "-c", {train!r}])
"""
    assert subprocess.run([sys.executable, "-c", parent], check=False).returncode == 0
    assert len(cudp.Budget(3, 1e-5, ledger=tmp_path / "ledger").runs) == 1


def test_resume_within_a_budget(rows, tmp_path):
    def stop(progress):
        raise ZeroDivisionError

    with cudp.Budget(3, 1e-5, ledger=tmp_path / "ledger") as budget:
        with pytest.raises(ZeroDivisionError):
            cudp.train(rows, on_epoch=stop, out=tmp_path / "run", **PUBLIC_SIZE)
        cudp.resume(tmp_path / "run", rows)
        assert len(budget.runs) == 1
    with pytest.raises(ZeroDivisionError):
        cudp.train(rows, on_epoch=stop, out=tmp_path / "other", **PUBLIC_SIZE)
    with budget, pytest.raises(cudp.InputError, match="began within the budget"):
        cudp.resume(tmp_path / "other", rows)


def divergence(epsilon, order, delta):
    """The Renyi divergence that an order converts to this epsilon."""
    return epsilon - np.log1p(-1 / order) + (np.log(delta) + np.log(order)) / (order - 1)


def test_killed_at_random_moments_the_ledger_has_what_was_released(rows, tmp_path):
    ledger = tmp_path / "ledger"
    epsilon, delta = 60.0, 1e-5
    budget = cudp.Budget(epsilon, delta, ledger=ledger)
    order = cudp._core.read_budget(str(ledger)).order
    moments = random.Random(5)

    def fit(folder, temporary):
        # Every other run is in a temporary folder, which is not synced to disk.
        folder.mkdir()
        tempfile.tempdir = str(folder)
        try:
            return cudp.train(rows, out=None if temporary else folder / "run", epsilon=0.5, delta=1e-5,
                              classes=2, epochs=2, batch=256, threads=1)
        finally:
            tempfile.tempdir = None

    def fit_seconds(temporary):
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            fit(pathlib.Path(folder) / "first", temporary)
            return time.monotonic() - start

    def is_released(folder):
        """Whether there is a certificate. os.walk passes over folders that are renamed meanwhile."""
        return any(os.path.exists(os.path.join(at, "run/release/privacy.json")) for at, _, _ in os.walk(folder))

    seconds = [fit_seconds(temporary) for temporary in (False, True)]
    for trial in range(20):
        fits = moments.randrange(3)  # complete ones, before the one that is killed
        child = os.fork()
        if child == 0:
            try:
                with budget:
                    kept = []  # a temporary folder goes with its Run
                    for i in range(1000):
                        kept.append(fit(tmp_path / f"runs-{trial}-{i}", trial % 2 == 1))
            finally:
                os._exit(1)
        while fits > 0 and not is_released(tmp_path / f"runs-{trial}-{fits - 1}"):
            assert os.waitpid(child, os.WNOHANG) == (0, 0)
            time.sleep(0.001)
        time.sleep(moments.uniform(0, 1.2) * seconds[trial % 2])
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    state = cudp._core.read_budget(str(ledger))
    charged = [pathlib.Path(what.rsplit(" in ", 1)[1]) for _, _, what in state.runs]
    # A folder under construction has another name, and files in release/ once it is charged.
    released = [f.parent for f in tmp_path.rglob("release") if list(f.iterdir())]
    for folder in released:
        assert any(run.parent == folder.parent and run.name in folder.name for run in charged), folder
    assert any(run.parent.name.startswith("cudp-") for run in charged)
    finished = [f for f in released if (f / "release/privacy.json").exists()]
    assert len(finished) > 3
    mechanisms = []
    for folder in finished:
        for r in json.loads((folder / "release/privacy.json").read_text())["releases"]:
            mechanisms.append(cudp.PoissonGaussian(r["q"], r["sigma"], r["steps"]))
    bound = cudp.Accountant(mechanisms, accountant="rdp", orders=[order])
    limit = divergence(epsilon, order, delta / 2)
    assert divergence(bound.epsilon(delta / 2), order, delta / 2) <= limit * (1 - state.remaining) * (1 + 1e-9)


# scikit-learn


PUBLIC = {"epsilon": 1.0, "delta": 1e-5, "bounds": (-4.0, 4.0), "classes": [0, 1], "epochs": 2,
          "batch_size": 128, "size_is_public": True, "threads": 1}


def test_a_search_by_exact_scores_is_refused(rows):
    selection = pytest.importorskip("sklearn.model_selection")
    model = cudp.DPLogisticRegression(**PUBLIC)
    search = selection.GridSearchCV(model, {"learning_rate": [0.5, 1.0]}, cv=2)
    with cudp.Budget(6, 1e-5) as budget:
        with pytest.raises(cudp.BudgetError, match="GridSearchCV: best_estimator_.*cudp.tune"):
            search.fit(*rows)
        assert len(budget.runs) == 4 and not hasattr(search, "best_estimator_")
    with cudp.Budget(6, 1e-5, scores_are_public=True) as budget:
        search.fit(*rows)
        assert len(budget.runs) == 5
    assert search.best_estimator_.certificate_.epsilon <= 1


def test_scores_of_folds_within_a_budget(rows):
    selection = pytest.importorskip("sklearn.model_selection")
    model = cudp.DPLogisticRegression(**PUBLIC)
    with cudp.Budget(2, 1e-5) as budget:
        with pytest.raises(cudp.BudgetError):
            selection.cross_val_score(model, *rows, cv=5, error_score="raise")
        assert 1 <= len(budget.runs) < 5


def test_several_jobs_need_a_ledger(rows, tmp_path):
    selection = pytest.importorskip("sklearn.model_selection")
    model = cudp.DPLogisticRegression(**PUBLIC)
    selection.cross_val_score(model, *rows, cv=2, n_jobs=2)  # its processes are used again
    with cudp.Budget(3, 1e-5) as budget:
        with pytest.raises(cudp.BudgetError, match="ledger=FILE"):
            selection.cross_val_score(model, *rows, cv=2, n_jobs=2, error_score="raise")
        assert budget.remaining == 1
    with cudp.Budget(3, 1e-5, ledger=tmp_path / "ledger") as budget:
        selection.cross_val_score(model, *rows, cv=3, n_jobs=2)
        assert len(budget.runs) == 3


def test_estimators_carry_their_budget_to_other_processes_only(rows, tmp_path):
    sklearn = pytest.importorskip("sklearn")
    with cudp.Budget(3, 1e-5, ledger=tmp_path / "ledger") as budget:
        data = pickle.dumps(cudp.DPLogisticRegression(**PUBLIC))
    model = sklearn.clone(pickle.loads(data))
    model.fit(*rows)
    assert len(budget.runs) == 0

    def fit():
        sklearn.clone(pickle.loads(data)).fit(*rows)
        return 0

    assert in_fork(fit) == 0
    assert len(budget.runs) == 1
