"""Estimators for scikit-learn."""

import numbers
import sys

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from . import _arrays, _budget, _core, _runs
from ._settings import named

_NO_WEIGHTS = (
    "sample_weight: expected none, since a row's weight multiplies what it adds to a sum, and the "
    "noise is for rows of weight 1; class_weight weighs classes by public numbers"
)


# What the estimators call settings of the program.
_PARAMETERS = {"batch": "batch_size", "lr": "learning_rate", "clip": "clip_norm", "seed": "random_state",
               "class_weights": "class_weight", "accept_private_bounds": "unsafe_from_data"}


def _search_that_refits():
    """The search whose best model is being trained; None if there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_name
        if name == "_fit_and_score":
            return None  # one of the candidates
        if name == "fit" and isinstance(frame.f_locals.get("self"), BaseSearchCV):
            return frame.f_locals["self"]
        frame = frame.f_back
    return None


def _chosen(settings, **defaults):
    """Settings with these defaults for learning rate, clipping norm and more, in place of those that are
    None. They were measured together (README.md), so all are left alone if one of learning rate,
    clipping norm and optimizer is given."""
    if any(settings[key] is not None for key in ("lr", "clip", "optimizer")):
        return settings
    return {**settings, **{key: value for key, value in defaults.items() if settings[key] is None}}


def _refuse_complex(values, name):
    """Throws InputError on complex numbers, which scikit-learn refuses in words that quote rows."""
    types = getattr(values, "dtypes", None)
    types = [getattr(values, "dtype", None)] if types is None or not hasattr(types, "__iter__") else types
    if any(getattr(kind, "kind", None) == "c" for kind in types):
        raise _core.InputError(f"{name}: Complex data not supported: expected real numbers, found complex ones")


def _refuse_texts(values, name):
    """Throws InputError if values do not become numbers, which scikit-learn refuses in words that quote one, and
    TypeError, as scikit-learn does, if their type has no number."""
    types = getattr(values, "dtypes", None)
    types = [getattr(values, "dtype", None)] if types is None or not hasattr(types, "__iter__") else types
    if all(getattr(kind, "kind", None) in ("f", "i", "u", "b", "c") for kind in types):
        return
    try:
        np.asarray(values, dtype=np.float64)
    except TypeError:
        raise TypeError(f"{name}: argument must be a string or a real number") from None
    except Exception:
        raise _core.InputError(f"{name}: expected numbers, found something else") from None


def _own_values(y):
    """A list of labels as an array of objects: with a common type one label would decide how others are written."""
    flat = [value[0] if isinstance(value, (list, tuple)) and len(value) == 1 else value for value in y]
    if any(hasattr(value, "__len__") and not isinstance(value, (str, bytes)) for value in flat):
        raise _core.InputError("y: expected one value for each row, found more")
    values = np.empty(len(flat), dtype=object)
    values[:] = flat
    return values


def _without_counts(X, y):
    """X and y, as arrays if they are lists. Throws InputError on shapes that scikit-learn refuses in words that
    tell the number of rows."""
    if not hasattr(X, "shape"):
        X = _arrays.features(X)
    if len(X.shape) != 2 or X.shape[1] == 0:
        raise _core.InputError(
            "X: expected rows of features, [n, features], found "
            + ("0 features" if len(X.shape) == 2 else f"an array of {len(X.shape)} dimensions")
        )
    if y is None:
        return X, y
    if isinstance(y, (list, tuple)):
        y = _own_values(y)
    shape = y.shape if hasattr(y, "shape") else (len(y),)
    if len(shape) not in (1, 2) or shape[1:] not in ((), (1,)):
        raise _core.InputError("y: expected one value for each row, found more")
    if shape[0] != X.shape[0]:
        raise _core.InputError(
            f"y: expected one value for each row of X, found {'fewer' if shape[0] < X.shape[0] else 'more'}"
        )
    return X, y


def _search_that_hides_its_choice():
    """The search that clones an estimator and will choose by exact scores without training the best model at
    its end, or before it; None if there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        search = frame.f_locals.get("self") if frame.f_code.co_name == "fit" else None
        if isinstance(search, BaseSearchCV):
            halves = any(kind.__name__ == "BaseSuccessiveHalving" for kind in type(search).__mro__)
            return search if halves or not search.refit else None
        frame = frame.f_back
    return None


def _refuse_search(search, what):
    vars(search).pop("best_estimator_", None)
    raise _core.BudgetError(
        f"{type(search).__name__}: {what} would be chosen by exact scores of private "
        "rows, which no budget covers: cudp.tune chooses settings within the guarantee; "
        "Budget(..., scores_are_public=True) states that the scores are of public rows"
    )


class _DPEstimator(BaseEstimator):
    """What all estimators have: their features are scaled by public bounds, and their budget."""

    _model = ""

    # Budgets go with an estimator that is pickled within them, to other processes (n_jobs).

    def __getstate__(self):
        state = super().__getstate__()
        budgets = _budget.entries(state.get("_budgets", ()))
        return {**state, "_budgets": budgets} if budgets else state

    def __sklearn_clone__(self):
        budgets = _budget.entries(getattr(self, "_budgets", ()))
        if not all(b["scores_are_public"] for b in budgets):
            search = _search_that_hides_its_choice()
            if search is not None:
                _refuse_search(search, "settings")
        copy = BaseEstimator.__sklearn_clone__(self)
        if hasattr(self, "_budgets"):
            copy._budgets = self._budgets
        return copy

    def _train(self, data, **settings):
        """Trains a model within the budgets."""
        carried = getattr(self, "_budgets", ())
        charged = _budget.Charged(carried)
        budgets = _budget.entries(carried)
        search = _search_that_refits() if budgets else None
        if search is not None and not all(b["scores_are_public"] for b in budgets):
            _refuse_search(search, "best_estimator_")
        # The folder is temporary. A picture takes longer to draw than few rows to train, and so does the
        # epsilon of each epoch: metrics have a line for the end only.
        with named(_PARAMETERS):
            return _runs.train_within(charged, data, _pictures=False, eval_every=0, **settings)

    def _scaled(self, x):
        """Features scaled from the bounds to -1..1; beyond them they count as the bound."""
        low, high = self.bounds_
        width = np.where(high > low, high - low, 1.0)
        scaled = np.empty(x.shape, dtype=np.float32)
        public = (np.ascontiguousarray(values, dtype=float) for values in (low, high, width))
        _core.scale_rows(np.require(_arrays.native(x, "X"), requirements="A"), *public, scaled)
        return scaled

    def _public_bounds(self, x):
        if self.bounds is None:
            if not self.unsafe_from_data:
                raise _core.InputError(
                    "bounds: expected (low, high) of the features, numbers or arrays, found none: "
                    "the smallest and the largest value of private rows are not public; "
                    "unsafe_from_data=True takes them from the rows, for a model that may not be "
                    "released"
                )
            return x.min(axis=0).astype(float), x.max(axis=0).astype(float)
        try:
            low, high = self.bounds
        except (TypeError, ValueError):
            raise _core.InputError("bounds: expected (low, high), found something else") from None
        try:
            low = np.broadcast_to(np.asarray(low, dtype=float), x.shape[1:])
            high = np.broadcast_to(np.asarray(high, dtype=float), x.shape[1:])
        except (TypeError, ValueError):
            raise _core.InputError(
                f"bounds: expected low and high as numbers, or as arrays of {x.shape[1]} numbers, one for each "
                "column of X, found others"
            ) from None
        with np.errstate(all="ignore"):
            finite = np.isfinite(low).all() and np.isfinite(high).all() and np.isfinite(high - low).all()
        if not (finite and (low <= high).all()):
            raise _core.InputError("bounds: expected finite numbers, low <= high, found others")
        return low, high

    def _settings(self):
        """Settings of `cudp train`; a parameter that is None is the program's to choose."""
        settings = {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "model": self._model,
            "batch": self.batch_size,
            "epochs": self.epochs,
            "lr": self.learning_rate,
            "clip": self.clip_norm,
            "optimizer": self.optimizer,
            "ema": self.ema,
            "size_is_public": self.size_is_public or None,
            "accept_private_bounds": self.unsafe_from_data or None,
            "device": self.device,
            "threads": self.threads,
        }
        if self.random_state is not None:
            if not isinstance(self.random_state, numbers.Integral):
                raise _core.InputError(
                    "random_state: expected a whole number, or None for a model that may be "
                    f"released, found {type(self.random_state).__name__}"
                )
            settings["seed"] = int(self.random_state)
        return settings

    @property
    def certificate_(self):
        """The certificate of the training."""
        check_is_fitted(self)
        return self.run_.certificate

    def _unit(self, groups):
        """Settings of the unit of privacy: all rows with one id, or none if it is a row."""
        if groups is None:
            if self.max_rows is not None:
                raise _core.InputError(
                    "max_rows: expected with fit(X, y, groups=...) only, an id for each row, found it "
                    "alone"
                )
            return {}
        if self.unsafe_from_data:
            raise _core.InputError(
                "groups: expected without unsafe_from_data, found both: bounds and classes must be "
                "public"
            )
        return {"groups": groups, "max_rows": self.max_rows, "bounds": (-1.0, 1.0)}

    def _checked(self, X, y, **checks):
        """X and y as arrays. Without unsafe_from_data no message and no warning depends on the number of
        rows, and none are trained on as one is: a refusal would tell that there is no row."""
        _refuse_complex(X, "X")
        _refuse_complex(y, "y")
        if not self.unsafe_from_data:
            X, y = _without_counts(X, y)
            _refuse_texts(X, "X")
            if checks.get("y_numeric"):
                _refuse_texts(y, "y")
        return validate_data(self, X, y, dtype=[np.float64, np.float32],
                             ensure_min_samples=1 if self.unsafe_from_data else 0, **checks)

    def _rows(self, X):
        check_is_fitted(self)
        x = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        return self._scaled(x)


class _DPClassifier(ClassifierMixin, _DPEstimator):
    """A classifier trained with differential privacy.

    epsilon, delta: the budget. bounds: (low, high) of the features, public numbers or arrays.
    classes: the classes, public. unsafe_from_data=True takes those two from the rows: the
    certificate then says that the model is not for release. class_weight: public weights, a dict by
    class. max_rows: with fit(X, y, groups=ids), an id for each row, the privacy is that of all rows
    with one id, of which the first max_rows are used. random_state: a seed, with which a model is
    not for release; None: none. Other parameters are settings of `cudp train`; None leaves them to
    the program.

    After fit: classes_, bounds_, run_ (the Run), certificate_.
    """

    def __init__(self, epsilon=None, delta=None, *, bounds=None, classes=None, class_weight=None,
                 batch_size=None, epochs=None, learning_rate=None, clip_norm=None, optimizer=None,
                 ema=None, size_is_public=False, max_rows=None, unsafe_from_data=False,
                 random_state=None, device=None, threads=None):
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.classes = classes
        self.class_weight = class_weight
        self.batch_size = batch_size
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.clip_norm = clip_norm
        self.optimizer = optimizer
        self.ema = ema
        self.size_is_public = size_is_public
        self.max_rows = max_rows
        self.unsafe_from_data = unsafe_from_data
        self.random_state = random_state
        self.device = device
        self.threads = threads

    def _public_classes(self, y):
        if self.classes is not None:
            classes = np.unique(np.asarray(self.classes))
        elif self.unsafe_from_data:
            classes = np.unique(y)
        else:
            raise _core.InputError(
                "classes: expected the classes, found none: which labels private rows have is not "
                "public; unsafe_from_data=True takes them from the rows, for a model that may not "
                "be released"
            )
        if len(classes) < 2:
            raise _core.InputError(
                f"classes: expected at least 2, found {len(classes)} class; one class leaves "
                "nothing to predict"
            )
        return classes

    def _class_weights(self):
        if self.class_weight is None:
            return None
        if not isinstance(self.class_weight, dict):
            raise _core.InputError(
                "class_weight: expected a dict of public weights by class, since how many rows a "
                f"class has is private, found {self.class_weight!r}"
            )
        unknown = [c for c in self.class_weight if c not in self.classes_]
        if unknown:
            raise _core.InputError(f"class_weight: expected classes, found {unknown[0]!r}")
        return [float(self.class_weight.get(c, 1.0)) for c in self.classes_.tolist()]

    def fit(self, X, y, groups=None, **fit_params):
        if fit_params:
            if "sample_weight" in fit_params:
                raise _core.InputError(_NO_WEIGHTS)
            raise TypeError(f"fit() got an unexpected keyword argument {next(iter(fit_params))!r}")
        x, y = self._checked(X, y)
        if self.unsafe_from_data:
            # It counts labels and rows. Without it a label that is no class is refused by the reader.
            check_classification_targets(y)
        self.classes_ = self._public_classes(y)
        self.bounds_ = self._public_bounds(x)
        known = np.isin(y, self.classes_)
        if not known.all():  # refused with the row, as by the reader of a file, which knows numbers alone
            raise _core.InputError(
                f"y: expected one of the classes {', '.join(map(repr, self.classes_.tolist()))} in each row, found "
                f"another label in row {int(np.argmin(known))}, counted from 0"
            )
        labels = np.searchsorted(self.classes_, y)
        settings = self._settings()
        settings["class_weights"] = self._class_weights()
        self.run_ = self._train(
            (self._scaled(x), labels), classes=len(self.classes_), **self._unit(groups),
            **self._with_model(settings)
        )
        self.n_iter_ = max(1, int(self.run_.metrics[-1]["epoch"])) if self.run_.metrics else 1
        return self

    def _with_model(self, settings):
        return settings

    def predict(self, X):
        rows = self._rows(X)
        return self.classes_[self.run_.predict(rows)]

    def decision_function(self, X):
        """The logit of the second of two classes, or the logit of each class."""
        rows = self._rows(X)
        logits = self.run_.logits(rows).astype(np.float64)
        return logits[:, 0] if logits.shape[1] == 1 else logits


class DPLogisticRegression(_DPClassifier):
    __doc__ = "Logistic regression: " + _DPClassifier.__doc__
    _model = "logistic"

    def predict_proba(self, X):
        rows = self._rows(X)
        return self.run_.predict_proba(rows).astype(np.float64)

    def predict_log_proba(self, X):
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


class DPLinearSVC(_DPClassifier):
    __doc__ = "Linear support vector machine of two classes: " + _DPClassifier.__doc__
    _model = "svm"

    def _public_classes(self, y):
        classes = super()._public_classes(y)
        if len(classes) > 2:
            raise _core.InputError(
                "Only binary classification is supported: DPLinearSVC expected 2 classes, found "
                f"{len(classes)}"
            )
        return classes

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class DPMLPClassifier(DPLogisticRegression):
    __doc__ = "A network with one hidden layer of 1,000 units: " + _DPClassifier.__doc__
    _model = "mlp"

    def _with_model(self, settings):
        return _chosen(settings, lr=2.0, clip=0.1)


class DPRegressor(RegressorMixin, _DPEstimator):
    """Linear regression, or with model="mlp" a network, trained with differential privacy.

    target_bounds: (low, high) of y, public; values beyond them count as the bound.
    unsafe_from_data=True takes them from the rows. loss: "squared" or "huber". Other parameters are
    those of DPLogisticRegression; a linear model has defaults of its own, for scaled rows: steps of
    plain gradient descent with a clipping norm of 0.1, 50 epochs, averaged.
    """

    def __init__(self, epsilon=None, delta=None, *, bounds=None, target_bounds=None, model="linear",
                 loss=None, batch_size=None, epochs=None, learning_rate=None, clip_norm=None,
                 optimizer=None, ema=None, size_is_public=False, max_rows=None,
                 unsafe_from_data=False, random_state=None, device=None, threads=None):
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.target_bounds = target_bounds
        self.model = model
        self.loss = loss
        self.batch_size = batch_size
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.clip_norm = clip_norm
        self.optimizer = optimizer
        self.ema = ema
        self.size_is_public = size_is_public
        self.max_rows = max_rows
        self.unsafe_from_data = unsafe_from_data
        self.random_state = random_state
        self.device = device
        self.threads = threads

    def _public_target_bounds(self, y):
        if self.target_bounds is not None:
            low, high = self.target_bounds
            return float(low), float(high)
        if not self.unsafe_from_data:
            raise _core.InputError(
                "target_bounds: expected (low, high) of y, found none: the smallest and the largest "
                "value of private rows are not public; unsafe_from_data=True takes them from the "
                "rows, for a model that may not be released"
            )
        low, high = float(y.min()), float(y.max())
        return (low, high) if low < high else (low - 1.0, high + 1.0)

    def fit(self, X, y, groups=None, **fit_params):
        if fit_params:
            if "sample_weight" in fit_params:
                raise _core.InputError(_NO_WEIGHTS)
            raise TypeError(f"fit() got an unexpected keyword argument {next(iter(fit_params))!r}")
        x, y = self._checked(X, y, y_numeric=True)
        if self.unsafe_from_data and len(x) == 1:  # without it, how many rows there are is private
            raise _core.InputError("X: expected more than one row, found n_samples = 1")
        self.bounds_ = self._public_bounds(x)
        self.target_bounds_ = self._public_target_bounds(y)
        settings = self._settings()
        settings["model"] = self.model
        settings["loss"] = self.loss
        if self.model == "linear":
            # Longer steps may overshoot: the curvature is |x|^2 + 1.
            rate = min(3.0, 20.0 / (1.0 + x.shape[1]))
            settings = _chosen(settings, lr=rate, clip=0.1, epochs=50, ema=0.9, optimizer="sgd")
        low, high = self.target_bounds_
        self.run_ = self._train(
            (self._scaled(x), np.asarray(y, dtype=np.float64)), target_bounds=[low, high],
            **self._unit(groups), **settings,
        )
        self.n_iter_ = max(1, int(self.run_.metrics[-1]["epoch"])) if self.run_.metrics else 1
        return self

    def predict(self, X):
        rows = self._rows(X)
        return self.run_.predict(rows)
