#include "runtime/config/class_weights.hpp"

#include <algorithm>
#include <cstdint>

#include "runtime/base/error.hpp"
#include "runtime/config/option_rows.hpp"

namespace cudp {
namespace {

constexpr const char* kExpected = "weights >= 0 (up to 1e30), one above 0, separated by commas";

/// Returns the parts of a list of weights, as texts. value: value of a flag or of a TOML setting,
/// which is a list or a single number.
std::vector<std::string> parts_of(const Value& value, const std::string& place) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return {std::to_string(*whole)};
  if (const auto* real = std::get_if<double>(&value)) return {value_text(*real)};
  if (!std::holds_alternative<std::string>(value)) option_rows::refuse(place, kExpected, value);
  return option_rows::parts_of(value, place);
}

std::vector<double> weights_of(const Value& value, const std::string& place) {
  std::vector<double> weights;
  const option_rows::Range range{.low = 0.0, .high = 1e30, .text = kExpected};
  for (const std::string& part : parts_of(value, place)) {
    try {
      weights.push_back(option_rows::number_in(range, part, place));
    } catch (const InputError&) {
      option_rows::refuse(place, kExpected, value);  // the message shows the whole list
    }
  }
  if (!std::ranges::any_of(weights, [](double w) { return w > 0.0; }))
    option_rows::refuse(place, kExpected, value);
  return weights;
}

}  // namespace

Option class_weights_option() {
  Option o;
  o.key = "class-weights";
  o.value_name = "W,W,...";
  o.help =
      "weight of an example of each class, in the order of the classes, for data with a rare "
      "class: 1,20; public";
  o.set = [](TrainConfig& c, const Value& v, const std::string& place) {
    c.class_weights = weights_of(v, place);
  };
  o.get = [](const TrainConfig& c) -> std::optional<Value> {
    return Value(class_weights_text(c.class_weights));
  };
  return o;
}

void check_class_weights(const std::vector<double>& weights, int classes) {
  if (weights.empty() || weights.size() == static_cast<std::size_t>(classes)) return;
  if (classes < 2)
    throw InputError("--class-weights: expected with classes only, found with a target");
  throw InputError("--class-weights: expected " + std::to_string(classes) +
                   " weights, one for each class of the data, found " +
                   std::to_string(weights.size()));
}

std::vector<float> relative_class_weights(const std::vector<double>& weights) {
  std::vector<float> relative;
  if (weights.empty()) return relative;
  const double largest = *std::ranges::max_element(weights);
  relative.reserve(weights.size());
  for (const double w : weights) relative.push_back(static_cast<float>(w / largest));
  return relative;
}

SignWeights sign_weights(const std::vector<double>& weights) {
  if (weights.empty()) return {};
  ensure(weights.size() == 2, "weights of two classes");
  const std::vector<float> relative = relative_class_weights(weights);
  return {.negative = relative[0], .positive = relative[1]};
}

std::string class_weights_text(const std::vector<double>& weights) {
  std::string text;
  for (const double w : weights) {
    std::string number = value_text(w);
    if (number.ends_with(".0")) number.resize(number.size() - 2);
    text += (text.empty() ? "" : ",") + number;
  }
  return text;
}

}  // namespace cudp
