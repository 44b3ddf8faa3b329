#pragma once
#include <string>
#include <vector>

#include "kernels/linear/sign_weights.hpp"
#include "runtime/config/option.hpp"

namespace cudp {

/// Option --class-weights: the weight of an example of each class. The weights are public and may
/// have any scale, because every method divides them by the largest. The sensitivity is therefore
/// the same with and without weights (privacy/README.md, "What an example adds").

/// Returns the option --class-weights.
Option class_weights_option();

/// Throws InputError unless the list is empty or has a weight for each class of the data.
void check_class_weights(const std::vector<double>& weights, int classes);

/// Returns the weights as engines use them: each divided by the largest, [classes]; empty without
/// weights.
std::vector<float> relative_class_weights(const std::vector<double>& weights);
/// Returns the weights as engines of linear models with two classes take them, each divided by the
/// largest. weights: two numbers, or empty.
SignWeights sign_weights(const std::vector<double>& weights);

/// Returns the weights in the form of the option: "1,20".
std::string class_weights_text(const std::vector<double>& weights);

}  // namespace cudp
