#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cudp {

/// Name that another program uses for an option of this one.
struct Synonym {
  std::string_view theirs;  ///< lower case, words joined by "-"
  std::string_view ours;
};

/// Returns the candidates that a misspelt `word` may stand for. The first of these rules that finds
/// any applies: candidates equal to the word; those that a synonym names; those that begin with the
/// word; the one with the most similar spelling; those that begin with the same part up to a "-".
/// Empty if none is similar. Case and leading "-" do not count, and "_" counts as "-".
std::vector<std::string> near_names(std::string_view word, std::span<const std::string> candidates,
                                    std::span<const Synonym> synonyms = {});

/// Returns the end of an error message about an unknown `word`: "the nearest is 'adult-logistic'".
/// If no name is similar, returns `otherwise`, or if that is empty the list of all names: "there
/// are glyphs-cnn, mnist-cnn".
std::string nearest_or_all(std::string_view word, std::span<const std::string> candidates,
                           std::span<const Synonym> synonyms = {},
                           const std::string& otherwise = "");

}  // namespace cudp
