#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include "runtime/cli/accountant.hpp"

namespace cudp {
namespace {

using nlohmann::json;

std::string read_text(const std::filesystem::path& file) {
  if (std::filesystem::is_directory(file))
    throw InputError(file.string() + ": expected a file, found a directory");
  std::ifstream stream(file, std::ios::binary);
  if (!stream)
    throw InputError(file.string() + ": expected a readable file, found: " + std::strerror(errno));
  std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  return text;
}

/// A value in one short line.
std::string value_text_of(const json& value) {
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 60) + "...";
  return text;
}

/// The fields of one entry of the list. Each must be taken, and there may be no others.
class Entry {
 public:
  Entry(const json& entry, std::string place) : entry_(entry), place_(std::move(place)) {
    if (!entry.is_object())
      throw InputError(place_ + ": expected {\"q\": ..., \"sigma\": ..., \"steps\": ...}, found " +
                       value_text_of(entry));
  }

  double number(const char* key) {
    const json& found = take(key);
    if (!found.is_number()) refuse(key, "a number", found);
    return found.get<double>();
  }
  std::uint64_t whole(const char* key) {
    const json& found = take(key);
    if (!found.is_number_unsigned()) refuse(key, "a whole number >= 0", found);
    return found.get<std::uint64_t>();
  }
  std::vector<double> numbers(const char* key) {
    const json& found = take(key);
    if (!found.is_array()) refuse(key, "a list of numbers", found);
    std::vector<double> values;
    for (const json& v : found) {
      if (!v.is_number()) refuse(key, "a list of numbers", v);
      values.push_back(v.get<double>());
    }
    return values;
  }
  /// The text at `key`, or `otherwise` where there is none.
  std::string text(const char* key, const char* otherwise) {
    if (!entry_.contains(key)) return otherwise;
    const json& found = take(key);
    if (!found.is_string()) refuse(key, "a name", found);
    return found.get<std::string>();
  }

  /// To be called when every field was taken.
  void finish() const {
    for (const auto& [key, value] : entry_.items())
      if (std::find(taken_.begin(), taken_.end(), key) == taken_.end())
        throw InputError(place_ + ": expected keys " + names() + ", found " + value_text_of(key));
  }
  const std::string& place() const { return place_; }

 private:
  const json& take(const char* key) {
    taken_.emplace_back(key);
    const auto found = entry_.find(key);
    if (found == entry_.end())
      throw InputError(place_ + ": expected a key '" + key + "', found none");
    return *found;
  }
  std::string names() const {
    std::string all;
    for (const std::string& t : taken_) all += (all.empty() ? "" : ", ") + t;
    return all;
  }
  [[noreturn]] void refuse(const char* key, const char* expected, const json& found) const {
    throw InputError(place_ + ", " + key + ": expected " + expected + ", found " +
                     value_text_of(found));
  }

  const json& entry_;
  std::string place_;
  std::vector<std::string> taken_;
};

privacy::Mechanism mechanism_at(Entry& e) {
  const std::string name = e.text("mechanism", "poisson-gaussian");
  // Braces keep the order of these calls, and so of the keys that a message lists.
  if (name == "poisson-gaussian")
    return privacy::PoissonGaussian{.q = e.number("q"), .sigma = e.number("sigma")};
  if (name == "gaussian") return privacy::Gaussian{.sigma = e.number("sigma")};
  if (name == "fixed-size-gaussian")
    return privacy::FixedSizeGaussian{
        .n = e.whole("n"), .batch = e.whole("batch"), .sigma = e.number("sigma")};
  if (name == "truncated-poisson-gaussian")
    return privacy::TruncatedPoissonGaussian{.n = e.whole("n"),
                                             .q = e.number("q"),
                                             .max_batch = e.whole("max_batch"),
                                             .sigma = e.number("sigma")};
  if (name == "gaussian-mixture")
    return privacy::GaussianMixture{.sensitivities = e.numbers("sensitivities"),
                                    .probabilities = e.numbers("probabilities"),
                                    .sigma = e.number("sigma")};
  if (name == "laplace") return privacy::Laplace{.scale = e.number("scale")};
  if (name == "poisson-laplace")
    return privacy::PoissonLaplace{.q = e.number("q"), .scale = e.number("scale")};
  if (name == "bounded-range") return privacy::BoundedRange{.epsilon = e.number("epsilon")};
  if (name == "approximate-dp")
    return privacy::ApproximateDp{.epsilon = e.number("epsilon"), .delta = e.number("delta")};
  throw InputError(e.place() +
                   ", mechanism: expected gaussian, poisson-gaussian, fixed-size-gaussian, "
                   "truncated-poisson-gaussian, gaussian-mixture, laplace, poisson-laplace, "
                   "bounded-range or approximate-dp, found '" +
                   name + "'");
}

privacy::Release release_at(const json& entry, const std::string& place) {
  Entry e(entry, place);
  privacy::Release release{.mechanism = mechanism_at(e), .count = e.whole("steps")};
  e.finish();
  try {
    privacy::check(release);
  } catch (const std::invalid_argument& refused) {
    throw InputError(place + ", " + refused.what());
  }
  return release;
}

struct Fields {
  nlohmann::ordered_json operator()(const privacy::Gaussian& m) const {
    return {{"sigma", m.sigma}};
  }
  nlohmann::ordered_json operator()(const privacy::PoissonGaussian& m) const {
    return {{"q", m.q}, {"sigma", m.sigma}};
  }
  nlohmann::ordered_json operator()(const privacy::FixedSizeGaussian& m) const {
    return {{"n", m.n}, {"batch", m.batch}, {"sigma", m.sigma}};
  }
  nlohmann::ordered_json operator()(const privacy::TruncatedPoissonGaussian& m) const {
    return {{"n", m.n}, {"q", m.q}, {"max_batch", m.max_batch}, {"sigma", m.sigma}};
  }
  nlohmann::ordered_json operator()(const privacy::GaussianMixture& m) const {
    return {
        {"sensitivities", m.sensitivities}, {"probabilities", m.probabilities}, {"sigma", m.sigma}};
  }
  nlohmann::ordered_json operator()(const privacy::Laplace& m) const {
    return {{"scale", m.scale}};
  }
  nlohmann::ordered_json operator()(const privacy::PoissonLaplace& m) const {
    return {{"q", m.q}, {"scale", m.scale}};
  }
  nlohmann::ordered_json operator()(const privacy::BoundedRange& m) const {
    return {{"epsilon", m.epsilon}};
  }
  nlohmann::ordered_json operator()(const privacy::ApproximateDp& m) const {
    return {{"epsilon", m.epsilon}, {"delta", m.delta}};
  }
};

}  // namespace

nlohmann::ordered_json json_of(const privacy::Release& release) {
  nlohmann::ordered_json j{{"mechanism", privacy::name(release.mechanism)}};
  j.update(std::visit(Fields{}, release.mechanism));
  j["steps"] = release.count;
  return j;
}

std::vector<privacy::Release> read_phases(const std::filesystem::path& file) {
  const std::string text = read_text(file);
  json list;
  try {
    list = json::parse(text);
  } catch (const json::exception& damage) {
    const auto* syntax = dynamic_cast<const json::parse_error*>(&damage);
    const std::size_t byte = syntax != nullptr ? std::min(syntax->byte, text.size()) : 0;
    const auto line =
        1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(byte), '\n');
    throw InputError(file.string() + ", line " + std::to_string(line) + ": expected JSON, found " +
                     (text.empty() ? "an empty file" : damage.what()));
  }
  if (list.is_object() && list.size() == 1 && list.contains("phases")) list = json(list["phases"]);
  if (!list.is_array() || list.empty())
    throw InputError(file.string() + ": expected a list of phases, found " + value_text_of(list));
  std::vector<privacy::Release> releases;
  for (std::size_t i = 0; i < list.size(); ++i)
    releases.push_back(release_at(list[i], file.string() + ", phase " + std::to_string(i + 1)));
  return releases;
}

}  // namespace cudp
