#!/usr/bin/env python3
"""Epsilon of a certificate (release/privacy.json) by Google's dp_accounting.

Usage: scripts/check_certificate.py FILE

It shares no code with cudp. What the certificate lists under "releases" is composed by privacy loss
distributions and by Renyi divergences, at the certificate's delta less what that sets aside for
rounding; where it is for units of up to max_rows rows, for groups of so many, for which
dp_accounting has no Renyi divergence of a sample. Prints both, beside the epsilon that the certificate states. Exit code 0: it is not below
the smaller of the two (but for what discretisation adds); 1: it is; 2: it cannot be read, or
dp_accounting is not installed.
"""

import json
import logging
import math
import sys

INSTALL = "dp_accounting is missing: python3 -m pip install dp-accounting"
INTERVAL = 1e-4  # of the privacy losses' grid
SLACK = 1e-3  # of epsilon, for what discretisation and a list of orders may add


def refuse(message):
    print(f"check_certificate: {message}", file=sys.stderr)
    sys.exit(2)


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


def main():
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__.strip(), file=sys.stderr)
        sys.exit(2)
    try:
        with open(sys.argv[1], encoding="utf-8") as file:
            certificate = json.load(file)
        releases = releases_of(certificate)
        stated = float(certificate["epsilon"])
        rows = int(certificate.get("max_rows", 1))
        delta = float(certificate["delta"]) - float(certificate.get("delta_for_rounding", 0.0))
    except (OSError, ValueError, KeyError, TypeError) as problem:
        refuse(f"{sys.argv[1]}: expected a certificate of cudp, found {problem!r}")
    try:
        import dp_accounting as dp
        from dp_accounting.pld import PLDAccountant
        from dp_accounting.rdp import RdpAccountant
    except ImportError:
        refuse(INSTALL)

    logging.getLogger("absl").setLevel(logging.ERROR)  # orders that it leaves out
    relation = dp.NeighboringRelation.ADD_OR_REMOVE_ONE
    gaussian = all(kind[0] == "gaussian" for kind, _ in releases)
    accountants = {}
    if rows == 1 or all(kind[0] == "range" or kind[1] == 1.0 for kind, _ in releases):
        accountants["rdp"] = RdpAccountant(neighboring_relation=relation)
    elif not gaussian:
        refuse("selections beside samples, for units of several rows, are not known to dp_accounting")
    if gaussian:
        accountants["pld"] = PLDAccountant(relation, value_discretization_interval=INTERVAL)
    found = {}
    for name, accountant in accountants.items():
        for kind, times in releases:
            accountant.compose(event_of(dp, kind, rows), times)
        found[name] = accountant.get_epsilon(delta)
    print(f"certificate  epsilon {stated:.6g} at delta {certificate['delta']:.6g}")
    for name, epsilon in found.items():
        print(f"{name:<11}  epsilon {epsilon:.6g}")
    if stated < min(found.values()) * (1.0 - SLACK):
        print("the certificate's epsilon is too low")
        sys.exit(1)


if __name__ == "__main__":
    main()
