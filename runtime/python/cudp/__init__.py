"""Train models with differential privacy.

    run = cudp.train((X, y), epsilon=3, delta=1e-5, classes=2)
    run.certificate.epsilon
    cudp.account(sample_rate=0.01, noise_multiplier=1.0, steps=2000, delta=1e-6).epsilon

Settings are those of the program's command line, which `python -m cudp` runs.
"""

from ._accounting import (
    Accountant,
    AllocatedGaussian,
    ApproximateDp,
    BoundedRange,
    FixedSizeGaussian,
    Gaussian,
    GaussianMixture,
    Laplace,
    Mechanism,
    PoissonGaussian,
    PoissonLaplace,
    TruncatedPoissonGaussian,
    account,
    calibrate,
    compose,
    from_dp_event,
)
from ._budget import Budget
from ._core import BudgetError, Error, InputError, InterruptedRun, PrivacyBound, __version__
from ._models import from_torch
from ._runs import Certificate, Progress, Run, load, resume, train
from ._tuning import tune

_ESTIMATORS = ("DPLinearSVC", "DPLogisticRegression", "DPMLPClassifier", "DPRegressor")

__all__ = [
    "Accountant",
    "AllocatedGaussian",
    "ApproximateDp",
    "BoundedRange",
    "Budget",
    "BudgetError",
    "Certificate",
    "Error",
    "FixedSizeGaussian",
    "Gaussian",
    "GaussianMixture",
    "InputError",
    "InterruptedRun",
    "Laplace",
    "Mechanism",
    "PoissonGaussian",
    "PoissonLaplace",
    "PrivacyBound",
    "Progress",
    "Run",
    "TruncatedPoissonGaussian",
    "account",
    "calibrate",
    "compose",
    "from_dp_event",
    "from_torch",
    "load",
    "resume",
    "train",
    "tune",
    *_ESTIMATORS,
]


def __getattr__(name):
    """Imports the estimators, which need scikit-learn, when they are first used."""
    if name in _ESTIMATORS:
        from . import _estimators

        return getattr(_estimators, name)
    raise AttributeError(f"module 'cudp' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_ESTIMATORS})
