#pragma once
#include <cstdint>

namespace cudp {

enum class ToyMethod { dpsgd, adaclip };

/// The regression of section 3 of Pichapati et al. 2019: 1,000 points (+-1, 0, ..., 0) in d
/// dimensions, with loss |theta - x|^2 / 2 each. It starts at theta = 0 and has Poisson batches of
/// expected size 1, 10 epochs, learning rate 0.01, clipping norm 1 and sigma 0.1. The arithmetic is
/// that of training (kernels/step/adaclip_math.hpp).
struct RegressionToy {
  int dimensions = 1;
  ToyMethod method = ToyMethod::adaclip;
  float max_variance = 1.0f;  ///< h2; h1 is 1e-12
};

/// Returns |theta - theta*|^2 / 2, the final regression error minus the minimum.
double regression_excess(const RegressionToy& toy, std::uint64_t seed);

}  // namespace cudp
