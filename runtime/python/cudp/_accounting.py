"""What releases of noisy values cost, and what noise a budget needs."""

import dataclasses
import json
from typing import ClassVar, Sequence

import numpy as np

from . import _core
from ._settings import accountant_settings, named


class Answer(dict):
    """Values that cudp computed. Each is an item and an attribute: answer["epsilon"], answer.epsilon."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __dir__(self):
        return sorted({*super().__dir__(), *self})


@dataclasses.dataclass(frozen=True)
class Mechanism:
    """`steps` releases of one mechanism. sigma is the noise multiplier: the standard deviation of
    the noise, divided by the largest change of the sum by one example."""

    _name: ClassVar[str] = ""

    def to_dict(self):
        """Returns the mechanism as a dict, in the form of an entry of a file for `cudp account --phases`."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {"mechanism": self._name, **fields}


@dataclasses.dataclass(frozen=True)
class Gaussian(Mechanism):
    """Sum over the whole data set plus Gaussian noise."""

    sigma: float
    steps: int = 1
    _name: ClassVar[str] = "gaussian"


@dataclasses.dataclass(frozen=True)
class PoissonGaussian(Mechanism):
    """Sum over a Poisson sample plus Gaussian noise: DP-SGD. q: sampling rate."""

    q: float
    sigma: float
    steps: int = 1
    _name: ClassVar[str] = "poisson-gaussian"


@dataclasses.dataclass(frozen=True)
class FixedSizeGaussian(Mechanism):
    """Sum over `batch` of n examples, drawn without replacement, plus Gaussian noise."""

    n: int
    batch: int
    sigma: float
    steps: int = 1
    _name: ClassVar[str] = "fixed-size-gaussian"


@dataclasses.dataclass(frozen=True)
class TruncatedPoissonGaussian(Mechanism):
    """Like PoissonGaussian, but a batch of more than max_batch examples is cut to a random subset of
    that size. n: number of examples of the larger of two neighbouring data sets."""

    n: int
    q: float
    max_batch: int
    sigma: float
    steps: int = 1
    _name: ClassVar[str] = "truncated-poisson-gaussian"


@dataclasses.dataclass(frozen=True)
class AllocatedGaussian(Mechanism):
    """`epochs` of random allocation: each example is in one batch of each epoch, chosen uniformly
    among its steps, and every batch's sum has Gaussian noise."""

    steps_per_epoch: int
    sigma: float
    epochs: int = 1
    _name: ClassVar[str] = "allocated-gaussian"


@dataclasses.dataclass(frozen=True)
class GaussianMixture(Mechanism):
    """Gaussian noise on a sum that one example moves by sensitivities[i] with probability
    probabilities[i]."""

    sensitivities: Sequence[float]
    probabilities: Sequence[float]
    sigma: float
    steps: int = 1
    _name: ClassVar[str] = "gaussian-mixture"


@dataclasses.dataclass(frozen=True)
class Laplace(Mechanism):
    """Laplace noise of this scale on a number that one example changes by at most 1."""

    scale: float
    steps: int = 1
    _name: ClassVar[str] = "laplace"


@dataclasses.dataclass(frozen=True)
class PoissonLaplace(Mechanism):
    """Laplace noise on a number computed from a Poisson sample."""

    q: float
    scale: float
    steps: int = 1
    _name: ClassVar[str] = "poisson-laplace"


@dataclasses.dataclass(frozen=True)
class BoundedRange(Mechanism):
    """The exponential mechanism, or report-noisy-max."""

    epsilon: float
    steps: int = 1
    _name: ClassVar[str] = "bounded-range"


@dataclasses.dataclass(frozen=True)
class ApproximateDp(Mechanism):
    """A mechanism that is (epsilon, delta)-DP, of which no more is known."""

    epsilon: float
    delta: float
    steps: int = 1
    _name: ClassVar[str] = "approximate-dp"


def _number(value):
    return value.tolist() if hasattr(value, "tolist") else list(value)


def _releases_json(releases):
    if releases is None:
        return ""
    if isinstance(releases, Mechanism):
        releases = [releases]
    listed = []
    for release in releases:
        if not isinstance(release, Mechanism):
            raise _core.InputError(
                "releases: expected mechanisms, such as cudp.PoissonGaussian(q, sigma, steps), "
                f"found {type(release).__name__}"
            )
        listed.append(release.to_dict())
    return json.dumps(listed, default=_number)


def account(releases=None, **settings):
    """Epsilon at a given delta, or delta at a given epsilon, with the settings of
    `cudp account`.

    releases: a mechanism or a list of them; or none, and q (sample_rate), sigma (noise_multiplier)
    and steps, or examples, batch and epochs.

    >>> account(sample_rate=0.01, noise_multiplier=1.0, steps=2000, delta=1e-6).epsilon
    """
    ours, others = accountant_settings(settings)
    with named(others):
        return Answer(json.loads(_core.account(ours, _releases_json(releases))))


def calibrate(**settings):
    """The noise (or with `solve` the steps, rate, batch or delta) for a budget, with the settings
    of `cudp calibrate`. The answer is on the safe side.

    >>> calibrate(epsilon=3, delta=1e-5, examples=60000, batch=512, epochs=40).sigma
    """
    ours, others = accountant_settings(settings)
    with named(others):
        return Answer(json.loads(_core.calibrate(ours)))


def compose(*runs, delta=None, fixed_ahead=False):
    """Returns the epsilon that several runs on the same data spend together, as `cudp account RUN RUN`
    computes it.

    runs: Run objects or paths. fixed_ahead: True if no setting of a run was chosen after looking at
    another run.
    """
    paths = [str(getattr(run, "path", run)) for run in runs]
    for path in paths[1:]:
        if "," in path:  # it would count as two paths, perhaps of other runs
            raise _core.InputError(
                f"compose: expected paths without a comma, found {path!r}; give the folder another name, "
                "or a link to it"
            )
    settings = {"delta": delta, "fixed_ahead": fixed_ahead or None}
    if paths:
        settings["run"] = paths[0]
    if len(paths) > 1:
        settings["other_runs"] = "".join("\n" + path for path in paths[1:])
    return account(**settings)


class Accountant:
    """Bounds the privacy of releases. Expensive intermediate results are kept between calls.

    neighbours: "add-or-remove", "add", "remove" or "replace-one". group: how many examples
    neighbours differ by. accountant: "pld", "rdp" or "advanced". interval, orders: as in
    `cudp account`.
    """

    def __init__(self, releases, *, neighbours="add-or-remove", group=1, accountant="pld",
                 interval=None, orders=None):
        settings, _ = accountant_settings(
            {"neighbours": neighbours, "group": group, "accountant": accountant,
             "interval": interval, "orders": orders}
        )
        self._core = _core.Accountant(_releases_json(releases), settings)

    def epsilon(self, delta):
        """An upper bound on epsilon at delta: a number, or an array for an array of deltas."""
        return self._each(delta, self._core.epsilon, self._core.epsilons, "epsilon")

    def delta(self, epsilon):
        """An upper bound on delta at epsilon: a number, or an array for an array of epsilons."""
        return self._each(epsilon, self._core.delta, self._core.deltas, "delta")

    def epsilon_lower(self, delta):
        """A lower bound on epsilon at delta; 0 if the accountant has none."""
        return self._each(delta, self._core.epsilon, self._core.epsilons, "epsilon_lower")

    def delta_lower(self, epsilon):
        """A lower bound on delta at epsilon; 0 if the accountant has none."""
        return self._each(epsilon, self._core.delta, self._core.deltas, "delta_lower")

    def bound(self, *, delta=None, epsilon=None):
        """The bound at one delta, or at one epsilon, with the bound of each direction, the lower
        bound, and how it was found."""
        if (delta is None) == (epsilon is None):
            raise _core.InputError("bound: expected one of delta and epsilon")
        if delta is not None:
            return self._core.epsilon(float(delta))
        return self._core.delta(float(epsilon))

    @staticmethod
    def _each(given, one, several, field):
        array = np.asarray(given, dtype=np.float64)
        if array.ndim == 0:
            return getattr(one(float(array)), field)
        found = several(array.ravel().tolist())
        return np.array([getattr(b, field) for b in found]).reshape(array.shape)


def _refuse_event(event, why):
    raise _core.InputError(f"from_dp_event: expected an event that cudp bounds, found {event}: {why}")


def _of_event(event, count, rate):
    name = type(event).__name__
    if count == 0 or name == "NoOpDpEvent":
        return []
    if name == "SelfComposedDpEvent":
        return _of_event(event.event, count * event.count, rate)
    if name == "ComposedDpEvent":
        return [m for part in event.events for m in _of_event(part, count, rate)]
    if name == "PoissonSampledDpEvent":
        if rate is not None:
            _refuse_event(event, "it samples a sample")
        inner = event.event
        if type(inner).__name__ in ("SelfComposedDpEvent", "ComposedDpEvent"):
            _refuse_event(event, "several releases from one sample")
        return _of_event(inner, count, event.sampling_probability)
    if name == "SampledWithoutReplacementDpEvent":
        if rate is not None or type(event.event).__name__ != "GaussianDpEvent":
            _refuse_event(event, "only one Gaussian release of such a sample is bounded")
        return [FixedSizeGaussian(n=event.source_dataset_size, batch=event.sample_size,
                                  sigma=event.event.noise_multiplier, steps=count)]
    if name == "GaussianDpEvent":
        sigma = event.noise_multiplier
        return [Gaussian(sigma, count) if rate is None else PoissonGaussian(rate, sigma, count)]
    if name == "LaplaceDpEvent":
        scale = event.noise_multiplier
        return [Laplace(scale, count) if rate is None else PoissonLaplace(rate, scale, count)]
    if name == "EpsilonDeltaDpEvent" and rate is None:
        return [ApproximateDp(event.epsilon, event.delta, count)]
    return _refuse_event(event, "it has no counterpart")


def from_dp_event(event):
    """The mechanisms of an event of dp_accounting, for Accountant and account."""
    return _of_event(event, 1, None)
