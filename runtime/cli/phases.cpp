#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

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

/// What a value is, in one short line.
std::string shown(const json& value) {
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 60) + "...";
  return text;
}

/// The phase's `key`, a number; steps must be whole.
const json& number_at(const json& phase, const char* key, const std::string& place) {
  const auto found = phase.find(key);
  if (found == phase.end())
    throw InputError(place + ": expected keys q, sigma, steps, found no '" + key + "'");
  const bool whole = std::strcmp(key, "steps") == 0;
  if (whole ? !found->is_number_unsigned() : !found->is_number())
    throw InputError(place + ", " + key + ": expected " +
                     (whole ? "a whole number >= 0" : "a number") + ", found " + shown(*found));
  return *found;
}

privacy::Phase phase_of(const json& phase, const std::string& place) {
  if (!phase.is_object())
    throw InputError(place + ": expected {\"q\": ..., \"sigma\": ..., \"steps\": ...}, found " +
                     shown(phase));
  for (const auto& [key, value] : phase.items())
    if (key != "q" && key != "sigma" && key != "steps")
      throw InputError(place + ": expected keys q, sigma, steps, found " + shown(key));
  const privacy::Phase result{.q = number_at(phase, "q", place).get<double>(),
                              .sigma = number_at(phase, "sigma", place).get<double>(),
                              .steps = number_at(phase, "steps", place).get<std::uint64_t>()};
  try {
    privacy::check(result);
  } catch (const std::invalid_argument& refused) {
    throw InputError(place + ", " + refused.what());
  }
  return result;
}

}  // namespace

std::vector<privacy::Phase> read_phases(const std::filesystem::path& file) {
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
  if (!list.is_array() || list.empty())
    throw InputError(file.string() + ": expected a list of phases, found " + shown(list));
  std::vector<privacy::Phase> phases;
  for (std::size_t i = 0; i < list.size(); ++i)
    phases.push_back(phase_of(list[i], file.string() + ", phase " + std::to_string(i + 1)));
  return phases;
}

}  // namespace cudp
