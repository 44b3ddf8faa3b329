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

void Canaries::add(std::span<const std::uint32_t> examples, const GradientUse& use,
                   std::int64_t* sum, ExampleRecord* records) const {
  if (examples.empty()) return;
  const auto* const clipped = std::get_if<AddClipped>(&use);
  const auto* const accepted = std::get_if<AddAccepted>(&use);
  const auto* const transformed = std::get_if<AddTransformed>(&use);
  ensure(clipped || accepted || transformed, "canaries are added by the grid");
  const float inverse_grid = clipped    ? clipped->inverse_grid
                             : accepted ? accepted->inverse_grid
                                        : transformed->inverse_grid;
  std::vector<float> squares(to_size(network_.groups));
  std::vector<float> factors(squares.size());
  for (const std::uint32_t example : examples) {
    const std::uint32_t parameter = parameter_of(example);
    const auto at = layout_.storage.packed_offset[parameter];
    // The transform's mean is ignored: it is negligible compared with kCanaryGradient.
    const float g =
        kCanaryGradient * (transformed ? transformed->coordinates.transform.inverse[at] : 1.0f);
    const auto group = to_size(group_of(parameter));
    std::ranges::fill(squares, 0.0f);
    squares[group] = g * g;
    if (accepted)
      std::ranges::fill(factors, accept_candidate(accepted->rule, accepted->stream, example, g * g,
                                                  accepted->norms + example));
    else
      clip_factors(clipped ? clipped->clip : transformed->clip, squares.data(), network_.groups,
                   factors.data());
    sum[at] += std::llrint(factors[group] * inverse_grid * g);
    if (records != nullptr) *records++ = {.squared_norm = g * g, .clipped = factors[group] < 1.0f};
  }
}

void Canaries::set_norms(std::span<float> norms) const {
  if (tap_ != nullptr) std::ranges::fill(norms.subspan(first_), kCanaryGradient);
}

}  // namespace cudp::cpu
