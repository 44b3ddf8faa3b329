#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "privacy/verify/run_checker.hpp"

namespace cudp::verify {
namespace {

constexpr double kTwo32 = 0x1p32;

}  // namespace

void RunChecker::process(const transcript::Update& u) {
  ++verdict_.updates;
  if (is_method("dp-agd")) return check_descent(u);
  const auto sum = std::exchange(sum_, std::nullopt);
  if (u.step != next_step_)
    add("update", at(u.step) + ": expected step " + std::to_string(next_step_));
  next_step_ = u.step + 1;
  if (!sum || sum->step != u.step) add("update", at(u.step) + ": no release of this step");
  check_divisor(u, sum);
  const auto released = first_releases_.find({key_, {kNoise, u.step}});
  numbers_.check(u, released == first_releases_.end() ? nullptr : &released->second);
  if (u.coordinates) {
    skip("parameters of adaclip, whose coordinates are not in the transcript");
    if (!is_method("adaclip"))
      add("update", at(u.step) + ": transformed gradients without adaclip");
  } else if (is_method("adaclip")) {
    add("update", at(u.step) + ": expected transformed gradients");
  }
  if (!state_) {
    add("update", at(u.step) + ": no parameters before");
  } else if (sum && sum->step == u.step) {
    const std::string wrong = follows(*state_, sum->values, u);
    if (!wrong.empty()) add("update", at(u.step) + ": " + wrong);
  }
  state_ = transcript::State{u.parameters, u.moment1, u.moment2, u.average};
  states_[u.step + 1] = hash_of(*state_);
}

void RunChecker::check_descent(const transcript::Update& u) {
  if (u.step != next_step_)
    add("update", at(u.step) + ": expected step " + std::to_string(next_step_));
  next_step_ = u.step + 1;
  if (settings_.has("l2")) {
    const double q =
        certificate_.threshold > 0 ? static_cast<double>(certificate_.threshold) / kTwo32 : 1.0;
    const double weight = certificate_.size * q * settings_.number("l2");
    expect(std::fabs(u.weight_decay - weight) <= 1e-12 * weight, "update",
           at(u.step) + ", weight of the regulariser", weight, u.weight_decay);
  }
  const std::string wrong =
      !state_ ? "no parameters before" : follows_descent(*state_, std::exchange(measured_, {}), u);
  if (!wrong.empty()) add("update", at(u.step) + ": " + wrong);
  if (settings_.has("step-shrink")) {
    const std::string size = line_search_.follows(u, settings_.number("step-shrink"));
    if (!size.empty()) add("update", at(u.step) + ": " + size);
  }
  state_ = transcript::State{u.parameters, {}, {}, {}};
  states_[u.step + 1] = hash_of(*state_);
}

void RunChecker::check_divisor(const transcript::Update& u,
                               const std::optional<transcript::Release>& sum) {
  const StatedNumbers& c = certificate_;
  const auto plain = static_cast<float>(1.0 / c.expected_batch);
  if (is_method("dpis")) {
    const double share = norm_total(u.step) / (c.size * c.expected_batch);
    expect(u.inverse_batch == static_cast<double>(static_cast<float>(share)), "divisor", at(u.step),
           share, u.inverse_batch);
    return;
  }
  const bool is_plain = u.inverse_batch == static_cast<double>(plain);
  bool normalised = false;
  if (c.quantile && sum) {
    // With the setting quantile-normalise, inverse_batch is divided by the clipping norm.
    const double clip = sum->noise_std / c.quantile->gradient_noise_multiplier / rounding();
    normalised = std::fabs(u.inverse_batch * clip / static_cast<double>(plain) - 1.0) < 1e-6;
  }
  bool fits = is_plain || normalised;
  if (c.quantile && !settings_.empty())
    fits = settings_.is_on("quantile-normalise") ? normalised : is_plain;
  else if (c.quantile && is_plain != normalised) {
    if (!normalised_) normalised_ = normalised;
    fits = fits && *normalised_ == normalised;
  }
  expect(fits, "divisor", at(u.step), static_cast<double>(plain), u.inverse_batch);
}

}  // namespace cudp::verify
