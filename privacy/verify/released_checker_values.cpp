#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "privacy/mechanism/mechanism_text.hpp"
#include "privacy/text/number.hpp"
#include "privacy/verify/released_checker.hpp"
#include "privacy/verify/tolerances.hpp"

namespace cudp::verify {
namespace {

using privacy::number;

// Names of released values in a certificate.
constexpr const char* kSizeName = "size of the training set";
constexpr const char* kDiagonalName = "second moments, on the diagonal";
constexpr const char* kBesideName = "second moments, off the diagonal";
constexpr const char* kChannelsName = "moments of the channels";
constexpr const char* kCountName = "count of the gradients that were not clipped";
constexpr const char* kNormsName = "sum of the norms";
constexpr const char* kNextClipName = "sum of the norms for the next clipping norm";
constexpr const char* kGradientName = "sum of clipped gradients";
constexpr const char* kMinimumName = "minimum of the objective";

}  // namespace

void ReleasedChecker::check_sigma() {
  statements_.back().found = c_.noise_std > 0.0 ? "standard deviation " + number(c_.noise_std) +
                                                      " at sensitivity " + number(c_.sensitivity)
                                                : "stated by each release";
  const auto releases = [&](const privacy::Mechanism& m) {
    return std::ranges::find(c_.releases, m, &privacy::Release::mechanism) != c_.releases.end();
  };
  if (is_engine() && !is_method("dpis") && c_.steps > 0) {
    privacy::Mechanism first = privacy::sampled_gaussian_mechanism(c_.q, c_.sigma);
    if (c_.epoch_steps > 0) first = privacy::AllocatedGaussian{c_.epoch_steps, c_.sigma};
    if (!releases(first)) wrong("sigma: expected a release of " + exact_text(first));
  }
  if (is_method("outpert") && c_.status != "refused") {
    expect(c_.noise_std >= c_.sigma * c_.sensitivity * kProductLowerTolerance,
           "noise_std, at least", c_.sigma * c_.sensitivity, c_.noise_std);
    expect(c_.noise_std <= c_.sigma * c_.sensitivity * kHostUpperTolerance, "noise_std, at most",
           c_.sigma * c_.sensitivity, c_.noise_std);
    if (!releases(privacy::Gaussian{c_.sigma}))
      wrong("sigma: expected a release by " + number(c_.sigma));
  }
  if (c_.size_noise > 0.0 && !releases(privacy::Gaussian{c_.size_noise}))
    wrong("size_release: expected a release by " + number(c_.size_noise));
  if (c_.feature_noise > 0.0 && !releases(privacy::Gaussian{c_.feature_noise}))
    wrong("feature_release: expected a release by " + number(c_.feature_noise));
}

std::uint64_t ReleasedChecker::paid(double sigma) const {
  std::uint64_t count = 0;
  for (const privacy::Release& r : c_.releases)
    if (r.mechanism == privacy::Mechanism(privacy::Gaussian{sigma})) count += r.count;
  return count;
}

std::uint64_t ReleasedChecker::take(std::vector<privacy::NoisyValue>& rows, std::string_view what,
                                    double sigma) const {
  std::uint64_t times = 0;
  std::erase_if(rows, [&](const privacy::NoisyValue& l) {
    const double multiplier = l.noise_std / l.sensitivity;
    const bool same = l.name == what && multiplier >= sigma * kProductLowerTolerance &&
                      multiplier <= sigma * kHostUpperTolerance;
    if (same) times += l.times;
    return same;
  });
  return times;
}

void ReleasedChecker::expect_times(const std::string& what, std::uint64_t min_times,
                                   std::uint64_t max_times, std::uint64_t found) {
  if (found < min_times || found > max_times)
    wrong(what + ": expected " + std::to_string(max_times) +
          (min_times < max_times ? " or " + std::to_string(min_times) + " at least" : "") +
          ", listed " + std::to_string(found));
}

void ReleasedChecker::check_releases() {
  Statement& s = begin("releases");
  std::uint64_t mechanisms = 0, values = 0;
  for (const privacy::Release& r : c_.releases) mechanisms += r.count;
  for (const privacy::NoisyValue& l : c_.noisy_values) values += l.times;
  s.found = std::to_string(mechanisms) + ", and " + std::to_string(values) +
            " noisy values in addition to the steps";
  std::vector<privacy::NoisyValue> rows = c_.noisy_values;
  add(rules_);
  if (c_.status == "refused") return;
  check_names();
  // If the random key was lost, repeated steps were charged again, but only values that the run
  // uses are listed.
  if (c_.size_noise > 0.0) expect_size(rows);
  if (c_.feature_noise > 0.0) take_features(rows);
  if (c_.quantile) {
    const std::uint64_t counts =
        take(rows, kCountName, c_.quantile->count_noise_std / c_.quantile->count_sensitivity);
    const std::uint64_t steps = c_.steps - c_.repeated_steps();
    expect_times("noisy counts, one a step", steps, steps, counts);
  }
  std::uint64_t totals = 0;
  if (c_.norm_total_noise > 0.0) {
    totals = paid(c_.norm_total_noise);
    take_totals(rows, totals);
  }
  if (is_method("dp-agd") || is_method("outpert")) {
    for (const privacy::Release& r : c_.releases) {
      const auto* gaussian = std::get_if<privacy::Gaussian>(&r.mechanism);
      if (gaussian == nullptr || gaussian->sigma == c_.size_noise ||
          gaussian->sigma == c_.feature_noise)
        continue;
      expect_times("noisy sums by " + number(gaussian->sigma),
                   r.count - std::min(r.count, c_.repeated), r.count,
                   take(rows, is_method("dp-agd") ? kGradientName : kMinimumName, gaussian->sigma));
    }
  }
  for (const privacy::NoisyValue& l : rows) wrong(l.name + ": listed, and no release pays for it");
  if (is_engine()) {
    const std::uint64_t beside =
        (c_.size_noise > 0.0 ? 1u : 0u) + (c_.feature_noise > 0.0 ? 1u : 0u) + totals;
    if (mechanisms * c_.steps_of_release() != c_.steps + beside * c_.steps_of_release())
      wrong("releases: expected " + std::to_string(c_.steps) + " steps and " +
            std::to_string(beside) + " others, found " + std::to_string(mechanisms));
    // If steps were paid for twice, the budget may end before the last planned step.
    const std::uint64_t made = c_.steps - c_.repeated_steps();
    if (!is_method("dpis") &&
        (made > c_.steps_planned || (made < c_.steps_planned && c_.repeated == 0)))
      wrong("steps: expected " + std::to_string(c_.steps_planned) + " as planned, found " +
            std::to_string(made));
  }
  if (is_method("privgene")) check_selections();
}

void ReleasedChecker::take_features(std::vector<privacy::NoisyValue>& rows) {
  const double sigma = c_.feature_noise;
  if (settings_.text("features") != "pca")
    return expect_times(kChannelsName, 1, 1, take(rows, kChannelsName, sigma));
  const auto diagonal = std::ranges::find(rows, kDiagonalName, &privacy::NoisyValue::name);
  const std::uint64_t beside = diagonal != rows.end() && diagonal->numbers > 1 ? 1 : 0;
  expect_times(kDiagonalName, 1, 1, take(rows, kDiagonalName, sigma));
  expect_times(kBesideName, beside, beside, take(rows, kBesideName, sigma));
}

void ReleasedChecker::take_totals(std::vector<privacy::NoisyValue>& rows, std::uint64_t totals) {
  const bool adapts = settings_.is_on("dpis-adaptive-clip");
  const std::uint64_t epochs = adapts ? totals / 2 : totals;
  const std::uint64_t next_clips = adapts ? epochs - std::min<std::uint64_t>(epochs, 1) : 0;
  const bool all = !c_.lost_a_key();
  expect_times(kNormsName, all ? epochs : 0, epochs, take(rows, kNormsName, c_.norm_total_noise));
  expect_times(kNextClipName, all ? next_clips : 0, all ? next_clips : totals,
               take(rows, kNextClipName, c_.norm_total_noise));
}

void ReleasedChecker::check_names() {
  /// Number of values, 0 if it depends on the model, and the sensitivities that the method's rule
  /// allows.
  struct Known {
    std::uint64_t numbers;
    double least, most;
  };
  std::map<std::string, Known, std::less<>> known;
  if (c_.size_noise > 0.0) known[kSizeName] = {1, 1.0, 1.0};
  if (c_.feature_noise > 0.0) {
    known[kDiagonalName] = known[kChannelsName] = {0, 1.0, 1.0};
    known[kBesideName] = {0, std::sqrt(0.5), std::sqrt(0.5)};
  }
  if (c_.quantile) known[kCountName] = {1, 0.5, 0.5};
  if (is_method("dpis")) {
    const bool adapts = settings_.is_on("dpis-adaptive-clip");
    known[kNormsName] = {1, adapts ? 1e-3 * c_.clip : c_.clip, adapts ? 4.0 * c_.clip : c_.clip};
    if (adapts) known[kNextClipName] = {1, 4.0 * c_.clip, 4.0 * c_.clip};
  }
  if (is_method("dp-agd")) known[kGradientName] = {0, c_.sensitivity, c_.sensitivity};
  if (is_method("outpert")) known[kMinimumName] = {0, c_.sensitivity, c_.sensitivity};
  std::uint64_t diagonal = 0, beside = 0;
  for (const privacy::NoisyValue& l : c_.noisy_values) {
    const auto name = known.find(l.name);
    if (name == known.end()) {
      wrong(l.name + ": expected a value that the method releases, found another");
    } else {
      const auto& [numbers, least, most] = name->second;
      if (numbers != 0 && numbers != l.numbers)
        wrong(l.name + ": expected " + std::to_string(numbers) + " number, listed " +
              std::to_string(l.numbers));
      expect(l.sensitivity >= least / kFloatUpperTolerance, l.name + ": sensitivity, at least",
             least, l.sensitivity);
      expect(l.sensitivity <= most * kFloatUpperTolerance, l.name + ": sensitivity, at most", most,
             l.sensitivity);
    }
    const double steps = l.noise_std / l.grid;
    if (!(steps >= 0x1p16 && steps < 0x1p40 * kHostUpperTolerance))
      wrong(l.name + ": expected noise of 2^16 to 2^40 times the grid, found " + number(steps));
    if (l.name == kDiagonalName) diagonal = l.numbers;
    if (l.name == kBesideName) beside = l.numbers;
  }
  if (diagonal > 0 && beside != diagonal * (diagonal - 1) / 2)
    wrong("second moments: expected " + std::to_string(diagonal * (diagonal - 1) / 2) +
          " off the diagonal, listed " + std::to_string(beside));
}

void ReleasedChecker::expect_size(std::vector<privacy::NoisyValue>& rows) {
  const auto row = std::ranges::find_if(rows, [&](const privacy::NoisyValue& l) {
    return l.name == kSizeName && l.noise_std == c_.size_noise && l.sensitivity == 1.0 &&
           l.numbers == 1;
  });
  if (row == rows.end()) return wrong("noisy size: expected one, listed none");
  expect_times("noisy size", 1, 1, row->times);
  rows.erase(row);
}

void ReleasedChecker::check_selections() {
  const double epsilon = json_.at("selection_epsilon").get<double>();
  const auto generations = json_.at("generations").get<std::uint64_t>();
  const auto parents = json_.at("parents").get<std::uint64_t>();
  std::uint64_t count = 0;
  for (const privacy::Release& r : c_.releases)
    if (const auto* choice = std::get_if<privacy::BoundedRange>(&r.mechanism)) {
      expect(choice->epsilon == epsilon, "epsilon of a selection", epsilon, choice->epsilon);
      count += r.count;
    }
  // The last generation selects a single parent.
  const std::uint64_t all = generations > 0 ? (generations - 1) * parents + 1 : 0;
  expect_times("selections", all, all, count);
}

}  // namespace cudp::verify
