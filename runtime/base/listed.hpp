#pragma once
#include <span>
#include <string>
#include <string_view>

namespace cudp {

/// Returns names as a list for a sentence: "a", "a and b", "a, b and c". quote: text to put before
/// and after each name, e.g. "'".
inline std::string listed(std::span<const std::string> names, std::string_view quote = "") {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += i == 0 ? "" : i + 1 == names.size() ? " and " : ", ";
    text.append(quote).append(names[i]).append(quote);
  }
  return text;
}

}  // namespace cudp
