import json
import pathlib
import time

import numpy as np
import pytest

import cudp

GOLDEN = pathlib.Path(__file__).parents[4] / "shared" / "golden" / "accounting.json"

QUESTIONS = [
    {"q": 0.01, "sigma": 1.0, "steps": 2000, "delta": 1e-6},
    {"q": 0.01, "sigma": 1.0, "steps": 2000, "epsilon": 2.0},
    {"q": 0.02, "sigma": 0.8, "steps": 500, "delta": 1e-5, "accountant": "rdp"},
    {"q": 0.02, "sigma": 0.8, "steps": 500, "delta": 1e-5, "neighbours": "add"},
    {"q": 0.02, "sigma": 1.8, "steps": 500, "delta": 1e-5, "neighbours": "replace-one"},
    {"q": 0.01, "sigma": 2.0, "steps": 100, "delta": 1e-5, "group": 3},
    {"sampling": "fixed", "n": 50000, "batch": 500, "sigma": 2.0, "steps": 200, "delta": 1e-6},
    {"examples": 60000, "batch": 512, "epochs": 4, "sigma": 1.1, "delta": 1e-5},
    {"zcdp": 0.1, "delta": 1e-5},
    {"q": 0.001, "sigma": 0.8, "rdp_at": 8.25},
    {"q": 0.01, "sigma": 1.0, "steps": 100, "delta": 1e-6, "groups": 3},
]


def words(settings):
    return [w for key, v in settings.items() for w in (f"--{key.replace('_', '-')}", repr(v).strip("'"))]


@pytest.mark.parametrize("settings", QUESTIONS, ids=lambda s: "-".join(s))
def test_account_is_the_programs_to_the_last_digit(cli_json, settings):
    assert cudp.account(**settings) == cli_json("account", *words(settings))


@pytest.mark.parametrize("settings", [
    {"epsilon": 3.0, "delta": 1e-5, "q": 0.0085, "steps": 4680},
    {"solve": "steps", "epsilon": 3.0, "delta": 1e-5, "q": 0.0085, "sigma": 1.1},
    {"solve": "q", "epsilon": 3.0, "delta": 1e-5, "sigma": 1.1, "steps": 468},
])
def test_calibrate_is_the_programs_to_the_last_digit(cli_json, settings):
    assert cudp.calibrate(**settings) == cli_json("calibrate", *words(settings))


def test_names_of_opacus():
    ours = cudp.account(q=0.01, sigma=1.0, steps=100, delta=1e-6)
    assert cudp.account(sample_rate=0.01, noise_multiplier=1.0, steps=100, delta=1e-6) == ours
    with pytest.raises(cudp.InputError, match="one name of this setting"):
        cudp.account(q=0.01, sample_rate=0.01, sigma=1.0, steps=100, delta=1e-6)


MECHANISMS = [
    cudp.Gaussian(sigma=3.0, steps=2),
    cudp.PoissonGaussian(q=0.01, sigma=1.0, steps=50),
    cudp.TruncatedPoissonGaussian(n=1000, q=0.01, max_batch=30, sigma=1.5, steps=3),
    cudp.GaussianMixture(sensitivities=[0.0, 1.0], probabilities=[0.9, 0.1], sigma=2.0, steps=4),
    cudp.Laplace(scale=20.0),
    cudp.PoissonLaplace(q=0.1, scale=10.0, steps=2),
    cudp.AllocatedGaussian(steps_per_epoch=10, sigma=2.0, epochs=2),
    cudp.BoundedRange(epsilon=0.1),
    cudp.ApproximateDp(epsilon=0.1, delta=1e-8),
]


def test_every_mechanism_is_the_programs(cli_json, in_folder):
    pathlib.Path("phases.json").write_text(json.dumps([m.to_dict() for m in MECHANISMS]))
    theirs = cli_json("account", "--phases", "phases.json", "--delta", "1e-6")
    ours = cudp.account(MECHANISMS, delta=1e-6)
    assert ours == theirs
    assert cudp.Accountant(MECHANISMS).epsilon(1e-6) == theirs["epsilon"]


def test_random_allocation(cli_json):
    settings = {"sampling": "allocation", "steps_per_epoch": 10, "epochs": 2, "sigma": 1.5}
    theirs = cli_json("account", *words({**settings, "delta": 1e-5}))
    assert cudp.account(**settings, delta=1e-5) == theirs
    epochs = cudp.AllocatedGaussian(steps_per_epoch=10, sigma=1.5, epochs=2)
    assert cudp.Accountant(epochs).epsilon(1e-5) == theirs["epsilon"]
    with pytest.raises(cudp.Error, match="no bound is known"):
        cudp.Accountant(epochs, group=2).epsilon(1e-5)


def test_random_allocation_is_no_event_of_dp_accounting():
    pytest.importorskip("dp_accounting")
    release = {"mechanism": "allocated-gaussian", "steps_per_epoch": 4, "sigma": 1.0, "epochs": 2}
    with pytest.raises(cudp.InputError, match="random allocation"):
        cudp.Certificate({"releases": [release]}).to_dp_event()


def test_fixed_size_gaussian(cli_json):
    ours = cudp.account(cudp.FixedSizeGaussian(n=5000, batch=50, sigma=2.0, steps=20), delta=1e-6)
    theirs = cli_json("account", "--sampling", "fixed", "--n", 5000, "--batch", 50, "--sigma", 2.0,
                      "--steps", 20, "--delta", 1e-6)
    assert ours["epsilon"] == theirs["epsilon"]


def test_curves_are_arrays_and_lower_bounds_are_below():
    accountant = cudp.Accountant(cudp.PoissonGaussian(0.01, 1.0, 1000))
    deltas = np.array([[1e-7, 1e-6], [1e-5, 1e-4]])
    epsilons = accountant.epsilon(deltas)
    assert epsilons.shape == (2, 2) and (np.diff(epsilons.ravel()) < 0).all()
    assert (accountant.epsilon_lower(deltas) <= epsilons).all()
    assert accountant.delta(np.array([1.0, 2.0])).shape == (2,)
    bound = accountant.bound(delta=1e-6)
    assert bound.epsilon == max(bound.epsilon_add, bound.epsilon_remove)


def goldens(part):
    if not GOLDEN.is_file():
        pytest.skip(f"no {GOLDEN}")
    return json.loads(GOLDEN.read_text())[part]


@pytest.mark.parametrize("part", ["group_poisson", "group_fixed_size"])
def test_goldens_of_groups(part):
    for g in goldens(part):
        kind = cudp.PoissonGaussian if "q" in g else cudp.FixedSizeGaussian
        fields = {key: g[key] for key in ("q", "n", "batch", "sigma", "steps") if key in g}
        found = cudp.Accountant(kind(**fields), group=g["group"]).bound(delta=g["delta"])
        for name in ("epsilon", "epsilon_add", "epsilon_remove"):
            assert getattr(found, name) == pytest.approx(g[name], rel=1e-3), g


def test_goldens_of_phases():
    for g in goldens("heterogeneous"):
        releases = [cudp.PoissonGaussian(**phase) for phase in g["phases"]]
        assert cudp.Accountant(releases).epsilon(g["delta"]) == pytest.approx(
            g["epsilon_pld"], rel=1e-3)


@pytest.mark.parametrize("q", [0.001, 0.01, 0.1])
@pytest.mark.parametrize("sigma", [0.8, 1.0, 2.0, 3.0, 5.0])
@pytest.mark.parametrize("steps", [10, 100, 1000, 4000])
def test_within_a_thousandth_of_dp_accounting(q, sigma, steps):
    dp_event = pytest.importorskip("dp_accounting.dp_event")
    pld = pytest.importorskip("dp_accounting.pld")
    event = dp_event.SelfComposedDpEvent(
        dp_event.PoissonSampledDpEvent(q, dp_event.GaussianDpEvent(sigma)), steps)
    theirs = pld.PLDAccountant(value_discretization_interval=1e-4).compose(event).get_epsilon(1e-5)
    ours = cudp.Accountant(cudp.from_dp_event(event)).epsilon(1e-5)
    assert ours == pytest.approx(theirs, rel=1e-3, abs=1e-3)


def test_a_certificate_is_checked_by_googles_accountant(rows):
    pytest.importorskip("dp_accounting")
    from dp_accounting import pld

    def theirs(event, delta):
        accountant = pld.PLDAccountant(value_discretization_interval=1e-4)
        return accountant.compose(event).get_epsilon(delta)

    settings = {"epsilon": 2.0, "delta": 1e-5, "classes": 2, "epochs": 2, "batch": 128}
    certificate = cudp.train(rows, size_is_public=True, **settings).certificate
    assert theirs(certificate.to_dp_event(), 1e-5) == pytest.approx(certificate.epsilon, rel=1e-3)
    certificate = cudp.train(rows, **settings).certificate  # the sum of both parts
    assert 1.8 < theirs(certificate.to_dp_event(), 1e-5) < certificate.epsilon
    certificate = cudp.train(rows, method="outpert", size_is_public=True, epsilon=2.0, delta=1e-5,
                             classes=2).certificate
    assert theirs(certificate.to_dp_event(), 1e-5) == pytest.approx(certificate.epsilon, rel=1e-3)


@pytest.mark.parametrize("more, found", [
    ({"tuning": {}}, "the result of a tuning"),
    ({"holdout": {"epsilon": 4.0}}, "noisy figures of held-out rows"),
    ({"keys_lost": 1}, "a run whose key was lost"),
    ({"filter": {}}, "a filter"),
    ({"order_fixed_before": True}, "a filter"),
    ({"status": "not finished"}, "not finished"),
])
def test_no_event_leaves_out_what_epsilon_covers(more, found):
    pytest.importorskip("dp_accounting")
    certificate = {"status": "finished", "releases": [{"q": 0.1, "sigma": 1.0, "steps": 2}], "holdout": {"share": 0.2}}
    cudp.Certificate(certificate).to_dp_event()
    with pytest.raises(cudp.InputError, match=found):
        cudp.Certificate({**certificate, **more}).to_dp_event()


def test_an_event_does_not_stand_for_a_tuning_or_a_hold_out(in_folder):
    pytest.importorskip("dp_accounting")
    x = np.random.default_rng(1).uniform(-3, 3, size=(600, 2))
    pathlib.Path("t.csv").write_text("a,b,y\n" + "".join(f"{a},{b},{int(a > 0)}\n" for a, b in x))
    pathlib.Path("t.toml").write_text('name = "t"\ncolumns = [{name = "a", kind = "numeric", min = -3, max = 3}, '
                                      '{name = "b", kind = "numeric", min = -3, max = 3}, '
                                      '{name = "y", kind = "label", values = ["0", "1"]}]\n')
    settings = {"schema": "t.toml", "delta": 1e-5, "model": "logistic", "epochs": 1, "batch": 20, "threads": 1}
    held = cudp.train("t.csv", epsilon=1.0, holdout=0.3, holdout_epsilon=4.0, holdout_delta=1e-5, **settings)
    assert held.certificate.epsilon == 4.0  # the training's events alone come to less than 1
    with pytest.raises(cudp.InputError, match="held-out rows"):
        held.certificate.to_dp_event()
    tuned = cudp.tune("t.csv", epsilon=2.0, runs=2, grid={"lr": [0.5, 1.0]}, holdout=0.3, jobs=1, **settings)
    with pytest.raises(cudp.InputError, match="a tuning"):
        tuned.certificate.to_dp_event()


def test_events_without_a_counterpart_are_refused():
    dp_event = pytest.importorskip("dp_accounting.dp_event")
    with pytest.raises(cudp.InputError, match="no counterpart"):
        cudp.from_dp_event(dp_event.UnsupportedDpEvent())
    twice = dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(1.0), 2)
    with pytest.raises(cudp.InputError, match="one sample"):
        cudp.from_dp_event(dp_event.PoissonSampledDpEvent(0.1, twice))


@pytest.mark.parametrize("call", [
    lambda: cudp.account(q=2.0, sigma=1.0, steps=1, delta=1e-5),
    lambda: cudp.account(q=0.1),
    lambda: cudp.account(cudp.Laplace(scale=-1.0), delta=1e-5),
    lambda: cudp.account([1], delta=1e-5),
    lambda: cudp.account(cudp.Laplace(1.0), q=0.1, delta=1e-5),
    lambda: cudp.account(sigmaa=1.0),
    lambda: cudp.Accountant(cudp.Laplace(1.0), neighbours="nobody"),
    lambda: cudp.Accountant(cudp.Laplace(1.0)).epsilon(2.0),
    lambda: cudp.account(cudp.Laplace(1.0), zcdp=0.1, delta=1e-5),
])
def test_wrong_questions_are_value_errors(call):
    with pytest.raises(ValueError) as refused:
        call()
    assert isinstance(refused.value, cudp.InputError)


def test_the_programs_sentence(cli):
    said = cli("account", "--q", "2", "--sigma", "1", "--steps", "1", "--delta", "1e-5", expected=2)
    with pytest.raises(cudp.InputError) as refused:
        cudp.account(q=2.0, sigma=1.0, steps=1, delta=1e-5)
    assert said.stderr.strip() == f"cudp: --{refused.value}"


def test_an_unreachable_budget():
    with pytest.raises(cudp.BudgetError):
        cudp.calibrate(solve="q", epsilon=1e-9, delta=1e-12, sigma=1e-3, steps=10**6)


def test_time():
    cudp.Accountant(cudp.PoissonGaussian(0.01, 1.0, 2000)).epsilon(1e-6)
    start = time.process_time()
    cudp.Accountant(cudp.PoissonGaussian(0.01, 1.0, 2000)).epsilon(1e-6)
    assert time.process_time() - start < 0.1
