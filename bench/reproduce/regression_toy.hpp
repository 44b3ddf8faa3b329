#pragma once
#include <cstdint>

namespace cudp {

enum class ToyMethod { dpsgd, adaclip };

/// Section 3's regression of Pichapati et al. 2019: 1,000 points (+-1, 0, ..., 0) of d numbers, the
/// loss of one |theta - x|^2 / 2. Poisson batches of expected size 1, 10 epochs, learning rate
/// 0.01, clipping norm 1, sigma 0.1, from theta = 0, with the arithmetic that training has
/// (kernels/step/restore_math.hpp).
struct RegressionToy {
  int dimensions = 1;
  ToyMethod method = ToyMethod::adaclip;
  float max_variance = 1.0f;  ///< h2; h1 is 1e-12
};

/// |theta - theta*|^2 / 2: the regression error at the end less the least there is.
double regression_excess(const RegressionToy& toy, std::uint64_t seed);

}  // namespace cudp
