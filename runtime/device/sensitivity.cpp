#include "runtime/device/sensitivity.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "kernels/common/fixed_point.hpp"

namespace cudp {

double min_clip_norm(const Network& network, Clipping clipping) {
  const double layers = clipping == Clipping::per_layer ? network.groups : 1.0;
  return std::sqrt(layers * static_cast<double>(network.parameter_count) * 0x1p-126 / 0x1p-14);
}

double sensitivity_rounding_error(const Network& network, const Arithmetic& arithmetic,
                                  double shift) {
  constexpr double kUnit = 0x1p-24;
  std::size_t terms = 0;
  std::size_t touched = 0;
  for (const ParameterTensor& t : network.parameters) {
    terms = std::max(terms, t.touched);
    touched += t.touched;
  }
  if (arithmetic.norm_block > 0)
    terms = std::min(terms, static_cast<std::size_t>(arithmetic.norm_block));
  const double chains = arithmetic.norm_chains;
  const double additions = static_cast<double>(terms) / chains + chains + 8.0;
  const double norm_error = std::fmax(0x1p-13, 0.5 * additions * kUnit);
  const double roundings = shift > 0.0 ? 8.0 * (1.0 + shift) : 4.0;
  const double grid = 0.5 * std::sqrt(static_cast<double>(touched)) / kMinUnits;
  return (1.0 + norm_error) * (1.0 + roundings * kUnit) + grid - 1.0;
}

double sensitivity(const ContributionBound& bound, const Network& network,
                   const Arithmetic& arithmetic) {
  return bound.norm * (1.0 + sensitivity_rounding_error(network, arithmetic, bound.shift));
}

}  // namespace cudp
