#!/usr/bin/env python3
"""Faults in places that pass a noise, a sensitivity, a rate, a step, a count or a charge: which of
them do settings made by machine and checked transcripts catch?

A copy of the sources gets all faults at once, each asleep; one build, and the tests run once for
each fault that the environment wakes (CUDP_FAULT=PLACE:KIND).
Usage: scripts/faults.py [FIRST [LAST]]    faults of these numbers; all if not given
FAULT_SETTINGS (default 120): how many settings a fault has to survive.
"""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build-faults"
SOURCES = BUILD / "src"

LESS, MORE, NEXT, BEFORE, NONE = "x0.9", "x1.1", "+1", "-1", "0"
BOTH = [LESS, MORE]
NUMBERS = [NEXT, BEFORE]

# File, a text that occurs once, the expression in it that is changed, how.
PLACES = [
    ("runtime/methods/engine_method.cpp", "  s.sampling_threshold = plan_.sampling_threshold;", "plan_.sampling_threshold", BOTH + NUMBERS),
    ("runtime/methods/engine_method.cpp", "s.clip.max_norm = float_below(plan_.clip_norm);", "float_below(plan_.clip_norm)", [MORE]),
    ("runtime/methods/engine_method.cpp", "budget.fresh_key(ledger_index(step));", "ledger_index(step)", [NEXT]),
    ("runtime/methods/engine_method.cpp", "budget.authorise(ledger_index(step), releases_of(step, end))", "end", [BEFORE]),
    ("runtime/methods/engine_method.cpp", "return {releases_of(step, step + 1).at(0).mechanism, ledger_index(step)};", "ledger_index(step)", NUMBERS),
    ("runtime/methods/engine_method.cpp", "sums.q = plan_.sampling_rate();", "plan_.sampling_rate()", BOTH),
    ("runtime/methods/engine_method.cpp", "sums.sampling_threshold = plan_.sampling_threshold;", "plan_.sampling_threshold", BOTH + NUMBERS),
    ("runtime/methods/engine_method.cpp", "sums.sigma = plan_.noise_multiplier;", "plan_.noise_multiplier", BOTH),
    ("runtime/methods/engine_method.cpp", "sums.clip_norm = plan_.clip_norm;", "plan_.clip_norm", BOTH),
    ("runtime/methods/engine_method.cpp", "sums.sensitivity = plan_.sensitivity;", "plan_.sensitivity", BOTH),
    ("runtime/methods/engine_method.cpp", "sums.noise_std = plan_.noise_multiplier * plan_.sensitivity;", "plan_.noise_multiplier * plan_.sensitivity", BOTH),
    ("runtime/methods/engine_method.cpp", "sums.expected_batch = plan_.expected_batch;", "plan_.expected_batch", BOTH),
    ("runtime/methods/engine_method.cpp", "sums.steps = steps_charged(ledger);", "steps_charged(ledger)", NUMBERS),
    ("runtime/methods/engine_method.cpp", "const double delta = sums.bound.delta;", "sums.bound.delta", BOTH),
    ("runtime/methods/engine_method.cpp", ": fixed_ahead   ? sums.bound.epsilon", "sums.bound.epsilon", [LESS]),
    ("runtime/methods/engine_method.cpp", "ledger.budget() ? ledger.budget()->epsilon", "ledger.budget()->epsilon", [LESS]),
    ("runtime/methods/schedule.cpp", "s.noise_std = float_above(plan_.noise_std_at(step));", "float_above(plan_.noise_std_at(step))", BOTH),
    ("runtime/methods/schedule.cpp", "s.noise_std = float_above(plan_.noise_std_at(step));", "step", NUMBERS),
    ("runtime/methods/schedule.cpp", "s.inverse_batch = static_cast<float>(1.0 / plan_.expected_batch);", "plan_.expected_batch", BOTH),
    ("runtime/methods/schedule.cpp", "s.learning_rate = static_cast<float>(learning_rate(step));", "learning_rate(step)", BOTH),
    ("runtime/methods/schedule.cpp", "s.learning_rate = static_cast<float>(learning_rate(step));", "step", [NEXT]),
    ("runtime/methods/schedule.cpp", "const double t = static_cast<double>(step) + 1.0;", "static_cast<double>(step) + 1.0", [NEXT]),
    ("runtime/methods/schedule.cpp", "s.ema_decay = static_cast<float>(std::fmin(c.ema, t / (t + 9.0)));", "std::fmin(c.ema, t / (t + 9.0))", BOTH),
    ("runtime/methods/plan.hpp", "return noise_multiplier_at(step) * sensitivity;", "sensitivity", BOTH),
    ("runtime/methods/plan.hpp", "return static_cast<double>(sampling_threshold) * 0x1p-32;", "static_cast<double>(sampling_threshold)", BOTH),
    ("runtime/methods/plan.cpp", "return span == noise.end() ? noise_multiplier : noise_multiplier * span->scale;", "noise_multiplier * span->scale", BOTH),
    ("runtime/methods/plan.cpp", "plan.noise_multiplier_at(first)", "plan.noise_multiplier_at(first)", BOTH),
    ("runtime/methods/plan.cpp", "plan.noise_multiplier_at(first)", "first", [NEXT]),
    ("runtime/methods/plan.cpp", "end - first});", "end - first", NUMBERS),
    ("runtime/methods/make_plan.cpp", "std::ceil(batch / size.value * 0x1p32)", "size.value", BOTH),
    ("runtime/methods/make_plan.cpp", "plan.expected_batch = batch;", "batch", BOTH),
    ("runtime/methods/make_plan.cpp", "plan.sensitivity = plan.clip_norm *", "plan.clip_norm", [LESS]),
    ("runtime/methods/make_plan.cpp", "plan.delta = *config.delta;", "*config.delta", BOTH),
    ("runtime/methods/dpsgd_quantile.cpp", "return plan().noise_multiplier / std::sqrt(1.0 - options().noise_share);", "plan().noise_multiplier", BOTH),
    ("runtime/methods/dpsgd_quantile.cpp", "return plan().noise_multiplier / (2.0 * std::sqrt(options().noise_share));", "plan().noise_multiplier", BOTH),
    ("runtime/methods/dpsgd_quantile.cpp", ".noise_std = count_noise(),", "count_noise()", BOTH),
    ("runtime/methods/dpsgd_quantile.cpp", ".sensitivity = 0.5,", "0.5", BOTH),
    ("runtime/methods/dpsgd_quantile.cpp", ".step = t,", "t", NUMBERS),
    ("runtime/methods/dpsgd_quantile.cpp", "s.noise_std = float_above(gradient_noise_multiplier() * c * rounding);", "gradient_noise_multiplier() * c * rounding", BOTH),
    ("runtime/methods/dpsgd_quantile.cpp", "const double share = noisy_count / plan().expected_batch + 0.5;", "plan().expected_batch", BOTH),
    ("runtime/methods/adp_sgd.cpp", "return std::sqrt(c.lr / learning_rate(c, steps, steps_per_epoch, step));", "step", [NEXT]),
    ("runtime/methods/dpis.cpp", "return epoch_.sigma * epoch_.clip * size() / epoch_.total;", "epoch_.sigma", BOTH),
    ("runtime/methods/dpis.cpp", "const float noise = float_above(noise_multiplier() * (1.0 + rounding_error()));", "noise_multiplier()", BOTH),
    ("runtime/methods/dpis.cpp", "s.inverse_batch = static_cast<float>(epoch_.total / (size() * plan().expected_batch));", "epoch_.total", BOTH),
    ("runtime/methods/dpis.cpp", ".rate = plan().expected_batch / epoch_.total};", "epoch_.total", BOTH),
    ("runtime/methods/dpis.cpp", "const double noise = plan().epoch_noise * most * (1.0 + kSumRounding);", "plan().epoch_noise", BOTH),
    ("runtime/methods/dpis.cpp", ".sensitivity = most,", "most", BOTH),
    ("runtime/methods/dpis.cpp", ".charge = {privacy::Gaussian{plan().epoch_noise}, number}},", "plan().epoch_noise", [MORE]),
    ("runtime/methods/dp_agd.cpp", "const double sigma = 1.0 / std::sqrt(2.0 * rho);", "rho", BOTH),
    ("runtime/methods/dp_agd.cpp", ".charge = {privacy::Gaussian{sigma}, number}};", "sigma", [MORE]),
    ("runtime/methods/dp_agd.cpp", "const double epsilon = noisy_min_epsilon(settings_.rho_selection, settings_.selection);", "settings_.rho_selection", BOTH),
    ("runtime/gate/gate.cpp", "const double s = r.noise_std / r.grid;  // exact", "r.noise_std", BOTH),
    ("runtime/gate/gate.cpp", "const RandomStream stream{generator_, key_.key(), r.purpose, r.step};", "r.step", NUMBERS),
    ("runtime/gate/gate.cpp", "rounded_normals(stream, s, static_cast<std::int64_t>(at), part.size());", "s", BOTH),
    ("runtime/gate/privacy_budget.cpp", "at->count += charge.count;", "charge.count", [BEFORE]),
    ("runtime/gate/privacy_budget.cpp", "const std::uint64_t end = first + release.count;", "release.count", [BEFORE, NONE]),
    ("runtime/gate/privacy_budget.cpp", "ledger_.fresh_key(number);", "number", [NEXT]),
    ("runtime/methods/training_size.cpp", ".noise_std = noise,", "noise", BOTH),
    ("runtime/methods/training_size.cpp", ".charge = {privacy::Gaussian{noise}, {}}},", "noise", [MORE]),
    ("runtime/methods/training_size.cpp", "units_of(n, grid));", "n", BOTH + NUMBERS),
    ("runtime/device/cpu/cpu_engine.cpp", "const Leaving what = released_sum(step_, grid_, scalars_.noise_std);", "scalars_.noise_std", BOTH),
    ("runtime/device/cpu/cpu_engine.cpp", "                            .noise_std = scalars_.noise_std,", "scalars_.noise_std", BOTH),
    ("runtime/device/cpu/cpu_engine.cpp", ".noise = stream(Stream::noise, step_),", "step_", NUMBERS),
    ("runtime/device/cpu/cpu_engine.cpp", "counts[i] = k_.sample({.stream = stream(Stream::sampling, step),", "step", NUMBERS),
    ("runtime/device/cpu/cpu_engine.cpp", "                             .threshold = settings_.sampling_threshold,", "settings_.sampling_threshold", BOTH),
    ("runtime/device/cpu/cpu_engine.cpp", "const auto inverse_grid = static_cast<float>(1.0 / grid_);", "1.0 / grid_", [MORE]),
    ("runtime/training/training.cpp", "method_->fresh_key(budget_, step_);", "step_", [NEXT]),
    ("runtime/results/certificate.cpp", "{\"times\", l.times},", "l.times", NUMBERS),
    ("runtime/results/certificate.cpp", "{\"noise_std\", l.noise_std},", "l.noise_std", BOTH),
    ("runtime/results/certificate.cpp", "{\"sensitivity\", l.sensitivity},", "l.sensitivity", BOTH),
    ("runtime/methods/releases_before.cpp", "all.push_back({privacy::Gaussian{size.noise}, 1});", "size.noise", BOTH),
    ("runtime/methods/releases_before.cpp", "all.push_back({privacy::Gaussian{noise}, 1});", "noise", BOTH),
]

HEADER = """#pragma once
// Written by scripts/faults.py.
#include <cstdlib>
#include <string>
namespace cudp {
template <class T>
T fault(int place, T x) {
  static const std::string awake = std::getenv("CUDP_FAULT") ? std::getenv("CUDP_FAULT") : "";
  if (awake.empty() || std::stoi(awake) != place) return x;
  const std::string kind = awake.substr(awake.find(':') + 1);
  if (kind == "x0.9") return static_cast<T>(static_cast<double>(x) * 0.9);
  if (kind == "x1.1") return static_cast<T>(static_cast<double>(x) * 1.1);
  if (kind == "+1") return static_cast<T>(x + T(1));
  if (kind == "-1") return x > T(0) ? static_cast<T>(x - T(1)) : x;
  return T(0);
}
}  // namespace cudp
"""


def copy_sources():
    SOURCES.mkdir(parents=True, exist_ok=True)
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    texts = {}
    for name in files.stdout.split("\n"):
        if name and (ROOT / name).is_file():
            texts[name] = (ROOT / name).read_bytes()
    places = {}
    for number, (name, text, expression, _) in enumerate(PLACES):
        source = texts[name].decode()
        if source.count(text) != 1:
            sys.exit(f"faults.py: expected once in {name}, found {source.count(text)} times: {text}")
        at = source.index(text)
        word = re.search(r"(?<![\w.>])" + re.escape(expression) + r"(?![\w(])", text)
        if word is None:
            sys.exit(f"faults.py: expected {expression} in: {text}")
        begin, end = at + word.start(), at + word.end()
        places.setdefault(name, []).append((begin, end, number))
    for name, spots in places.items():
        source = texts[name].decode()
        inserts = []
        for begin, end, number in spots:
            inserts.append((begin, 1, -end, f"fault({number}, "))
            inserts.append((end, 0, -begin, ")"))
        for at, _, _, insert in sorted(inserts, reverse=True):
            source = source[:at] + insert + source[at:]
        pragma = "#pragma once\n"
        head = '#include "faults.hpp"\n'
        source = source.replace(pragma, pragma + head, 1) if source.startswith(pragma) else head + source
        texts[name] = source.encode()
    texts["faults.hpp"] = HEADER.encode()
    for name, content in texts.items():
        path = SOURCES / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)


def main():
    copy_sources()
    build = BUILD / "build"
    subprocess.run(["cmake", "-S", SOURCES, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                    "-DCUDP_CUDA=OFF", "-DCUDP_TESTS=ON", "-DCUDP_BENCH=OFF", "-DCUDP_UNITY=ON"],
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", build, "--target", "cudp_tests", "cudp"], check=True)
    faults = [(place, kind) for place, (_, _, _, kinds) in enumerate(PLACES) for kind in kinds]
    first = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    last = int(sys.argv[2]) if len(sys.argv) > 2 else len(faults) - 1
    survivors = 0
    for number in range(first, last + 1):
        place, kind = faults[number]
        name, text, expression, _ = PLACES[place]
        environment = dict(os.environ, CUDP_FAULT=f"{place}:{kind}", CUDP_FIRST_FAULT="1",
                           CUDP_SETTINGS=os.environ.get("FAULT_SETTINGS", "120"))
        caught, rule = False, None
        for tests in ("RandomSettings*", "*Checked*:*FreshNoise*"):
            run = subprocess.run([build / "tests/cudp_tests", "--gtest_brief=1",
                                  "--gtest_fail_fast", "--gtest_filter=" + tests],
                                 env=environment, capture_output=True, text=True, cwd=build)
            caught = run.returncode != 0
            if caught:
                rule = re.search(r"\n(\w[^;\n]*);", run.stdout)
                break
        survivors += not caught
        print(f"{number:3} {'caught  ' if caught else 'SURVIVED'} {kind:4} {name}: {expression}"
              + (f"  [{rule.group(1)[:60]}]" if rule else ""), flush=True)
    print(f"{last + 1 - first} faults, {survivors} survived")
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()
