"""One budget for many trainings."""

import fcntl
import json
import os
import shutil
import tempfile
import threading
import time
import weakref

from . import _core

_ENVIRONMENT = "CUDP_BUDGETS"  # tells processes that are started within a Budget

_lock = threading.Lock()
_active = []  # Budgets that are entered, in any thread of this process


def _name_process():
    """Gives this process a random name. Its process id would not suffice: processes of other containers
    may have the same id, and a program that replaces this one (exec) has it."""
    global _process
    _process = os.urandom(16).hex()


_name_process()
os.register_at_fork(after_in_child=_name_process)


class Budget:
    """A budget for everything that is trained within it.

        with cudp.Budget(epsilon=3, delta=1e-5) as budget:
            a = cudp.train(data, epsilon=1, delta=1e-5)
            b = cudp.DPLogisticRegression(epsilon=1, delta=1e-5, ...).fit(X, y)

    Each training may be chosen after looking at the earlier ones. All that is released within the
    budget is (epsilon, delta)-differentially private together. The cost of a training is charged
    before it releases anything, durably, and is never given back. A training that does not fit
    raises BudgetError and releases nothing.

    It counts for the whole process, all threads included. Nested budgets are all charged.

    ledger: a file that keeps the budget: for several processes (n_jobs), and to go on later. The
    default is a temporary file of this process.
    scores_are_public: states that scores by which a search chooses a model are of public rows.
    """

    def __init__(self, epsilon, delta, *, ledger=None, scores_are_public=False):
        self.scores_are_public = bool(scores_are_public)
        self._process = _process
        if ledger is None:
            folder = tempfile.mkdtemp(prefix="cudp-budget-")
            weakref.finalize(self, _remove, folder, self._process)
            self._file = os.path.join(folder, "ledger")
            self.ledger = None  #: the file given; None: a temporary one
        else:
            self._file = os.path.realpath(os.fspath(ledger))
            self.ledger = self._file
            with tempfile.TemporaryDirectory(prefix="cudp-budget-") as folder:
                # A budget that is refused leaves no lock, which would stand for a lost ledger.
                _core.create_budget(os.path.join(folder, "ledger"), float(epsilon), float(delta))
            _check_not_lost(self._file)
        _core.create_budget(self._file, float(epsilon), float(delta))

    def __enter__(self):
        with _lock:
            _active.append(self)
            _tell_processes()
        return self

    def __exit__(self, *_):
        with _lock:
            # Threads may leave their budgets in any order.
            for i in reversed(range(len(_active))):
                if _active[i] is self:
                    del _active[i]
                    break
            _tell_processes()

    def _state(self):
        if self.ledger is None and _process != self._process:
            raise _core.BudgetError(_NEEDS_LEDGER)
        return _core.read_budget(self._file)

    @property
    def epsilon(self):
        return self._state().epsilon

    @property
    def delta(self):
        return self._state().delta

    @property
    def remaining(self):
        """The fraction of the budget that is left."""
        return self._state().remaining

    @property
    def runs(self):
        """The charged trainings: dicts with the fraction of the budget that each has taken, the
        fraction of the delta that is reserved for deltas of trainings, and what it was."""
        return [dict(zip(("fraction", "delta_fraction", "what"), run))
                for run in self._state().runs]

    def rest(self, delta=None, *, size_is_public=False):
        """An epsilon for one more training at `delta` (default: the budget's) that uses most of
        what is left. It is an estimate: the cost of a training is known when it is planned."""
        state = self._state()
        # The plan of a private number of examples is estimated before the number is released.
        factor = 1.02 if size_is_public else 1.3
        return state.epsilon_left(state.delta if delta is None else float(delta), factor)

    def _entry(self):
        return {"file": self.ledger, "process": self._process, "scores_are_public": self.scores_are_public}

    def __repr__(self):
        state = self._state()
        where = "" if self.ledger is None else f"; {self.ledger}"
        return (f"<cudp.Budget of epsilon {state.epsilon:.6g} at delta {state.delta:.3g}: "
                f"{100 * state.remaining:.3g} % left after {len(state.runs)} trainings{where}>")

    def __reduce__(self):
        raise TypeError("a Budget cannot be pickled: give ledger=FILE, and make another one with it")


_NEEDS_LEDGER = (
    "Budget: expected ledger=FILE for trainings in several processes (n_jobs, fork), found a "
    "budget of one process; nothing was trained"
)


def _check_not_lost(file):
    """Throws BudgetError if there was a ledger of this name and it is gone: a new one would begin with
    the whole budget again."""
    lock = file + ".lock"
    used = any(entry["file"] == file for entry in entries())
    for trial in range(10):
        if os.path.exists(file) or not (used or os.path.exists(lock)):
            return
        if used:
            break
        # Another process may be making it: it holds the lock until it has.
        try:
            with open(lock, "rb") as held:
                fcntl.flock(held, fcntl.LOCK_EX)
        except OSError:  # its folder is not ours, or knows no locks
            pass
        time.sleep(0.01 * (trial + 1))
    found = "a Budget of it is in use" if used else f"its lock {lock} is there"
    raise _core.BudgetError(
        f"{file}: expected the ledger of a budget, found none, though {found}; what was spent is not "
        "known. Put the ledger back; or, for a new budget on rows that no training has used, choose "
        "another name" + ("" if used else " or remove the lock")
    )


def _remove(folder, process):
    if _process == process:  # not in a process that was forked
        shutil.rmtree(folder, ignore_errors=True)


def _inherited():
    """Budgets of the processes that started this one."""
    try:
        entries = json.loads(os.environ.get(_ENVIRONMENT) or "[]")
        return [e for e in entries if e["process"] != _process]
    except (ValueError, TypeError, KeyError):
        raise _core.BudgetError(
            f"{_ENVIRONMENT}: expected what cudp.Budget writes, found something else"
        ) from None


def _tell_processes():
    entries = _inherited() + [budget._entry() for budget in _active]
    if entries:
        os.environ[_ENVIRONMENT] = json.dumps(entries)
    else:
        os.environ.pop(_ENVIRONMENT, None)


def entries(carried=()):
    """The budgets that a training of this process is made under, for other processes. carried:
    entries that came with a pickled object."""
    with _lock:
        own = [budget._entry() for budget in _active]
        found = own + _inherited() + [e for e in carried if e["process"] != _process]
    return [e for i, e in enumerate(found) if e not in found[:i]]


class Charged:
    """The ledgers that a training is charged to. Keeps temporary ones while it lives."""

    def __init__(self, carried=()):
        with _lock:
            self._kept = list(_active)
        here = _process
        self.files = []
        for budget in self._kept:
            if budget.ledger is None and budget._process != here:
                raise _core.BudgetError(_NEEDS_LEDGER)
            self.files.append(budget._file)
        for entry in entries(carried):
            if entry["process"] == here:
                continue
            if entry["file"] is None:
                raise _core.BudgetError(_NEEDS_LEDGER)
            self.files.append(entry["file"])
