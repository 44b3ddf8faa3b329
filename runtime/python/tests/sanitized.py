"""Many trainings in one process, two threads at once, and callbacks that raise: what `scripts/check.sh python` runs with
an extension that sanitizers watch. Usage: python sanitized.py [FITS]"""

import os
import sys
import threading

import numpy as np

import cudp

rng = np.random.default_rng(1)
X = rng.normal(size=(60, 5)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.int64)
PLAN = {"delta": 1e-3, "sigma": 2.0, "classes": 2, "batch": 20, "steps": 2, "size_is_public": True, "threads": 1,
        "device": "cpu"}


def fit(number, **more):
    run = cudp.train((X, Y), seed=number, **PLAN, **more)
    assert run.predict(X).shape == Y.shape
    return run


def raising(progress):
    raise RuntimeError(f"raised after step {progress.step}")


def fits(numbers):
    """Trainings of all kinds: as planned, with a callback, one that raises, and refused ones."""
    for number in numbers:
        if number % 10 == 3:
            try:
                fit(number, on_epoch=raising)
            except RuntimeError as e:
                assert "raised after" in str(e)
            else:
                raise AssertionError("the callback's error was lost")
        elif number % 10 == 5:
            seen = []
            fit(number, on_epoch=seen.append)
            assert seen
        elif number % 10 == 7:
            try:
                fit(number, clipp=1.0)
            except cudp.InputError as e:
                assert "clip" in str(e)
            else:
                raise AssertionError("a wrong setting was accepted")
        else:
            fit(number)


def in_threads(work, parts):
    """Calls work(part) for each part, in a thread each."""
    errors = []

    def call(part):
        try:
            work(part)
        except BaseException as e:  # noqa: BLE001
            errors.append(e)

    threads = [threading.Thread(target=call, args=(part,)) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def once(_):
    """Calls of everything else, in two threads at once."""
    training = [cudp.PoissonGaussian(q=0.01, sigma=1.0, steps=20)]
    accountant = cudp.Accountant(training)
    assert accountant.epsilon(1e-5) <= accountant.epsilon(1e-6)
    run = fit(1)
    run.evaluate(X, Y)
    run.state_dict()
    run.logits(X[:3])
    bounds = (np.full(X.shape[1], value) for value in (-4.0, 4.0, 8.0))
    cudp._core.scale_rows(X[::-1], *bounds, np.empty(X.shape, np.float32))  # as estimators do
    with cudp.Budget(epsilon=3, delta=1e-3):
        cudp.train((X, Y), **{**PLAN, "sigma": None}, epsilon=0.5)


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    half = count // 2
    # gnuplot is not watched: a sanitizer's library would report what it leaks. Later trainings do not find it, because
    # drawing takes longer than training. Both are changed before there are threads.
    os.environ.pop("LD_PRELOAD", None)
    fits(range(min(half, 20)))
    os.environ["PATH"] = ""
    fits(range(min(half, 20), half))
    in_threads(fits, [range(half, half + half // 2), range(half + half // 2, count)])
    in_threads(once, [1, 2])
    print(f"{count} trainings, half of them in two threads")


if __name__ == "__main__":
    main()
