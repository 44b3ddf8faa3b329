#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cudp {

/// Name by which another program calls an option that has a different name in cudp.
struct Synonym {
  /// Name of the option in the other program, in lower case, its words joined by "-".
  std::string_view theirs;
  std::string_view ours;  ///< name of the option in cudp
};

/// Returns the candidates that a misspelt `word` may stand for. The first of these rules that finds
/// any applies: candidates equal to the word; those that have the word as a synonym; those that
/// begin with the word; the one with the most similar spelling; those that have the same beginning,
/// up to the first "-", as the word. Empty if no rule finds any. Upper and lower case and leading
/// "-" do not matter, and "_" counts as "-".
std::vector<std::string> near_names(std::string_view word, std::span<const std::string> candidates,
                                    std::span<const Synonym> synonyms = {});

/// Returns the end of an error message about an unknown `word`. If a candidate's name is similar
/// (near_names), it is "the nearest is 'adult-logistic'". Otherwise it is the text `otherwise`, or
/// if that is empty the list of all candidates: "there are glyphs-cnn, mnist-cnn".
std::string nearest_or_all(std::string_view word, std::span<const std::string> candidates,
                           std::span<const Synonym> synonyms = {},
                           const std::string& otherwise = "");

}  // namespace cudp
