#pragma once
#include <functional>
#include <vector>

#include "kernels/layers/kinds.hpp"
#include "runtime/data/dataset.hpp"

namespace cudp {

/// Returns a function's value at w, and writes its gradient.
using Objective =
    std::function<double(const std::vector<double>& w, std::vector<double>& gradient)>;

/// Minimises a differentiable function by L-BFGS (Nocedal 1980) with ten pairs and backtracking.
/// Starts at w and stops when |gradient| <= tolerance, after max_steps iterations, or when no step
/// helps.
std::vector<double> minimise(const Objective& objective, std::vector<double> w, double tolerance,
                             int max_steps);

/// Returns the minimiser of mean loss + l2/2 |w|^2, computed in double, with the bias last. It
/// gives no privacy, and is only a reference for training without noise.
std::vector<float> fit_non_private(const Dataset& train, Loss loss, double l2);

}  // namespace cudp
