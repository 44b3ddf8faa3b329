#!/usr/bin/env python3
"""cudp's accountant beside Google's dp_accounting: the same questions, on this machine, in one run.

    python3 -m venv peers && peers/bin/pip install dp_accounting scipy
    peers/bin/python bench/compare_accountants.py --cudp build/cudp [--rounds 5] [--out FILE.json]

cudp's time is that of a whole process, start to end; dp_accounting's is that of the question alone,
after its imports (which are shown). Best of the rounds; dp_accounting's group of 16 runs once.
"""
import argparse
import json
import platform
import resource
import subprocess
import sys
import time

STEPS, DELTA, Q, SIGMA = 2000, 1e-6, 0.01, 1.0


def cudp(program, *arguments):
    """Seconds of the whole process, its answer."""
    start = time.perf_counter()
    out = subprocess.run([program, *arguments, "--json"], check=True, capture_output=True).stdout
    return time.perf_counter() - start, json.loads(out)


def account(program, steps, group=1):
    return cudp(program, "account", "--q", str(Q), "--sigma", str(SIGMA), "--steps", str(steps),
                "--delta", str(DELTA), "--interval", "1e-4", "--group", str(group))


def timed(question):
    start = time.perf_counter()
    answer = question()
    return time.perf_counter() - start, answer


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--cudp", default="build/cudp")
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--out")
    options = arguments.parse_args()

    program = options.cudp
    ours = [
        ("epsilon, 2000 steps", "epsilon", lambda: account(program, STEPS)),
        ("epsilon, 1e5 steps", "epsilon", lambda: account(program, 10**5)),
        ("groups of 16, 2000 steps", "epsilon", lambda: account(program, STEPS, 16)),
        ("sigma for epsilon 3", "sigma", lambda: cudp(
            program, "calibrate", "--epsilon", "3", "--delta", "1e-5", "--q", "0.0085", "--steps",
            "4680")),
    ]
    rows = []
    for name, key, question in ours:  # before the imports, whose memory a child would be charged
        seconds, answer = min((question() for _ in range(options.rounds)), key=lambda r: r[0])
        rows.append({"question": name, "cudp_seconds": seconds, "cudp": answer[key]})
    megabytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024

    start = time.perf_counter()
    from importlib import metadata
    from dp_accounting import dp_event, mechanism_calibration
    from dp_accounting.pld import PLDAccountant, privacy_loss_distribution
    from scipy import stats
    version = metadata.version("dp_accounting")
    imports = time.perf_counter() - start

    def steps_of(q, sigma, steps):
        sampled = dp_event.PoissonSampledDpEvent(q, dp_event.GaussianDpEvent(sigma))
        return dp_event.SelfComposedDpEvent(sampled, steps)

    def epsilon(steps):
        return PLDAccountant().compose(steps_of(Q, SIGMA, steps)).get_epsilon(DELTA)

    def group_epsilon():
        counts = range(17)
        step = privacy_loss_distribution.from_mixture_gaussian_mechanism(
            SIGMA, [float(j) for j in counts], [stats.binom.pmf(j, 16, Q) for j in counts])
        return step.self_compose(STEPS).get_epsilon_for_delta(DELTA)

    def sigma():
        return mechanism_calibration.calibrate_dp_mechanism(
            PLDAccountant, lambda s: steps_of(0.0085, s, 4680), 3.0, 1e-5,
            bracket_interval=mechanism_calibration.LowerEndpointAndGuess(0.3, 1.0), tol=1e-4)

    theirs = [(lambda: epsilon(STEPS), 3), (lambda: epsilon(10**5), 3), (group_epsilon, 1), (sigma, 1)]
    for row, (question, rounds) in zip(rows, theirs):
        print(f"{row['question']}: cudp {row['cudp_seconds']:.3f} s", file=sys.stderr)
        seconds, answer = min((timed(question) for _ in range(rounds)), key=lambda r: r[0])
        row |= {"dp_accounting_seconds": seconds, "dp_accounting": answer,
                "ratio": seconds / row["cudp_seconds"]}

    print(f"dp_accounting {version}, imports {imports:.2f} s; "
          f"largest cudp process {megabytes:.0f} MB")
    print(f"{'':26}{'cudp':>10}{'dp_accounting':>16}{'ratio':>8}   answers")
    for row in rows:
        print(f"{row['question']:26}{row['cudp_seconds']:8.3f} s{row['dp_accounting_seconds']:14.2f} s"
              f"{row['ratio']:8.0f}   {row['cudp']:.6g} {row['dp_accounting']:.6g}")
    if options.out:
        with open(options.out, "w") as file:
            json.dump({"machine": platform.processor() or platform.machine(),
                       "dp_accounting": version, "import_seconds": imports, "cudp_megabytes": megabytes,
                       "rows": rows}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
