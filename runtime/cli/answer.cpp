#include "runtime/cli/answer.hpp"

#include <algorithm>
#include <iostream>
#include <utility>

#include "privacy/text/number.hpp"
#include "runtime/cli/accountant.hpp"

namespace cudp {

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
    if (releases.size() == 1) {
      answer.rows.back().first = "mechanism";
      answer.json.update(fields);
      return;
    }
    answer.json["phases"].push_back(std::move(fields));
  }
}

void add_wrapped(Answer& answer, const std::string& name, const std::string& text,
                 std::size_t names) {
  constexpr std::size_t kWidth = 80;
  std::string line;
  std::string left = name;
  const std::size_t room = kWidth - names - 2;
  const auto end_line = [&] {
    answer.rows.emplace_back(std::exchange(left, ""), std::exchange(line, ""));
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t space = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, space - at);
    if (!line.empty() && line.size() + 1 + word.size() > room) end_line();
    line += (line.empty() ? "" : " ") + word;
    at = space + 1;
  }
  end_line();
}

void print(const Answer& answer, bool as_json) {
  if (as_json) {
    std::cout << answer.json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    return;
  }
  // Counts the bytes that begin a UTF-8 character.
  const auto characters = [](const std::string& text) {
    return static_cast<std::size_t>(std::ranges::count_if(
        text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
  };
  std::size_t width = 0;
  for (const auto& [name, value] : answer.rows) width = std::max(width, characters(name));
  for (const auto& [name, value] : answer.rows)
    std::cout << name << std::string(width + 2 - characters(name), ' ') << value << "\n";
}

}  // namespace cudp
