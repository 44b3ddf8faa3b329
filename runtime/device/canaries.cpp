#include "runtime/device/canaries.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "kernels/contribution/clip_math.hpp"
#include "kernels/contribution/importance.hpp"
#include "runtime/base/error.hpp"

namespace cudp {

Canaries::Canaries(const Network& network, const AuditTap* tap) : network_(network), tap_(tap) {
  if (tap_ == nullptr) return;
  for (const std::uint32_t j : tap_->canaries)
    ensure(j < network_.parameter_count, "a canary's parameter does not exist");
}

void Canaries::load(std::size_t examples) {
  if (tap_ == nullptr) return;
  ensure(tap_->canaries.size() <= examples, "more canaries than training examples");
  first_ = static_cast<std::uint32_t>(examples - tap_->canaries.size());
}

std::size_t Canaries::ordinary(std::span<const std::uint32_t> examples) const {
  return static_cast<std::size_t>(std::ranges::lower_bound(examples, first_) - examples.begin());
}

int Canaries::group_of(std::uint32_t parameter) const {
  const auto next = std::ranges::upper_bound(network_.parameters, parameter, {},
                                             [](const ParameterTensor& p) { return p.offset; });
  return std::prev(next)->group;
}

std::vector<CanaryFacts> Canaries::add(std::span<const std::uint32_t> examples,
                                       const CanaryUse& use, std::int64_t* sum,
                                       const std::int32_t* where) const {
  std::vector<CanaryFacts> facts;
  std::vector<float> squares(static_cast<std::size_t>(network_.groups));
  std::vector<float> factors(squares.size());
  for (const std::uint32_t example : examples) {
    const std::uint32_t parameter = parameter_of(example);
    const std::int64_t at =
        where != nullptr ? std::int64_t{where[parameter]} : std::int64_t{parameter};
    // Coordinate-wise clipping transforms a gradient to (gradient - m) / scale. Here m is left out:
    // it is negligible compared with kCanaryGradient.
    const float g = kCanaryGradient * (use.inverse != nullptr ? use.inverse[at] : 1.0f);
    const auto group = static_cast<std::size_t>(group_of(parameter));
    std::ranges::fill(squares, 0.0f);
    squares[group] = g * g;
    if (use.clip)
      clip_factors(*use.clip, squares.data(), network_.groups, factors.data());
    else
      std::ranges::fill(
          factors, accept_candidate(use.rule, use.stream, example, g * g, use.norms + example));
    sum[at] += std::llrint(factors[group] * use.inverse_grid * g);
    facts.push_back({.squared_norm = g * g, .clipped = factors[group] < 1.0f});
  }
  return facts;
}

void Canaries::set_norms(std::span<float> norms) const {
  if (tap_ != nullptr) std::ranges::fill(norms.subspan(first_), kCanaryGradient);
}

}  // namespace cudp
