#pragma once
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "privacy/mechanism/mechanism.hpp"
#include "runtime/base/rounded_text.hpp"

namespace cudp {

/// The output of a command: a JSON object and a table of names and texts, one of which is printed.
struct Answer {
  nlohmann::ordered_json json;
  std::vector<std::pair<std::string, std::string>> rows;

  /// Adds a value to the JSON, and its text to the table under the same name.
  void add(const std::string& key, nlohmann::ordered_json value, std::string text) {
    json[key] = std::move(value);
    rows.emplace_back(key, std::move(text));
  }
};

/// Adds a description of these releases to the answer: the fields of a single one, or a list.
void add_releases(Answer& answer, const std::vector<privacy::Release>& releases);

/// Adds a row whose text is broken into lines that fit a terminal, next to names of up to `names`
/// characters.
void add_wrapped(Answer& answer, const std::string& name, const std::string& text,
                 std::size_t names);

/// Prints the JSON or the table to stdout.
void print(const Answer& answer, bool as_json);

}  // namespace cudp
