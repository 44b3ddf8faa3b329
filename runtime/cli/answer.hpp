#pragma once
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "privacy/mechanism/mechanism.hpp"
#include "runtime/base/rounded_text.hpp"

namespace cudp {

/// The output of a command in two forms, a JSON object and a table with two columns (name, text).
/// The command prints one of them.
struct Answer {
  nlohmann::ordered_json json;
  std::vector<std::pair<std::string, std::string>> rows;

  /// Adds a value to the JSON object under the name `key`, and `text`, the value for human readers,
  /// to the table under the same name.
  void add(const std::string& key, nlohmann::ordered_json value, std::string text) {
    json[key] = std::move(value);
    rows.emplace_back(key, std::move(text));
  }
};

/// Adds a description of releases (privacy mechanisms with their numbers of repetitions) to a
/// command's output: the parameters of a single one, or a list of several.
void add_releases(Answer& answer, const std::vector<privacy::Release>& releases);

/// Adds a row to the output's table, with the text broken into lines that fit a terminal. names:
/// number of characters of the longest name in the table, which reduces the width that is left for
/// texts.
void add_wrapped(Answer& answer, const std::string& name, const std::string& text,
                 std::size_t names);

/// Prints the output of a command to stdout: the JSON object if as_json is set, otherwise the
/// table.
void print(const Answer& answer, bool as_json);

}  // namespace cudp
