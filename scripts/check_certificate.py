#!/usr/bin/env python3
"""Epsilon of a certificate (release/privacy.json) by Google's dp_accounting.

Usage: scripts/check_certificate.py FILE

It shares no code with cudp. What the certificate lists under "releases" is composed by privacy loss
distributions and by Renyi divergences, at the training's delta less what that sets aside for
rounding; where it is for units of up to max_rows rows, for groups of so many, for which
dp_accounting has no Renyi divergence of a sample. What it lists of held-out rows is composed at their
own delta. Where the budget was divided between a noisy number of examples and what follows from it, each
part is composed at its own, and both must add up to no more than the training's. The larger epsilon and delta of both parts must be the ones that the certificate states
first. Prints all of them beside what is stated.

Exit code 0: no stated epsilon is below the smaller one found (but for what discretisation adds), and
every number is in its range; 1: something is not; 2: the file cannot be read, or dp_accounting is
not installed.
"""

import json
import logging
import math
import sys

INSTALL = "dp_accounting is missing: python3 -m pip install dp-accounting"
INTERVAL = 1e-4  # of the privacy losses' grid
SLACK = 1e-3  # of epsilon, for what discretisation and a list of orders may add
FAILURE_SHARE = 1e-9  # of delta, at least: what the size of a batch may fail by

POSITIVE = (
    "sigma sensitivity noise_std grid C expected_batch steps steps_planned count times numbers max_rows loss_clip "
    "loss_sensitivity norm_total_noise count_sensitivity count_noise_std gradient_noise_multiplier C_least C_most C_last "
    "sampling_threshold noisy_size training_examples dimensions rho loss_interval output_noise_std output_sensitivity "
    "regulariser max_norm huber generations candidates parents selection_epsilon units examples least most"
).split()
NOT_NEGATIVE = "epsilon training_epsilon epsilon_lower delta_for_rounding rho_spent kappa".split()
SHARES = "delta training_delta q share target".split()
WHOLE = (
    "steps steps_planned count times numbers max_rows sampling_threshold noisy_size training_examples dimensions "
    "generations candidates parents units examples"
).split()


def refuse(message):
    print(f"check_certificate: {message}", file=sys.stderr)
    sys.exit(2)


def out_of_range(value, where=""):
    """Lines about numbers that no certificate can have, wherever they stand."""
    found = []
    if isinstance(value, dict):
        for key, inner in value.items():
            path = f"{where}.{key}" if where else key
            is_number = isinstance(inner, (int, float)) and not isinstance(inner, bool)
            expected = None
            if is_number and not math.isfinite(inner):
                expected = "a finite number"
            elif is_number and key in WHOLE and inner != int(inner):
                expected = "a whole number"
            elif is_number and key in POSITIVE and not inner > 0:
                expected = "a number above 0"
            elif is_number and key in NOT_NEGATIVE and not inner >= 0:
                expected = "a number of at least 0"
            elif is_number and key in SHARES and not 0 < inner <= 1:
                expected = "a number above 0, at most 1"
            elif not is_number and key in ("delta", "sigma", "q", "epsilon") and not isinstance(inner, dict):
                if not (key == "epsilon" and inner is None and "groups" in where):
                    expected = "a number"
            if expected:
                found.append(f"{path}: expected {expected}, found {inner!r}")
            found += out_of_range(inner, path)
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            found += out_of_range(inner, f"{where}[{i}]")
    return found


def releases_of(certificate):
    """Pairs of a kind with its numbers, and how often: ("gaussian", q, sigma) or ("range", epsilon)."""
    found = []
    for release in certificate["releases"]:
        mechanism = release.get("mechanism", "sampled")
        if mechanism == "sampled":
            found.append((("gaussian", release["q"], release["sigma"]), release["steps"]))
        elif mechanism == "gaussian":
            found.append((("gaussian", 1.0, release["sigma"]), release["count"]))
        elif mechanism == "bounded-range":
            found.append((("range", release["epsilon"]), release["count"]))
        else:
            refuse(f"releases by {mechanism} are not known to dp_accounting")
    return found


def holdout_releases(certificate):
    """Noisy figures, and the noisy number of training examples, which counts for both parts."""
    part = certificate["holdout"]
    found = [(("gaussian", 1.0, part["sigma"]), part["releases"])]
    if "size_release" in certificate:
        found.append((("gaussian", 1.0, certificate["size_release"]["noise_std"]), 1))
    return found


def event_of(dp, kind, rows):
    """For a unit of so many rows. A selection of bounded range epsilon is epsilon^2 / 8-zCDP (Cesar,
    Rogers 2021); each row widens the range. Of a sample as many of the rows are drawn as a binomial
    number says, and each moves the sum by 1 at most."""
    if kind[0] == "range":
        return dp.ZCDpEvent(rho=(rows * kind[1]) ** 2 / 8.0)
    _, q, sigma = kind
    if q == 1.0:
        return dp.GaussianDpEvent(sigma / rows)
    if rows == 1:
        return dp.PoissonSampledDpEvent(q, dp.GaussianDpEvent(sigma))
    drawn = [math.comb(rows, j) * q**j * (1.0 - q) ** (rows - j) for j in range(rows + 1)]
    return dp.dp_event.MixtureOfGaussiansDpEvent(sigma, list(range(rows + 1)), drawn)


def epsilons_of(dp, releases, rows, delta):
    """Epsilon by each accountant that knows the releases."""
    relation = dp.NeighboringRelation.ADD_OR_REMOVE_ONE
    gaussian = all(kind[0] == "gaussian" for kind, _ in releases)
    accountants = {}
    if rows == 1 or all(kind[0] == "range" or kind[1] == 1.0 for kind, _ in releases):
        accountants["rdp"] = dp.rdp.RdpAccountant(neighboring_relation=relation)
    elif not gaussian:
        refuse("selections beside samples, for units of several rows, are not known to dp_accounting")
    if gaussian:
        accountants["pld"] = dp.pld.PLDAccountant(relation, value_discretization_interval=INTERVAL)
    found = {}
    for name, accountant in accountants.items():
        for kind, times in releases:
            accountant.compose(event_of(dp, kind, rows), times)
        found[name] = accountant.get_epsilon(delta)
    return found


def parts_of(certificate, releases, failure):
    """Parts of a divided budget: name, (epsilon, delta), releases, the delta that they have; none where it is whole."""
    if "after_size_release" not in certificate:
        return []
    size, after = certificate["size_release"], certificate["after_size_release"]
    count = (("gaussian", 1.0, size["noise_std"]), 1)
    planned = list(releases)
    planned.remove(count)
    promise = (float(size["epsilon"]), float(size["delta"]))
    rest = (float(after["epsilon"]), float(after["delta"]))
    return [("count", promise, [count], promise[1]), ("after it", rest, planned, rest[1] - failure)]


def promises_of(certificate):
    """(epsilon, delta) for all that was released, and of training alone."""
    first = (float(certificate["epsilon"]), float(certificate["delta"]))
    if "holdout" not in certificate:
        return first, first
    return first, (float(certificate["training_epsilon"]), float(certificate["training_delta"]))


def main():
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__.strip(), file=sys.stderr)
        sys.exit(2)
    try:
        with open(sys.argv[1], encoding="utf-8") as file:
            certificate = json.load(file)
        if certificate["format"] != "cudp privacy certificate 2":
            refuse(f"{sys.argv[1]}: expected format 2, found {certificate['format']!r}")
        wrong = out_of_range(certificate)
        if wrong:
            print("\n".join(wrong))
            sys.exit(1)
        if "tuning" in certificate or certificate.get("sampling") == "allocation":
            what = "of a tuning" if "tuning" in certificate else "of random allocation"
            refuse(f"{sys.argv[1]}: expected a certificate that dp_accounting can recompute, found one {what}; "
                   "cudp verify recomputes it")
        releases = releases_of(certificate)
        if not releases:
            refuse(f"{sys.argv[1]}: expected releases, found none")
        whole, training = promises_of(certificate)
        rows = int(certificate.get("max_rows", 1))
        failure = float(certificate.get("delta_for_rounding", 0.0))
        parts = parts_of(certificate, releases, failure)
        held = certificate.get("holdout")
        if held and ("releases" in held) != ("epsilon" in held):
            refuse(f"{sys.argv[1]}: expected releases of held-out rows with an epsilon of theirs, found one")
        releases_figures = held is not None and "releases" in held
        held_releases = holdout_releases(certificate) if releases_figures else []
        held_promise = (float(held["epsilon"]), float(held["delta"])) if releases_figures else (0.0, 0.0)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        refuse(f"{sys.argv[1]}: expected a certificate of cudp, found {problem!r}")
    try:
        import dp_accounting as dp
        import dp_accounting.pld
        import dp_accounting.rdp
    except ImportError:
        refuse(INSTALL)
    logging.getLogger("absl").setLevel(logging.ERROR)  # orders that it leaves out

    def expect(holds, complaint):
        if not holds:
            wrong.append(complaint)

    def compare(what, stated, releases, delta):
        print(f"{what:<11}  epsilon {stated[0]:.6g} at delta {stated[1]:.6g}")
        found = epsilons_of(dp, releases, rows, delta)
        for name, epsilon in found.items():
            print(f"{name:<11}  epsilon {epsilon:.6g}")
        expect(stated[0] >= min(found.values()) * (1.0 - SLACK), f"the epsilon of {what} is too low")

    expect(failure < training[1], f"delta_for_rounding: expected less than delta, found {failure:.6g}")
    if "steps_planned" in certificate:
        # A part of delta pays for what noise does not: a certificate that leaves it out states too little.
        least = training[1] * FAILURE_SHARE * (1.0 - 1e-9)
        expect(failure >= least, f"delta_for_rounding: expected at least {least:.6g}, found {failure:.6g}")
    for i, what in enumerate(("epsilon", "delta") if parts else ()):
        both = parts[0][1][i] + parts[1][1][i]
        expect(both <= training[i], f"{what} of both parts together: expected at most {training[i]:.6g}, found {both:.6g}")
    for part in parts if not wrong else ():
        compare(*part)
    if not parts and not wrong:
        compare("training" if held else "certificate", training, releases, training[1] - failure)
    if releases_figures:
        compare("held out", held_promise, held_releases, held_promise[1])
    if held:
        larger = (max(training[0], held_promise[0]), max(training[1], held_promise[1]))
        print(f"{'certificate':<11}  epsilon {whole[0]:.6g} at delta {whole[1]:.6g}")
        expect(whole[0] >= larger[0] and whole[1] >= larger[1], "the promise for all is below that of a part")
    for line in wrong:
        print(line)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
