#include "privacy/verify/sensitivity_limit.hpp"

#include <cmath>

namespace cudp::verify {

double sensitivity_limit(double clip_norm, const GradientSize& size, bool is_transformed) {
  constexpr double kUnit = 0x1p-24;
  // The sum of the formula may round differently here than in the program that made the run.
  constexpr double kSameFormula = 1.0 + 1e-12;
  const double norm = std::fmax(0x1p-13, (size.largest_tensor / 8.0 + 16.0) * kUnit / 2.0);
  const double factor = (1.0 + norm) * (1.0 + (is_transformed ? 40.0 : 4.0) * kUnit);
  return clip_norm * (factor + 0x1p-21 * std::sqrt(size.all)) * kSameFormula;
}

}  // namespace cudp::verify
