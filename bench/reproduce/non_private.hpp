#pragma once
#include <functional>
#include <vector>

#include "kernels/layers/kinds.hpp"
#include "runtime/data/dataset.hpp"

namespace cudp {

/// A function's value at w, and its gradient.
using Objective =
    std::function<double(const std::vector<double>& w, std::vector<double>& gradient)>;

/// Minimises a differentiable function by L-BFGS (Nocedal 1980) with ten pairs and backtracking,
/// from w on, until |gradient| <= tolerance, max_steps iterations, or no step helps.
std::vector<double> minimise(const Objective& objective, std::vector<double> w, double tolerance,
                             int max_steps);

/// The minimiser of mean loss + l2/2 |w|^2, in double, with the bias last: what training would
/// reach without privacy. It has none; for comparison only.
std::vector<float> fit_non_private(const Dataset& train, Loss loss, double l2);

}  // namespace cudp
