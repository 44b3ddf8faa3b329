#pragma once
#include <string>
#include <vector>

#include "kernels/linear/sign_weights.hpp"
#include "runtime/config/option.hpp"

namespace cudp {

/// --class-weights: what an example of each class counts. The numbers are public and their unit is
/// free: every method divides them by the largest, so that a bound on what one example adds holds
/// with them as without (privacy/README.md, "What an example adds").

/// The row of the option.
Option class_weights_option();

/// Throws InputError unless there is a weight for each class of the data.
void check_class_weights(const std::vector<double>& weights, int classes);

/// As engines take them: each over the largest, [classes]; empty where there are none.
std::vector<float> relative_class_weights(const std::vector<double>& weights);
/// The same for linear models of two classes. weights: none, or two.
SignWeights sign_weights(const std::vector<double>& weights);

/// "1,20"
std::string class_weights_text(const std::vector<double>& weights);

}  // namespace cudp
