#include "runtime/methods/norm_bound.hpp"

#include <cmath>
#include <numbers>

#include "runtime/base/error.hpp"

namespace cudp {

double norm_bound(const Network& network, const Dataset& data) {
  const Loss loss = network.spec.loss;
  if (network.layers.size() != 1 || network.parameters.size() != 2 || loss == Loss::hinge)
    throw InputError("--model: expected logistic with --method norm-bound, found " +
                     network.spec.name);
  double largest = 1.0;
  if (data.is_bytes()) {
    const auto shift = static_cast<double>(data.shift);
    largest =
        std::fmax(std::fabs(shift), std::fabs(shift + 255.0 * static_cast<double>(data.scale)));
  }
  const double inputs = static_cast<double>(data.shape.size()) * largest * largest + 1.0;
  const double slope = loss == Loss::logistic ? 1.0 : std::numbers::sqrt2;
  return slope * std::sqrt(inputs) * (1.0 + 1e-6);
}

}  // namespace cudp
