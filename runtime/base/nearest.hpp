#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cudp {

/// A name that other programs have for one of ours.
struct Synonym {
  std::string_view theirs;  ///< in lower case, words joined by "-"
  std::string_view ours;
};

/// The candidates that `word` may stand for: those that synonyms name; else those that begin with
/// it; else the one of the most similar spelling; else those that begin with the same part up to a
/// "-". Empty where none is near. Case and leading "-" do not count, and "_"
/// counts as "-".
std::vector<std::string> near_names(std::string_view word, std::span<const std::string> candidates,
                                    std::span<const Synonym> synonyms = {});

/// The end of a refusal of `word`: "the nearest is 'adult-logistic'", or, where nothing is near,
/// `otherwise`, or else the whole list: "there are glyphs-cnn, mnist-cnn".
std::string nearest_or_all(std::string_view word, std::span<const std::string> candidates,
                           std::span<const Synonym> synonyms = {},
                           const std::string& otherwise = "");

}  // namespace cudp
