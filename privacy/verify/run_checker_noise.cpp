#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "privacy/mechanism/mechanism_text.hpp"
#include "privacy/text/number.hpp"
#include "privacy/verify/generator.hpp"
#include "privacy/verify/noisy_choice.hpp"
#include "privacy/verify/rounded_normal.hpp"
#include "privacy/verify/run_checker.hpp"
#include "privacy/verify/statements.hpp"

namespace cudp::verify {
namespace {

using privacy::number;

bool is_power_of_two(double x) {
  int exponent = 0;
  return std::isnormal(x) && x > 0.0 && std::frexp(x, &exponent) == 0.5;
}

double length(std::span<const std::int64_t> sums, double grid) {
  long double square = 0.0L;
  for (const std::int64_t s : sums)
    square += static_cast<long double>(s) * static_cast<long double>(s);
  return static_cast<double>(std::sqrt(square)) * grid;
}

}  // namespace

void RunChecker::check_noise(const transcript::Release& r) {
  if (r.sums.empty() || r.sums.size() != r.values.size()) return;
  const double s = r.noise_std / r.grid;
  if (!is_power_of_two(r.grid) || !(s >= 0x1p16 && s <= 0x1p40))
    return add("noise", at(r) + ": expected noise of 2^16 to 2^40 steps of a power of two, found " +
                            number(r.noise_std) + " on " + number(r.grid));
  const std::vector<std::int64_t> noise = rounded_normals(
      RandomWords(begin_->generator, begin_->key, r.stream, r.step), s, r.sums.size());
  verdict_.numbers += noise.size();
  for (std::size_t j = 0; j < noise.size(); ++j) {
    const auto units = static_cast<std::int64_t>(static_cast<std::uint64_t>(r.sums[j]) +
                                                 static_cast<std::uint64_t>(noise[j]));
    double value = static_cast<double>(units) * r.grid;
    if (is_engine_sum(r)) value = static_cast<double>(static_cast<float>(value));
    if (value == r.values[j]) continue;
    return expect(false, "noise", at(r) + ", number " + std::to_string(j), value, r.values[j]);
  }
}

void RunChecker::check_choice(const transcript::Release& r, const privacy::Mechanism* charged) {
  if (charged == nullptr || !kinds_.choices) return;
  const RandomWords words(begin_->generator, begin_->key, r.stream, r.step);
  const double sensitivity = certificate_.loss_sensitivity;
  std::vector<double> chosen;
  if (r.scores.size() < r.values.size() || !(sensitivity > 0.0))
    return add("noise", at(r) + ": expected scores that a choice was made among");
  if (const auto* range = std::get_if<privacy::BoundedRange>(charged)) {
    const auto places =
        gumbel_choices(words, r.scores, range->epsilon, sensitivity, r.values.size());
    if (!places) return skip("a choice that 64 random bits leave open");
    chosen.assign(places->begin(), places->end());
  } else if (const auto* pure = std::get_if<privacy::ApproximateDp>(charged)) {
    const auto place = laplace_choice(words, r.scores, pure->epsilon, sensitivity);
    if (!place) return skip("a choice that roundings leave open");
    chosen.push_back(static_cast<double>(*place));
  } else {
    return add("charged", at(r) + ": expected a choice's mechanism in the ledger");
  }
  verdict_.numbers += r.scores.size();
  if (chosen != r.values)
    expect(false, "noise", at(r) + ", place of the first choice", chosen.at(0), r.values.at(0));
}

void RunChecker::check_engine_sum(const transcript::Release& r, const privacy::Mechanism* charged) {
  const StatedNumbers& c = certificate_;
  if (!batch_ || batch_->step != r.step) add("batch", at(r) + ": no batch was drawn");
  if (sum_) add("update", at(sum_->step) + ": a release that no update followed");
  if (charged == nullptr) return;
  const double sigma = sigma_of(*charged);
  double sensitivity = c.sensitivity;
  if (c.quantile) {
    sensitivity = r.noise_std / c.quantile->gradient_noise_multiplier;
    check_quantile(r, sensitivity / rounding());
  } else {
    if (is_method("dpis")) {
      sensitivity = rounding();  // gradients of accepted examples are scaled to norm 1
      check_importance(r, rate_of(*charged));
    }
    const double stated = sigma * sensitivity;
    expect(r.noise_std >= stated * kProductLowerTolerance &&
               r.noise_std <= stated * kFloatUpperTolerance,
           "noise", at(r) + ", standard deviation", stated, r.noise_std);
    expect(r.grid == c.grid, "noise", at(r) + ", grid", c.grid, r.grid);
  }
  if (c.epoch_steps > 0) {
    const auto* const epoch = std::get_if<privacy::AllocatedGaussian>(charged);
    if (epoch == nullptr || epoch->steps != c.epoch_steps)
      add("batch", at(r) + ": expected an epoch of " + std::to_string(c.epoch_steps) +
                       " steps that was charged, found " + exact_text(*charged));
  } else if (!is_method("dpis")) {
    expect(rate_of(*charged) == c.q, "batch", at(r) + ", the rate that was charged", c.q,
           rate_of(*charged));
  }
  if (c.quantile)
    expect(sigma == c.sigma, "noise", at(r) + ", sigma that was charged", c.sigma, sigma);
  if (batch_) check_length(r, static_cast<double>(batch_->examples.size()), sensitivity);
}

void RunChecker::check_length(const transcript::Release& r, double examples, double sensitivity) {
  const double max_length = examples * sensitivity * (1.0 + 1e-6);
  const double found = length(r.sums, r.grid);
  expect(found <= max_length, "sensitivity",
         at(r) + ", length of a sum of " + number(examples) + " examples, at most", max_length,
         found);
}

void RunChecker::check_host_sum(const transcript::Release& r, const privacy::Mechanism* charged) {
  const StatedNumbers& c = certificate_;
  if (charged != nullptr && r.stream != kCount) {
    const double stated = sigma_of(*charged) * r.sensitivity;
    expect(r.noise_std >= stated * kProductLowerTolerance &&
               r.noise_std <= stated * kHostUpperTolerance,
           "noise", at(r) + ", standard deviation", stated, r.noise_std);
  }
  const auto states = [&](double noise, double sensitivity) {
    expect(r.noise_std == noise, "noise", at(r) + ", standard deviation", noise, r.noise_std);
    expect(r.sensitivity == sensitivity, "noise", at(r) + ", sensitivity", sensitivity,
           r.sensitivity);
  };
  const auto examples = static_cast<double>(begin_->examples);
  switch (r.stream) {
    case kSize: {
      states(c.size_noise, 1.0);
      const double size = std::fmax(1.0, std::round(r.values.at(0)));
      expect(size == c.size, "noise", at(r) + ", certificate's noisy size", size, c.size);
      const double count = static_cast<double>(r.sums.at(0)) * r.grid;
      // With held-out rows, the count may be smaller than begin_->examples: the number of held-out
      // examples is not in the transcript.
      expect(certificate_.holdout ? count <= examples : count == examples, "sensitivity",
             at(r) + ", a count", examples, count);
      return;
    }
    case kCount:
      if (c.quantile) states(c.quantile->count_noise_std, c.quantile->count_sensitivity);
      counts_[r.step] = r.values.at(0);
      if (!batch_ || batch_->step != r.step) add("batch", at(r) + ": no batch was drawn");
      if (batch_) check_length(r, static_cast<double>(batch_->examples.size()), r.sensitivity);
      return;
    case kMoments:
      states(c.feature_noise, 1.0);
      break;
    case kCovariance:
      // The covariance matrix is released in two parts: its diagonal (step 0), and the numbers off
      // the diagonal. The matrix is symmetric, so only one of each two equal numbers is released.
      // Their noise and sensitivity are scaled such that both parts together are one Gaussian
      // release.
      if (r.step == 0)
        states(c.feature_noise, 1.0);
      else
        states(c.feature_noise * std::sqrt(0.5) * (1.0 + 0x1p-51), std::sqrt(0.5));
      break;
    case kNormTotal:
      norm_totals_[r.step] = {r.sensitivity, r.values.at(0)};
      if (r.step == 0)
        expect(r.sensitivity == c.clip, "noise", at(r) + ", sensitivity", c.clip, r.sensitivity);
      break;
    case kLargestNorms:
      expect(r.sensitivity == 4.0 * c.clip, "noise", at(r) + ", sensitivity", 4.0 * c.clip,
             r.sensitivity);
      break;
    case kNoise:
      expect(r.sensitivity >= c.sensitivity, "noise", at(r) + ", sensitivity", c.sensitivity,
             r.sensitivity);
      if (is_method("outpert")) return check_minimum(r);
      break;
    default:
      return;
  }
  check_length(r, examples, r.sensitivity);
}

void RunChecker::check_minimum(const transcript::Release& r) {
  if (settings_.empty()) return;
  const double min_sensitivity = (1.0 + 2.0 * settings_.number("solver-tolerance")) /
                                 (settings_.number("l2") * certificate_.size);
  expect(r.sensitivity >= min_sensitivity * kProductLowerTolerance, "sensitivity",
         at(r) + ", at least", min_sensitivity, r.sensitivity);
}

void RunChecker::check_quantile(const transcript::Release& r, double clip) {
  const privacy::NoisySums::Quantile& q = *certificate_.quantile;
  expect(clip >= q.min_clip_norm * (1.0 - 1e-6) && clip <= q.max_clip_norm * (1.0 + 1e-6), "noise",
         at(r) + ", the clipping norm that its noise is for",
         std::clamp(clip, q.min_clip_norm, q.max_clip_norm), clip);
  if (r.step == 0)
    expect(std::fabs(clip / certificate_.clip - 1.0) < 1e-6, "noise",
           at(r) + ", the first clipping norm", certificate_.clip, clip);
  // The grid depends on C, which is not known to the last bits.
  const bool fits = r.grid == engine_grid(clip * (1.0 - 1e-6)) ||
                    r.grid == engine_grid(clip * (1.0 + 1e-6)) || r.grid == engine_grid(clip);
  expect(fits, "noise", at(r) + ", grid", engine_grid(clip), r.grid);
  if (r.step > 0) check_followed(r, clip);
  clips_[r.step] = clip;
}

void RunChecker::check_followed(const transcript::Release& r, double clip) {
  const auto before = clips_.find(r.step - 1);
  const auto counted = counts_.find(r.step - 1);
  if (before == clips_.end() || counted == counts_.end()) return;
  const privacy::NoisySums::Quantile& q = *certificate_.quantile;
  const bool at_end =
      clip <= q.min_clip_norm * (1.0 + 1e-6) || clip >= q.max_clip_norm * (1.0 - 1e-6);
  const double away = counted->second / certificate_.expected_batch + 0.5 - q.target;
  const double moved = -std::log(clip / before->second);
  constexpr double kOff = 1e-6;  // more than twice the roundings of two floats
  if (!settings_.empty()) {
    const double next =
        std::clamp(before->second * std::exp(-settings_.number("quantile-lr") * away),
                   q.min_clip_norm, q.max_clip_norm);
    expect(std::fabs(clip / next - 1.0) < kOff, "noise",
           at(r) + ", the clipping norm, of the count before", next, clip);
    return;
  }
  if (at_end || std::fabs(away) < 1e-3) return;
  const double low = std::fmin((moved - kOff) / away, (moved + kOff) / away);
  const double high = std::fmax((moved - kOff) / away, (moved + kOff) / away);
  quantile_low_ = std::fmax(quantile_low_, low);
  quantile_high_ = std::fmin(quantile_high_, high);
  if (!(quantile_low_ <= quantile_high_)) {
    add("noise", at(r) + ": the clipping norm does not follow the released counts");
    quantile_low_ = low;
    quantile_high_ = high;
  }
}

double RunChecker::norm_total(std::uint64_t step) const {
  const auto found = norm_totals_.find(step / steps_per_epoch_);
  if (found == norm_totals_.end()) return 0.0;
  const auto [clip, measured] = found->second;
  const double min_total = certificate_.expected_batch * clip * (1.0 + 1e-6);
  return std::fmin(std::fmax(measured, min_total), certificate_.size * clip);
}

void RunChecker::check_importance(const transcript::Release& r, double charged) {
  const auto found = norm_totals_.find(r.step / steps_per_epoch_);
  if (found == norm_totals_.end())
    return add("batch", at(r) + ": the epoch began without a sum of norms");
  const double rate = std::fmin(
      1.0, certificate_.expected_batch * found->second.first / norm_total(r.step) * (1.0 + 1e-9));
  expect(std::fabs(charged / rate - 1.0) < 1e-12, "batch", at(r) + ", the rate that was charged",
         rate, charged);
  skip("noise multipliers of dpis, which its filter chooses: held against the charges alone");
}

}  // namespace cudp::verify
