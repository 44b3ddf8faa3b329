#include "privacy/verify/certificate.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "privacy/mechanism/mechanism_text.hpp"
#include "privacy/verify/json_text.hpp"

namespace cudp::verify {
namespace {

using Json = nlohmann::json;

double number(const Json& j, const char* name) {
  return j.contains(name) && j[name].is_number() ? j[name].get<double>() : 0.0;
}
std::uint64_t count(const Json& j, const char* name) {
  return j.contains(name) ? j[name].get<std::uint64_t>() : 0;
}
std::string text(const Json& j, const char* name) {
  return j.contains(name) && j[name].is_string() ? j[name].get<std::string>() : "";
}

privacy::Release release_of(const Json& j) {
  if (!j.contains("mechanism"))
    return {
        privacy::sampled_gaussian_mechanism(j.at("q").get<double>(), j.at("sigma").get<double>()),
        j.at("steps").get<std::uint64_t>()};
  const auto name = j["mechanism"].get<std::string>();
  const auto times = j.at("count").get<std::uint64_t>();
  if (name == "gaussian") return {privacy::Gaussian{j.at("sigma").get<double>()}, times};
  if (name == "bounded-range") return {privacy::BoundedRange{j.at("epsilon").get<double>()}, times};
  if (name == "approximate-dp")
    return {privacy::ApproximateDp{j.at("epsilon").get<double>(), number(j, "delta")}, times};
  throw std::invalid_argument("a release by " + name);
}

int format_of(const Json& j) {
  const std::string format = text(j, "format");
  for (const int known : {1, 2})
    if (format == "cudp privacy certificate " + std::to_string(known)) return known;
  throw std::invalid_argument("expected format 'cudp privacy certificate 1' or 2, found '" +
                              format + "'");
}

/// null, for infinity, is written where nothing is claimed.
double claimed(const Json& j, const char* name) {
  const Json& value = j.at(name);
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

/// Format 1 had the promise for what was trained on first, and the one for everything beside it.
void read_promises(const Json& j, Certificate& c) {
  const bool first_is_training = c.format == 1;
  const bool has_parts = j.contains("holdout");
  for (const char* const name : {"training_epsilon", "training_delta"})
    if (j.contains(name) != (has_parts && !first_is_training))
      throw std::invalid_argument(std::string(name) +
                                  ": expected it with a hold-out of format 2 "
                                  "only, and there");
  c.epsilon = c.training_epsilon = claimed(j, "epsilon");
  c.delta = c.training_delta = j.at("delta").get<double>();
  if (!has_parts) return;
  if (first_is_training) {
    c.epsilon = claimed(j, "epsilon_total");
    c.delta = j.at("delta_total").get<double>();
  } else {
    c.training_epsilon = claimed(j, "training_epsilon");
    c.training_delta = j.at("training_delta").get<double>();
  }
}

/// The parts of a budget that a noisy number of examples has its own share of.
void read_split(const Json& j, Certificate& c) {
  const bool counts = j.contains("size_release") && j["size_release"].contains("epsilon");
  if (counts != j.contains("after_size_release"))
    throw std::invalid_argument(
        "expected an epsilon of size_release and after_size_release, or neither, found one");
  if (!counts) return;
  const Json& count = j["size_release"];
  const Json& after = j["after_size_release"];
  c.split = {.sigma = c.size_noise,
             .epsilon = c.training_epsilon,
             .delta = c.training_delta,
             .count_epsilon = count.at("epsilon").get<double>(),
             .count_delta = count.at("delta").get<double>(),
             .training_epsilon = after.at("epsilon").get<double>(),
             .training_delta = after.at("delta").get<double>(),
             .group = c.max_rows};
}

Certificate read(const Json& j) {
  Certificate c;
  c.format = format_of(j);
  c.status = text(j, "status");
  c.method = text(j, "method");
  c.sampling = text(j, "sampling");
  c.accountant = text(j, "accountant");
  c.generator = text(j, "rng");
  c.test_set = text(j, "test_set");
  read_promises(j, c);
  c.failure = number(j, "delta_for_rounding");
  c.unit = text(j, "unit");
  if (j.contains("unit") != j.contains("max_rows"))
    throw std::invalid_argument("expected unit and max_rows, or neither, found one");
  if (j.contains("max_rows")) c.max_rows = j["max_rows"].get<std::uint64_t>();
  privacy::check_group(c.max_rows);
  if (j.contains("holdout")) {
    const Json& part = j["holdout"];
    c.holdout = {.share = part.at("share").get<double>(),
                 .epsilon = number(part, "epsilon"),
                 .delta = number(part, "delta"),
                 .sigma = number(part, "sigma"),
                 .releases = part.value("releases", std::uint64_t{0})};
  }
  c.bounds_groups = j.contains("groups") && j["groups"].is_array();
  c.q = number(j, "q");
  c.sigma = number(j, "sigma");
  c.clip = number(j, "C");
  c.sensitivity = number(j, "sensitivity");
  c.noise_std = number(j, "noise_std");
  if (j.contains("noise")) c.grid = j["noise"].at("grid").get<double>();
  c.threshold = count(j, "sampling_threshold");
  c.expected_batch = number(j, "expected_batch");
  c.steps = count(j, "steps");
  c.steps_planned = count(j, "steps_planned");
  c.repeated = count(j, "releases_repeated");
  if (j.contains("keys_lost")) c.keys_lost = j["keys_lost"].get<std::uint64_t>();
  c.order = number(j, "order");
  c.order_fixed = j.contains("order_fixed_before") && j["order_fixed_before"].get<bool>();
  if (j.contains("size_release")) {
    c.size = j["size_release"].at("noisy_size").get<double>();
    c.size_noise = j["size_release"].at("noise_std").get<double>();
  } else {
    c.examples = j.at("training_examples").get<std::uint64_t>();
    c.size = static_cast<double>(*c.examples);
  }
  read_split(j, c);
  if (j.contains("feature_release")) c.feature_noise = number(j["feature_release"], "sigma");
  c.norm_total_noise = number(j, "norm_total_noise");
  c.loss_sensitivity = number(j, "loss_sensitivity");
  if (j.contains("quantile")) {
    const Json& q = j["quantile"];
    c.quantile =
        Certificate::Quantile{.target = q.at("target").get<double>(),
                              .min_clip = q.at("C_least").get<double>(),
                              .max_clip = q.at("C_most").get<double>(),
                              .gradient_noise = q.at("gradient_noise_multiplier").get<double>(),
                              .count_sensitivity = q.at("count_sensitivity").get<double>(),
                              .count_noise = q.at("count_noise_std").get<double>()};
  }
  if (j.contains("releases"))
    for (const Json& r : j["releases"]) c.releases.push_back(release_of(r));
  if (j.contains("noisy_values"))
    for (const Json& r : j["noisy_values"])
      c.noisy_values.push_back({.what = r.at("what").get<std::string>(),
                                .times = r.at("times").get<std::uint64_t>(),
                                .numbers = r.at("numbers").get<std::uint64_t>(),
                                .sensitivity = r.at("sensitivity").get<double>(),
                                .noise_std = r.at("noise_std").get<double>(),
                                .grid = r.at("grid").get<double>()});
  return c;
}

std::string_view word(std::string_view& line) {
  const std::size_t space = std::min(line.find(' '), line.size());
  const std::string_view first = line.substr(0, space);
  line.remove_prefix(std::min(space + 1, line.size()));
  return first;
}

}  // namespace

Certificate read_certificate(std::string_view text) {
  try {
    return read(parse_json(text));
  } catch (const std::exception& e) {
    throw std::invalid_argument(std::string("certificate: ") + e.what());
  }
}

std::vector<privacy::Release> Certificate::plan_releases() const {
  std::vector<privacy::Release> planned = releases;
  if (!split) return planned;
  const auto count = std::ranges::find(planned, privacy::Mechanism(privacy::Gaussian{split->sigma}),
                                       &privacy::Release::mechanism);
  if (count != planned.end() && --count->count == 0) planned.erase(count);
  return planned;
}

std::uint64_t Charges::keys_until(std::uint64_t charged) const {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(lost, [&](std::uint64_t position) { return position < charged; }));
}

const privacy::Mechanism* Charges::find(std::uint64_t number, std::uint64_t key,
                                        std::uint64_t charged) const {
  for (const Charge& c : lines)
    if (c.numbered && c.key == key && c.first <= number && number - c.first < c.release.count &&
        c.position + (number - c.first) < charged)
      return &c.release.mechanism;
  return nullptr;
}

Charges read_charges(std::string_view text) {
  // A seal may stand below.
  std::size_t end = text.starts_with("end ") ? 0 : text.find("\nend ");
  if (end != std::string_view::npos) end = text.find('\n', end + 1);
  if (end != std::string_view::npos) text = text.substr(0, end + 1);
  Charges charges;
  charges.ledger = privacy::Ledger::from_text(text, "ledger");
  if (const auto& split = charges.ledger.split()) {
    charges.lines.push_back({.numbered = false,
                             .first = 0,
                             .release = {privacy::Gaussian{split->sigma}, 1},
                             .position = 0,
                             .key = 0});
    charges.total = 1;
  }
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    std::string_view line = text.substr(0, newline);
    text.remove_prefix(newline + 1);
    line = line.substr(0, line.rfind(" #"));
    const std::string_view kind = word(line);
    if (kind == "key") charges.lost.push_back(charges.total);
    if (kind != "steps" && kind != "release") continue;
    Charge c{.numbered = kind == "steps",
             .first = 0,
             .release = {},
             .position = charges.total,
             .key = charges.lost.size()};
    if (c.numbered) c.first = std::stoull(std::string(word(line)));
    c.release.count = std::stoull(std::string(word(line)));
    c.release.mechanism = privacy::take_mechanism(line);
    charges.total += c.release.count;
    charges.lines.push_back(std::move(c));
  }
  return charges;
}

}  // namespace cudp::verify
