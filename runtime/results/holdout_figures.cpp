#include "runtime/results/holdout_figures.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "privacy/rdp/gaussian.hpp"
#include "runtime/base/error.hpp"

namespace cudp {
namespace {

/// Maximum noise multiplier of the test results of held-out rows. Gate, which draws the noise,
/// requires noise below 2^40 grid steps, and the grid (the number to whose multiples sums are
/// rounded) is at most 1.
constexpr double kMaxSigma = 0x1p39;

/// Returns the grid of sums of errors: the power of two to whose multiples each row's error is
/// rounded down, so that no row adds more than 1. It is fine compared with the noise, but not finer
/// than Gate allows.
double error_grid(double sigma) {
  return std::ldexp(1.0, std::clamp(std::ilogb(sigma) - 39, -30, 0));
}

/// Converts a sum from steps of `grid` to steps of `finer`, the same grid or a finer one, modulo
/// 2^64. Computes in integers, because a double cannot represent sums over more than 2^23 rows
/// exactly, and with rounding one row's contribution would depend on other rows.
std::int64_t on_grid(std::uint64_t sum, double grid, double finer) {
  const int bits = std::ilogb(grid) - std::ilogb(finer);
  return bits < 64 ? static_cast<std::int64_t>(sum << bits) : 0;
}

GaussianRelease release_of(const HoldoutPlan& plan, const char* name, std::uint64_t step,
                           double coarsest) {
  return {.name = name,
          .purpose = Stream::holdout_figures,
          .step = step,
          .grid = noise_grid(plan.sigma, coarsest),
          .noise_std = plan.sigma,
          .sensitivity = 1.0,
          .charge = {privacy::Gaussian{plan.sigma}, {}}};
}

double largest_mu(double epsilon, double delta) {
  try {
    return privacy::gaussian_mu(epsilon, delta);
  } catch (const std::domain_error& none) {
    throw BudgetError(std::string("--holdout-epsilon: ") + none.what());
  }
}

void release_confusion(const Predictions& p, Gate& gate, HoldoutFigures& f) {
  const auto n = static_cast<std::size_t>(f.classes);
  const auto outputs = static_cast<std::size_t>(p.outputs);
  std::vector<std::uint64_t> counts(n * n, 0);
  for (std::size_t i = 0; i < p.size(); ++i) {
    const int predicted = predicted_class(p.loss, std::span(p.logits).subspan(i * outputs, outputs),
                                          f.plan.threshold);
    // A row without a valid prediction counts as wrong: its predicted class is set to the class
    // after its label.
    const std::size_t label = p.labels[i];
    ++counts[label * n + (predicted >= 0 ? static_cast<std::size_t>(predicted) : (label + 1) % n)];
  }
  const GaussianRelease r = release_of(f.plan, "confusion matrix of held-out rows", 0, 1.0);
  std::vector<std::int64_t> sums;
  sums.reserve(counts.size());
  for (const std::uint64_t count : counts) sums.push_back(on_grid(count, 1.0, r.grid));
  f.noisy = gate.release(r, sums);
  f.bars = error_bars(NoisyConfusion{.classes = f.classes,
                                     .noisy = f.noisy,
                                     .noise_std = f.plan.sigma,
                                     .unit_rows = f.plan.unit_rows});
}

void release_errors(const Predictions& p, const TargetBounds& bounds, Gate& gate,
                    HoldoutFigures& f) {
  // A row adds at most 2^30, so sums over 2^33 rows fit into 63 bits.
  std::array<std::uint64_t, kTargetFigures> sums{};
  const double width = bounds.max - bounds.min;
  const double grid = error_grid(f.plan.sigma);
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double error = std::fabs(bounds.value(static_cast<double>(p.logits[i])) -
                                   bounds.value(static_cast<double>(p.targets[i]))) /
                         width;
    const double e = error <= 1.0 ? error : 1.0;  // also if there is no prediction
    const double powers[] = {1.0, e, e * e, e * e * e * e};
    for (std::size_t j = 0; j < kTargetFigures; ++j)
      sums[j] += static_cast<std::uint64_t>(powers[j] / grid);
  }
  static constexpr const char* kNames[] = {
      "number of held-out rows", "absolute errors of held-out rows",
      "squared errors of held-out rows", "fourth powers of errors of held-out rows"};
  for (std::size_t j = 0; j < kTargetFigures; ++j) {
    const GaussianRelease r = release_of(f.plan, kNames[j], j, grid);
    f.noisy.push_back(gate.release(r, on_grid(sums[j], grid, r.grid)));
  }
  f.bars = error_bars(NoisyErrors{.rows = f.noisy[0],
                                  .distances = f.noisy[1],
                                  .squares = f.noisy[2],
                                  .fourth_powers = f.noisy[3],
                                  .width = width,
                                  .noise_std = f.plan.sigma,
                                  .unit_rows = f.plan.unit_rows});
}

}  // namespace

HoldoutPlan plan_holdout(double share, double epsilon, double delta, bool target, double size_noise,
                         std::uint64_t unit_rows) {
  HoldoutPlan plan{.share = share,
                   .epsilon = epsilon,
                   .delta = delta,
                   .releases = target ? kTargetFigures : 1,
                   .unit_rows = unit_rows};
  // Gaussian releases with mu_i compose to one with mu^2 = sum of mu_i^2. A unit of privacy with k
  // rows has k times the sensitivity of a row.
  const double all = largest_mu(epsilon, delta) / static_cast<double>(unit_rows);
  const double of_size = size_noise > 0.0 ? 1.0 / size_noise : 0.0;
  if (!(all * (1.0 - 1e-9) > of_size))
    throw BudgetError(
        "--holdout-epsilon: the noisy number of training examples uses up all of it. Give a larger "
        "epsilon.");
  plan.sigma = std::sqrt(static_cast<double>(plan.releases) / ((all - of_size) * (all + of_size))) *
               (1.0 + 1e-9);
  if (!(plan.sigma < kMaxSigma))
    throw BudgetError(
        "--holdout-epsilon: the noise would hide the figures completely. Give a larger epsilon.");
  return plan;
}

HoldoutFigures release_holdout(const HoldoutPlan& plan, const Predictions& predictions, int classes,
                               const TargetBounds& bounds, Gate& gate) {
  HoldoutFigures f{.plan = plan, .classes = classes, .noisy = {}, .bars = {}};
  if (classes == 1)
    release_errors(predictions, bounds, gate, f);
  else
    release_confusion(predictions, gate, f);
  return f;
}

nlohmann::ordered_json to_json(const HoldoutFigures& f, const std::vector<std::string>& classes) {
  nlohmann::ordered_json j = {{"share", f.plan.share},
                              {"epsilon", f.plan.epsilon},
                              {"delta", f.plan.delta},
                              {"noise_std", f.plan.sigma},
                              {"releases", f.plan.releases}};
  if (f.plan.threshold) j["threshold"] = *f.plan.threshold;
  if (f.classes == 1) {
    static constexpr const char* kNames[] = {"rows", "absolute_errors", "squared_errors",
                                             "fourth_powers"};
    for (std::size_t i = 0; i < f.noisy.size(); ++i) j["sums_over_width"][kNames[i]] = f.noisy[i];
  } else {
    j["classes"] = classes;
    const auto n = static_cast<std::size_t>(f.classes);
    for (std::size_t k = 0; k < n; ++k)
      j["confusion"].push_back(
          std::vector<double>(f.noisy.begin() + static_cast<std::ptrdiff_t>(k * n),
                              f.noisy.begin() + static_cast<std::ptrdiff_t>((k + 1) * n)));
  }
  j["bars"] = nlohmann::ordered_json::array();
  for (const ErrorBar& b : f.bars)
    j["bars"].push_back({{"metric", b.name}, {"value", b.value}, {"low", b.low}, {"high", b.high}});
  j["bars_are"] =
      "bounds that hold in 95 of 100 runs for the population that the rows are drawn from: which "
      "rows were held out, and noise, are both in";
  return j;
}

}  // namespace cudp
