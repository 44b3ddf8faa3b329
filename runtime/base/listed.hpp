#pragma once
#include <span>
#include <string>
#include <string_view>

namespace cudp {

/// Returns names as a list in a sentence, each in `quote`: "a", "a and b", "a, b and c".
inline std::string listed(std::span<const std::string> names, std::string_view quote = "") {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += i == 0 ? "" : i + 1 == names.size() ? " and " : ", ";
    text.append(quote).append(names[i]).append(quote);
  }
  return text;
}

}  // namespace cudp
