#pragma once
#include <string>
#include <vector>

#include "kernels/linear/sign_weights.hpp"
#include "runtime/config/option.hpp"

namespace cudp {

/// Option --class-weights: the weight of an example of each class. The weights are public and may
/// have any scale, because every method divides them by the largest. The sensitivity is therefore
/// the same with and without weights (privacy/README.md, "What an example adds").

/// Returns the option --class-weights (its key, help text and parser).
Option class_weights_option();

/// Throws InputError unless the list of weights is empty or has exactly one weight for each class.
void check_class_weights(const std::vector<double>& weights, int classes);

/// Returns the weights in the form that engines use: each divided by the largest, [classes]; empty
/// if `weights` is empty.
std::vector<float> relative_class_weights(const std::vector<double>& weights);
/// Returns the weights in the form that engines of linear models with two classes use: each divided
/// by the largest. weights: two numbers, or empty for equal weights.
SignWeights sign_weights(const std::vector<double>& weights);

/// Returns the weights as text, as a user types them for the option: "1,20".
std::string class_weights_text(const std::vector<double>& weights);

}  // namespace cudp
