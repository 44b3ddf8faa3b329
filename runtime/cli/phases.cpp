#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include "runtime/base/files.hpp"
#include "runtime/cli/accountant.hpp"

namespace cudp {
namespace {

using nlohmann::json;

/// Calls visit(name, value) for each parameter of the mechanism m, in the order of its JSON form.
template <class M, class Visit>
void for_each_mechanism_field(M& m, Visit visit) {
  if constexpr (requires { m.steps; }) visit("steps_per_epoch", m.steps);
  if constexpr (requires { m.n; }) visit("n", m.n);
  if constexpr (requires { m.batch; }) visit("batch", m.batch);
  if constexpr (requires { m.q; }) visit("q", m.q);
  if constexpr (requires { m.max_batch; }) visit("max_batch", m.max_batch);
  if constexpr (requires { m.sensitivities; }) visit("sensitivities", m.sensitivities);
  if constexpr (requires { m.probabilities; }) visit("probabilities", m.probabilities);
  if constexpr (requires { m.scale; }) visit("scale", m.scale);
  if constexpr (requires { m.epsilon; }) visit("epsilon", m.epsilon);
  if constexpr (requires { m.delta; }) visit("delta", m.delta);
  if constexpr (requires { m.sigma; }) visit("sigma", m.sigma);
}

/// Returns the JSON key under which a release's number of repetitions is stored: "epochs" for
/// random allocation, in which a release is an epoch, otherwise "steps".
const char* count_key(const privacy::Mechanism& mechanism) {
  return std::holds_alternative<privacy::AllocatedGaussian>(mechanism) ? "epochs" : "steps";
}

/// Returns a JSON value as one line for a message: at most 60 characters, and "..." if the value is
/// longer.
std::string value_text_of(const json& value) {
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 60) + "...";
  return text;
}

/// One entry of a JSON list of releases. Each call of read() reads one field of it; finish() throws
/// if the entry has other fields.
class Entry {
 public:
  Entry(const json& entry, std::string place) : entry_(entry), place_(std::move(place)) {
    if (!entry.is_object())
      throw InputError(place_ + ": expected {\"q\": ..., \"sigma\": ..., \"steps\": ...}, found " +
                       value_text_of(entry));
  }

  void read(const char* key, double& value) {
    value = number(key, at(key), "a number").get<double>();
  }
  void read(const char* key, std::uint64_t& value) {
    const json& found = at(key);
    if (!found.is_number_unsigned()) refuse(key, "a whole number >= 0", found);
    value = found.get<std::uint64_t>();
  }
  void read(const char* key, std::vector<double>& values) {
    const json& found = at(key);
    if (!found.is_array()) refuse(key, kNumbers, found);
    for (const json& v : found) values.push_back(number(key, v, kNumbers).get<double>());
  }
  /// Reads a text field; leaves `text` unchanged if there is no such key.
  void read(const char* key, std::string& text) {
    if (!entry_.contains(key)) return;
    const json& found = at(key);
    if (!found.is_string()) refuse(key, "a name", found);
    text = found.get<std::string>();
  }

  /// Throws InputError if the entry has a key that was not read by read().
  void finish() const {
    for (const auto& [key, value] : entry_.items())
      if (std::ranges::find(read_, key) == read_.end())
        throw InputError(place_ + ": expected keys " + names() + ", found " + value_text_of(key));
  }
  const std::string& place() const { return place_; }

 private:
  static constexpr const char* kNumbers = "a list of numbers";

  const json& at(const char* key) {
    read_.emplace_back(key);
    const auto found = entry_.find(key);
    if (found == entry_.end())
      throw InputError(place_ + ": expected a key '" + key + "', found none");
    return *found;
  }
  const json& number(const char* key, const json& found, const char* expected) const {
    if (!found.is_number()) refuse(key, expected, found);
    return found;
  }
  std::string names() const {
    std::string all;
    for (const std::string& t : read_) all += (all.empty() ? "" : ", ") + t;
    return all;
  }
  [[noreturn]] void refuse(const char* key, const char* expected, const json& found) const {
    throw InputError(place_ + ", " + key + ": expected " + expected + ", found " +
                     value_text_of(found));
  }

  const json& entry_;
  std::string place_;
  std::vector<std::string> read_;
};

/// Returns the mechanism with this name, with its parameters read from the entry. It is found by
/// recursion: only the alternatives of the variant privacy::Mechanism from number `index` on are
/// tried.
template <std::size_t index = 0>
privacy::Mechanism mechanism_at(Entry& e, const std::string& name) {
  if constexpr (index < std::variant_size_v<privacy::Mechanism>) {
    std::variant_alternative_t<index, privacy::Mechanism> m;
    if (privacy::name(m) != name) return mechanism_at<index + 1>(e, name);
    for_each_mechanism_field(m, [&](const char* key, auto& value) { e.read(key, value); });
    return m;
  } else {
    throw InputError(e.place() +
                     ", mechanism: expected gaussian, poisson-gaussian, fixed-size-gaussian, "
                     "truncated-poisson-gaussian, allocated-gaussian, gaussian-mixture, laplace, "
                     "poisson-laplace, bounded-range or approximate-dp, found '" +
                     name + "'");
  }
}

privacy::Release release_at(const json& entry, const std::string& place) {
  Entry e(entry, place);
  std::string name = "poisson-gaussian";
  e.read("mechanism", name);
  privacy::Release release{.mechanism = mechanism_at(e, name)};
  e.read(count_key(release.mechanism), release.count);
  e.finish();
  try {
    privacy::check(release);
  } catch (const std::invalid_argument& refused) {
    throw InputError(place + ", " + refused.what());
  }
  return release;
}

}  // namespace

nlohmann::ordered_json json_of(const privacy::Release& release) {
  nlohmann::ordered_json j{{"mechanism", privacy::name(release.mechanism)}};
  std::visit(
      [&](const auto& m) {
        for_each_mechanism_field(m, [&](const char* key, const auto& value) { j[key] = value; });
      },
      release.mechanism);
  j[count_key(release.mechanism)] = release.count;
  return j;
}

std::vector<privacy::Release> read_phases(const std::filesystem::path& file) {
  return read_phases(read_user_file(file), file.string());
}

std::vector<privacy::Release> read_phases(const std::string& text, const std::string& source) {
  json list;
  try {
    list = json::parse(text);
  } catch (const json::exception& damage) {
    const auto* syntax = dynamic_cast<const json::parse_error*>(&damage);
    const std::size_t byte = syntax != nullptr ? std::min(syntax->byte, text.size()) : 0;
    const auto line = 1 + std::ranges::count(text.substr(0, byte), '\n');
    throw InputError(source + ", line " + std::to_string(line) + ": expected JSON, found " +
                     (text.empty() ? "an empty file" : damage.what()));
  }
  if (list.is_object() && list.size() == 1 && list.contains("phases")) list = json(list["phases"]);
  if (!list.is_array() || list.empty())
    throw InputError(source + ": expected a list of phases, found " + value_text_of(list));
  std::vector<privacy::Release> releases;
  releases.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i)
    releases.push_back(release_at(list[i], source + ", phase " + std::to_string(i + 1)));
  return releases;
}

}  // namespace cudp
