#pragma once
#include <span>
#include <string>
#include <string_view>

namespace cudp {

/// The candidate with the fewest insertions, deletions and substitutions away from `word`; the
/// first of equals, "" if there are none.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace cudp
