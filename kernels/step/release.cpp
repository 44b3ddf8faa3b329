#include "kernels/step/release.hpp"

#include <cmath>
#include <stdexcept>
#include <string>

#include "kernels/random/rounded_normal.hpp"

namespace cudp {

void check_noise(double grid, float noise_std) {
  if (noise_std == 0.0f) return;
  const double s = static_cast<double>(noise_std) / grid;
  if (!(s >= kMinRoundedNormalS && s <= kLargestRoundedNormalS))
    throw std::invalid_argument("release: expected a noise_std of 2^16 to 2^40 units, found " +
                                std::to_string(s));
}

void validate(const ReleaseSum& a) {
  validate(a.noise, a.begin, a.end);
  if (a.end > a.begin && (a.sum == nullptr || a.released == nullptr))
    throw std::invalid_argument("release: expected arrays `sum` and `released`, found none");
  if (!(a.grid > 0.0 && std::isfinite(a.grid) && std::ldexp(1.0, std::ilogb(a.grid)) == a.grid))
    throw std::invalid_argument("release: expected a grid that is a power of two, found " +
                                std::to_string(a.grid));
  check_noise(a.grid, a.noise_std);
}

}  // namespace cudp
