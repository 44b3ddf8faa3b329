#include "runtime/device/cpu/canaries.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/contribution/clip_math.hpp"
#include "runtime/base/error.hpp"

namespace cudp::cpu {

Canaries::Canaries(const Network& network, const CpuLayout& layout, const AuditTap* tap)
    : network_(network), layout_(layout), tap_(tap) {
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

void Canaries::add_clipped(std::span<const std::uint32_t> examples, const ClipSettings& clip,
                           const Coordinates* coordinates, const Acceptance* acceptance,
                           float inverse_grid, std::int64_t* sum, ExampleRecord* records) const {
  std::vector<float> squares(to_size(network_.groups));
  std::vector<float> factors(squares.size());
  for (const std::uint32_t example : examples) {
    const std::uint32_t parameter = parameter_of(example);
    const auto at = layout_.storage.where[parameter];
    // The mean, where there is one, is nothing beside it.
    const float g =
        kCanaryGradient * (coordinates != nullptr ? coordinates->transform.inverse[at] : 1.0f);
    const auto group = to_size(group_of(parameter));
    std::ranges::fill(squares, 0.0f);
    squares[group] = g * g;
    if (acceptance != nullptr)
      std::ranges::fill(factors, accept_candidate(acceptance->rule, acceptance->stream, example,
                                                  g * g, acceptance->norms + example));
    else
      clip_factors(clip, squares.data(), network_.groups, factors.data());
    sum[at] += std::llrint(factors[group] * inverse_grid * g);
    if (records != nullptr) *records++ = {.squared_norm = g * g, .clipped = factors[group] < 1.0f};
  }
}

void Canaries::set_norms(std::span<float> norms) const {
  if (tap_ != nullptr) std::ranges::fill(norms.subspan(first_), kCanaryGradient);
}

}  // namespace cudp::cpu
