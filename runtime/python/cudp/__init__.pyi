import os
import pathlib
from typing import Any, Callable, Iterable, Optional, Sequence, Tuple, Union, overload

import numpy as np
import numpy.typing as npt

from ._accounting import Answer
from ._estimators import DPLinearSVC as DPLinearSVC
from ._estimators import DPLogisticRegression as DPLogisticRegression
from ._estimators import DPMLPClassifier as DPMLPClassifier
from ._estimators import DPRegressor as DPRegressor

__version__: str

Path = Union[str, os.PathLike[str]]
Pair = Tuple[npt.ArrayLike, npt.ArrayLike]
Frame = Any  # a DataFrame of pandas or polars, or a table with __arrow_c_stream__

class Error(RuntimeError): ...
class InputError(Error, ValueError): ...
class BudgetError(Error): ...
class InterruptedRun(KeyboardInterrupt): ...

class Mechanism:
    def to_dict(self) -> dict[str, Any]: ...

class Gaussian(Mechanism):
    sigma: float
    steps: int
    def __init__(self, sigma: float, steps: int = 1) -> None: ...

class PoissonGaussian(Mechanism):
    q: float
    sigma: float
    steps: int
    def __init__(self, q: float, sigma: float, steps: int = 1) -> None: ...

class FixedSizeGaussian(Mechanism):
    n: int
    batch: int
    sigma: float
    steps: int
    def __init__(self, n: int, batch: int, sigma: float, steps: int = 1) -> None: ...

class TruncatedPoissonGaussian(Mechanism):
    n: int
    q: float
    max_batch: int
    sigma: float
    steps: int
    def __init__(self, n: int, q: float, max_batch: int, sigma: float, steps: int = 1) -> None: ...

class AllocatedGaussian(Mechanism):
    steps_per_epoch: int
    sigma: float
    epochs: int
    def __init__(self, steps_per_epoch: int, sigma: float, epochs: int = 1) -> None: ...

class GaussianMixture(Mechanism):
    sensitivities: Sequence[float]
    probabilities: Sequence[float]
    sigma: float
    steps: int
    def __init__(
        self,
        sensitivities: Sequence[float],
        probabilities: Sequence[float],
        sigma: float,
        steps: int = 1,
    ) -> None: ...

class Laplace(Mechanism):
    scale: float
    steps: int
    def __init__(self, scale: float, steps: int = 1) -> None: ...

class PoissonLaplace(Mechanism):
    q: float
    scale: float
    steps: int
    def __init__(self, q: float, scale: float, steps: int = 1) -> None: ...

class BoundedRange(Mechanism):
    epsilon: float
    steps: int
    def __init__(self, epsilon: float, steps: int = 1) -> None: ...

class ApproximateDp(Mechanism):
    epsilon: float
    delta: float
    steps: int
    def __init__(self, epsilon: float, delta: float, steps: int = 1) -> None: ...

Releases = Union[Mechanism, Iterable[Mechanism]]

class PrivacyBound:
    @property
    def epsilon(self) -> float: ...
    @property
    def delta(self) -> float: ...
    @property
    def epsilon_lower(self) -> float: ...
    @property
    def delta_lower(self) -> float: ...
    @property
    def epsilon_add(self) -> Optional[float]: ...
    @property
    def epsilon_remove(self) -> Optional[float]: ...
    @property
    def delta_add(self) -> Optional[float]: ...
    @property
    def delta_remove(self) -> Optional[float]: ...
    @property
    def interval(self) -> float: ...
    @property
    def order(self) -> float: ...
    @property
    def group(self) -> int: ...
    @property
    def bound(self) -> str: ...

def account(releases: Optional[Releases] = None, **settings: Any) -> Answer: ...
def calibrate(**settings: Any) -> Answer: ...
def compose(
    *runs: Union[Run, Path], delta: Optional[float] = None, fixed_ahead: bool = False
) -> Answer: ...
def from_dp_event(event: Any) -> list[Mechanism]: ...
def from_torch(net: Any, *, public_weights: bool = False) -> dict[str, Any]: ...

class Accountant:
    def __init__(
        self,
        releases: Releases,
        *,
        neighbours: str = "add-or-remove",
        group: int = 1,
        accountant: str = "pld",
        interval: Optional[float] = None,
        orders: Optional[Sequence[float]] = None,
    ) -> None: ...
    @overload
    def epsilon(self, delta: float) -> float: ...
    @overload
    def epsilon(self, delta: npt.ArrayLike) -> npt.NDArray[np.float64]: ...
    @overload
    def delta(self, epsilon: float) -> float: ...
    @overload
    def delta(self, epsilon: npt.ArrayLike) -> npt.NDArray[np.float64]: ...
    @overload
    def epsilon_lower(self, delta: float) -> float: ...
    @overload
    def epsilon_lower(self, delta: npt.ArrayLike) -> npt.NDArray[np.float64]: ...
    @overload
    def delta_lower(self, epsilon: float) -> float: ...
    @overload
    def delta_lower(self, epsilon: npt.ArrayLike) -> npt.NDArray[np.float64]: ...
    def bound(
        self, *, delta: Optional[float] = None, epsilon: Optional[float] = None
    ) -> PrivacyBound: ...

class Budget:
    ledger: Optional[str]
    scores_are_public: bool
    def __init__(
        self,
        epsilon: float,
        delta: float,
        *,
        ledger: Optional[Path] = None,
        scores_are_public: bool = False,
    ) -> None: ...
    def __enter__(self) -> "Budget": ...
    def __exit__(self, *exception: Any) -> None: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def delta(self) -> float: ...
    @property
    def remaining(self) -> float: ...
    @property
    def runs(self) -> list[dict[str, Any]]: ...
    def rest(self, delta: Optional[float] = None, *, size_is_public: bool = False) -> float: ...

class Certificate(dict[str, Any]):
    @property
    def epsilon(self) -> Optional[float]: ...
    @property
    def delta(self) -> float: ...
    @property
    def for_release(self) -> bool: ...
    @property
    def not_for_release(self) -> list[str]: ...
    @property
    def unit(self) -> str: ...
    def to_dp_event(self) -> Any: ...
    @property
    def unsafe_settings(self) -> list[str]: ...

class Progress:
    epoch: float
    step: int
    epsilon: float
    metrics: dict[str, float]

class Run:
    path: pathlib.Path
    @property
    def certificate(self) -> Optional[Certificate]: ...
    @property
    def metrics(self) -> list[dict[str, Any]]: ...
    @property
    def private_metrics(self) -> Optional[list[dict[str, Any]]]: ...
    @property
    def classes(self) -> Optional[npt.NDArray[Any]]: ...
    @property
    def is_finished(self) -> bool: ...
    def resume(
        self,
        data: Optional[Pair] = None,
        *,
        test_data: Optional[Pair] = None,
        on_epoch: Optional[Callable[[Progress], object]] = None,
        verbose: bool = False,
        **settings: Any,
    ) -> Run: ...
    def predict(self, data: Union[npt.ArrayLike, Path], **settings: Any) -> npt.NDArray[Any]: ...
    def predict_proba(
        self, data: Union[npt.ArrayLike, Path], **settings: Any
    ) -> npt.NDArray[np.float32]: ...
    def logits(
        self, data: Union[npt.ArrayLike, Path], **settings: Any
    ) -> npt.NDArray[np.float32]: ...
    def evaluate(
        self,
        data: Union[npt.ArrayLike, Pair, Path],
        y: Optional[npt.ArrayLike] = None,
        **settings: Any,
    ) -> dict[str, Any]: ...
    def to_torch(self) -> Any: ...
    def state_dict(self) -> dict[str, npt.NDArray[np.float32]]: ...

def train(
    data: Union[Pair, Path, Frame, None] = None,
    *,
    epsilon: Optional[float] = None,
    delta: Optional[float] = None,
    test_data: Union[Pair, Path, Frame, None] = None,
    groups: Optional[npt.ArrayLike] = None,
    max_rows: Optional[int] = None,
    bounds: Optional[Pair] = None,
    out: Optional[Path] = None,
    on_epoch: Optional[Callable[[Progress], object]] = None,
    verbose: bool = False,
    **settings: Any,
) -> Run: ...
def resume(
    run: Union[Run, Path],
    data: Optional[Pair] = None,
    *,
    test_data: Optional[Pair] = None,
    on_epoch: Optional[Callable[[Progress], object]] = None,
    verbose: bool = False,
    **settings: Any,
) -> Run: ...
def tune(
    data: Union[Pair, Path, Frame, None] = None,
    *,
    epsilon: Optional[float] = None,
    delta: Optional[float] = None,
    grid: Union[dict[str, Any], Path, None] = None,
    test_data: Union[Pair, Path, Frame, None] = None,
    groups: Optional[npt.ArrayLike] = None,
    max_rows: Optional[int] = None,
    bounds: Optional[Pair] = None,
    out: Optional[Path] = None,
    dry_run: bool = False,
    verbose: bool = False,
    **settings: Any,
) -> Union[Run, dict[str, Any]]: ...
def load(path: Path) -> Run: ...
