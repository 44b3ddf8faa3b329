#include "runtime/base/nearest.hpp"

#include <algorithm>
#include <cctype>

#include "runtime/base/listed.hpp"

namespace cudp {
namespace {

/// Minimum length of a word for which names with a similar beginning or spelling are suggested. A
/// shorter word would match too many names.
constexpr std::size_t kMinPrefix = 3;
/// Maximum number of names that an error message suggests.
constexpr std::size_t kMaxNamed = 6;

/// Returns the distance of two spellings: the minimum number of insertions, deletions,
/// substitutions and exchanges of two neighbouring letters that turn `a` into `b`, if no letter is
/// changed twice.
std::size_t distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> table((a.size() + 1) * width);
  const auto at = [&](std::size_t i, std::size_t j) -> std::size_t& {
    return table[i * width + j];
  };
  for (std::size_t i = 0; i <= a.size(); ++i) at(i, 0) = i;
  for (std::size_t j = 0; j <= b.size(); ++j) at(0, j) = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitute = at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1);
      at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, substitute});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
    }
  }
  return table.back();
}

std::string plain(std::string_view word) {
  std::string text(word.substr(std::min(word.find_first_not_of('-'), word.size())));
  for (char& c : text)
    c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string first_part(const std::string& name) { return name.substr(0, name.find('-')); }

template <class Wanted>
std::vector<std::string> those(std::span<const std::string> candidates, const Wanted& wanted) {
  std::vector<std::string> found;
  for (const std::string& c : candidates)
    if (wanted(c) && std::ranges::find(found, c) == found.end()) found.push_back(c);
  return found;
}

/// Returns the candidate whose spelling is nearest to the word's, as a list of one element. The
/// list is empty if the distance is greater than 1 and more than a third of the word's length.
std::vector<std::string> best_spelled(std::string_view word,
                                      std::span<const std::string> candidates) {
  std::size_t shortest = std::max<std::size_t>(1, word.size() / 3) + 1;
  std::vector<std::string> best;
  for (const std::string& c : candidates) {
    const std::string name = plain(c);
    const std::size_t d = distance(word, name);
    // If d equals the name's length, no letter of the name is kept.
    if (d >= shortest || d >= name.size()) continue;
    best.assign(1, c);
    shortest = d;
  }
  return best;
}

}  // namespace

std::vector<std::string> near_names(std::string_view word, std::span<const std::string> candidates,
                                    std::span<const Synonym> synonyms) {
  const std::string meant = plain(word);
  if (auto same = those(candidates, [&](const auto& c) { return plain(c) == meant; });
      !same.empty())
    return same;
  auto known = those(candidates, [&](const auto& c) {
    return std::ranges::any_of(
        synonyms, [&](const Synonym& s) { return s.theirs == meant && s.ours == plain(c); });
  });
  if (!known.empty()) return known;
  if (meant.size() >= kMinPrefix) {
    auto longer = those(candidates, [&](const auto& c) { return plain(c).starts_with(meant); });
    if (!longer.empty() && longer.size() <= kMaxNamed) return longer;
  }
  auto spelled = best_spelled(meant, candidates);
  if (!spelled.empty()) return spelled;
  const std::string part = first_part(meant);
  auto alike = those(candidates, [&](const auto& c) { return first_part(plain(c)) == part; });
  if (part.size() < kMinPrefix || alike.size() > kMaxNamed) return {};
  return alike;
}

std::string nearest_or_all(std::string_view word, std::span<const std::string> candidates,
                           std::span<const Synonym> synonyms, const std::string& otherwise) {
  const std::vector<std::string> near = near_names(word, candidates, synonyms);
  if (near.size() == 1) return "the nearest is '" + near[0] + "'";
  if (!near.empty()) return "the nearest are " + listed(near, "'");
  return otherwise.empty() ? "there are " + listed(candidates) : otherwise;
}

}  // namespace cudp
