#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "privacy/text/number.hpp"
#include "privacy/verify/released_checker.hpp"

namespace cudp::verify {
namespace {

using Json = nlohmann::json;
using privacy::number;

}  // namespace

std::string ReleasedChecker::stated(const char* pointer) const {
  const Json& value = json_.at(Json::json_pointer(pointer));
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void ReleasedChecker::check_settings() {
  Statement& s = begin("settings");
  s.found = "config.toml, method " + c_.method;
  using Pair = std::pair<const char*, const char*>;
  // The method and the status determine which settings the certificate must state.
  std::vector<Pair> texts = {{"method", "/method"}, {"rng", "/rng"}, {"precision", "/precision"}};
  std::vector<Pair> numbers;
  if (is_engine()) texts.emplace_back("clipping", "/clipping");
  if (is_of({"dp-agd"})) texts.emplace_back("noisy-min", "/selection_noise");
  if (is_of({"dp-agd", "privgene"})) numbers.emplace_back("loss-clip", "/loss_clip");
  if (is_of({"objpert", "outpert"})) {
    numbers.emplace_back("max-norm", "/max_norm");
    numbers.emplace_back("solver-tolerance", "/solver_tolerance");
    if (states("/huber")) numbers.emplace_back("huber", "/huber");  // only the Huber loss has it
  }
  if (is_of({"privgene"})) {
    numbers.emplace_back("candidates", "/candidates");
    numbers.emplace_back("parents", "/parents");
  }
  if (is_of({"dpsgd-quantile"})) {
    numbers.emplace_back("quantile-target", "/quantile/target");
    numbers.emplace_back("quantile-min", "/quantile/C_least");
    numbers.emplace_back("quantile-max", "/quantile/C_most");
  }
  for (const auto& [key, pointer] : texts)
    expect(key, settings_.text(key), states(pointer) ? stated(pointer) : "none");
  if (!settings_.has("epsilon") && !settings_.has("sigma"))
    wrong("settings: expected epsilon or sigma, found neither");
  check_number("delta", c_.training_delta);
  for (const auto& [key, pointer] : numbers) {
    if (states(pointer))
      check_number(key, json_.at(Json::json_pointer(pointer)).get<double>());
    else
      wrong(std::string(key) + ": expected it in the certificate, found none");
  }
  for (const auto& [key, pointer] :
       {Pair{"holdout", "/holdout/share"}, Pair{"holdout-epsilon", "/holdout/epsilon"},
        Pair{"holdout-delta", "/holdout/delta"}, Pair{"holdout-threshold", "/holdout/threshold"}}) {
    // A run that ended before training states nothing about held-out rows.
    if (c_.status == "refused") break;
    if (states(pointer) != settings_.has(key))
      wrong(std::string(key) + ": expected in both the certificate and the settings, found in one");
    else if (states(pointer))
      check_number(key, json_.at(Json::json_pointer(pointer)).get<double>());
  }
  // AdaCliP scales gradients, so that its C is always 1.
  if ((is_engine() && !is_method("adaclip")) || is_of({"dp-agd"})) check_number("clip", c_.clip);
  if (settings_.has("sigma") && is_engine() && !is_method("dpis")) check_number("sigma", c_.sigma);
  expect("features", settings_.text("features"), json_.value("features", std::string("none")));
  if ((settings_.has("tuned") && settings_.is_on("tuned")) != c_.tuning.has_value())
    wrong("tuned: expected in both the certificate and the settings, found in one");
  if (settings_.is_on("size-is-public") && c_.size_noise > 0.0)
    wrong("size-is-public: expected no noisy size, found one");
  if (settings_.is_on("size-is-public") && c_.holdout)
    wrong("size-is-public: expected a private size with held-out rows, found a public one");
  check_class_weights();
  if (states("/public_inputs") && json_["public_inputs"].size() != 1)
    wrong("public_inputs: expected the one that the settings name");
  for (const auto& [key, pointer] : {Pair{"fresh-noise-allowed", "/fresh_noise_allowed"},
                                     Pair{"allow-weak-privacy", "/allow_weak_privacy"}})
    if (settings_.has(key))
      expect(key, settings_.text(key), states(pointer) ? stated(pointer) : "false");
  if (is_engine()) check_steps();
}

void ReleasedChecker::check_class_weights() {
  std::string stated;
  if (states("/class_weights"))
    for (const Json& weight : json_["class_weights"])
      stated += (stated.empty() ? "" : ",") + number(weight.get<double>());
  std::string set;
  std::string text = settings_.has("class-weights") ? settings_.text("class-weights") : "";
  while (!text.empty()) {
    std::size_t read = 0;
    const double weight = std::stod(text, &read);
    set += (set.empty() ? "" : ",") + number(weight);
    text.erase(0, std::min(read + 1, text.size()));
  }
  expect("class-weights", set, stated);
}

void ReleasedChecker::check_number(const std::string& key, double found) {
  const double expected = settings_.number(key);
  expect(expected == found, key, expected, found);
}

void ReleasedChecker::check_steps() {
  if (settings_.has("steps")) {
    const double steps = settings_.number("steps");
    expect(steps == static_cast<double>(c_.steps_planned), "steps", steps,
           static_cast<double>(c_.steps_planned));
  } else if (settings_.has("epochs")) {
    const double each = std::fmax(1.0, std::round(c_.size / settings_.number("batch")));
    const double steps = std::round(settings_.number("epochs") * each);
    expect(steps == static_cast<double>(c_.steps_planned), "steps of the epochs", steps,
           static_cast<double>(c_.steps_planned));
  } else {
    wrong("settings: expected steps or epochs, found neither");
  }
}

}  // namespace cudp::verify
