#pragma once
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "privacy/mechanism/mechanism.hpp"

namespace cudp {

/// The report of a command. It is printed as a JSON object, or as a table of names and texts.
struct Answer {
  nlohmann::ordered_json json;
  std::vector<std::pair<std::string, std::string>> rows;

  /// Adds a value to the JSON, and its text to the table under the same name.
  void add(const std::string& key, nlohmann::ordered_json value, std::string text) {
    json[key] = std::move(value);
    rows.emplace_back(key, std::move(text));
  }
};

/// Adds what was asked about: one release's fields, or a list of them.
void add_releases(Answer& answer, const std::vector<privacy::Release>& releases);

/// Adds a row, its text cut into lines that fit a terminal beside names of up to `names` letters.
void add_wrapped(Answer& answer, const std::string& name, const std::string& text,
                 std::size_t names);

/// Prints one of the two to stdout.
void print(const Answer& answer, bool as_json);

/// Six digits, rounded so that the number shown is not below (not above) the number meant: people
/// copy from tables. value finite, >= 0.
std::string rounded_up(double value);
std::string rounded_down(double value);

}  // namespace cudp
