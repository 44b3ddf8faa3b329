#include "runtime/cli/answer.hpp"

#include <algorithm>
#include <iostream>
#include <utility>
#include <vector>

#include <unistd.h>

#include "privacy/text/number.hpp"
#include "runtime/base/reporter.hpp"
#include "runtime/cli/accountant.hpp"

namespace cudp {
namespace {

/// Returns the number of characters of a UTF-8 text.
std::size_t characters(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

/// Returns the width that remains for the values in a table with two columns, names and values,
/// whose lines have `width` characters; at least 20. names: number of characters of the longest
/// name.
std::size_t room_beside(std::size_t names, std::size_t width) {
  constexpr std::size_t kLeast = 20;
  return std::max(kLeast, width > names + 2 ? width - names - 2 : 0);
}

/// Breaks a text at blanks into lines of at most `room` characters; a longer word is a line of its
/// own.
std::vector<std::string> wrapped(const std::string& text, std::size_t room) {
  std::vector<std::string> lines(1);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t space = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, space - at);
    if (!lines.back().empty() && characters(lines.back()) + 1 + characters(word) > room)
      lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
    at = space + 1;
  }
  return lines;
}

/// Returns whether a JSON object has a key of another one. Then merging them would replace a value:
/// some mechanisms have an epsilon and a delta of their own, which are not those of the answer.
bool share_a_key(const nlohmann::ordered_json& a, const nlohmann::ordered_json& b) {
  for (const auto& [key, value] : b.items())
    if (a.contains(key)) return true;
  return false;
}

}  // namespace

void add_releases(Answer& answer, const std::vector<privacy::Release>& releases) {
  const auto text = [](const nlohmann::ordered_json& value) {
    return value.is_number_float() ? privacy::number(value.get<double>()) : value.dump();
  };
  constexpr std::size_t kShown = 8;
  for (std::size_t i = 0; i < releases.size(); ++i) {
    nlohmann::ordered_json fields = json_of(releases[i]);
    std::string line = fields["mechanism"].get<std::string>();
    for (const auto& [key, value] : fields.items())
      if (key != "mechanism") line += ", " + key + " " + text(value);
    if (i < kShown) answer.rows.emplace_back("phase " + std::to_string(i + 1), line);
    if (i == kShown)
      answer.rows.emplace_back("...", std::to_string(releases.size() - kShown) + " more phases");
    const bool is_alone = releases.size() == 1;
    if (is_alone) answer.rows.back().first = "mechanism";
    if (is_alone && !share_a_key(answer.json, fields)) {
      answer.json.update(fields);
      return;
    }
    answer.json["phases"].push_back(std::move(fields));
  }
}

void add_wrapped(Answer& answer, const std::string& name, const std::string& text,
                 std::size_t names) {
  constexpr int kWidth = 80;
  const int columns = terminal_width(STDOUT_FILENO);
  const auto width = static_cast<std::size_t>(columns > 0 ? std::min(columns, kWidth) : kWidth);
  std::string left = name;
  for (std::string& line : wrapped(text, room_beside(names, width)))
    answer.rows.emplace_back(std::exchange(left, ""), std::move(line));
}

void print(const Answer& answer, bool as_json) {
  if (as_json) {
    std::cout << answer.json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    return;
  }
  std::size_t width = 0;
  for (const auto& [name, value] : answer.rows) width = std::max(width, characters(name));
  // Long values are broken at the edge of a terminal, but in a pipe each row is one line.
  const int columns = terminal_width(STDOUT_FILENO);
  for (const auto& [name, value] : answer.rows) {
    std::string left = name + std::string(width + 2 - characters(name), ' ');
    std::vector<std::string> lines = {value};
    if (columns > 0 && width + 2 + characters(value) > static_cast<std::size_t>(columns))
      lines = wrapped(value, room_beside(width, static_cast<std::size_t>(columns)));
    for (const std::string& line : lines)
      std::cout << std::exchange(left, std::string(width + 2, ' ')) << line << "\n";
  }
}

}  // namespace cudp
