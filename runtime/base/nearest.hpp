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

/// Returns the candidates that a misspelt `word` may stand for; empty if there are none. Upper and
/// lower case and leading "-" do not matter, and "_" counts as "-". The first of these rules that
/// matches any candidate decides:
/// - candidates equal to the word,
/// - candidates that have the word as a synonym,
/// - candidates that begin with the word,
/// - the candidate with the most similar spelling,
/// - candidates whose part before the first "-" is that of the word.
std::vector<std::string> near_names(std::string_view word, std::span<const std::string> candidates,
                                    std::span<const Synonym> synonyms = {});

/// Returns the end of an error message about an unknown `word`: "the nearest is 'adult-logistic'"
/// if a candidate's name is similar (near_names); otherwise the text `otherwise` or, if that is
/// empty, a list of all candidates: "there are glyphs-cnn, mnist-cnn".
std::string nearest_or_all(std::string_view word, std::span<const std::string> candidates,
                           std::span<const Synonym> synonyms = {},
                           const std::string& otherwise = "");

}  // namespace cudp
