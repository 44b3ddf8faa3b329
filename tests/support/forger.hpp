#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace cudp {

/// One change of one file of a released run.
struct Forgery {
  std::string file;  ///< name in release/
  /// JSON keys joined by '/', with '*' for the index in a list; or the name of a setting.
  std::string field;
  std::string how;  ///< kind of change: "up", "down", ...
  /// Content of the file afterwards; empty: the file is removed.
  std::optional<std::string> content;
};

/// Texts of the fields of other runs, by file and field. A forger replaces a text by one of another
/// run.
using TextsOfFields = std::map<std::string, std::set<std::string>>;

/// Adds the texts of a run's certificate, and of the other JSON files of `release`.
void collect_texts(const std::filesystem::path& release, TextsOfFields& texts);

/// Returns all changes of one field of the files in `release`: numbers increased, decreased,
/// negated, set to 0, made huge, doubled; texts, flags and lists changed; fields removed, or given
/// another type; keys, lines and rows removed, doubled, swapped; files removed, and added.
std::vector<Forgery> forgeries_of(const std::filesystem::path& release, const TextsOfFields& texts);

}  // namespace cudp
