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
  std::string file;   ///< name in release/
  std::string field;  ///< JSON keys joined by '/', '*' for the place in a list; or a setting's name
  std::string how;    ///< up, down, ...
  std::optional<std::string> content;  ///< of the file afterwards; empty: it is removed
};

/// Texts that stand in the fields of other runs, by file and field: a forger swaps them.
using TextsOfFields = std::map<std::string, std::set<std::string>>;

/// Adds the texts of a run's certificate, and of the other JSON files of `release`.
void collect_texts(const std::filesystem::path& release, TextsOfFields& texts);

/// Every change of one field of what `release` states: of each number up, down, of other sign, 0,
/// huge, doubled; of each text, flag and list; each of them removed, or of another type; keys,
/// lines and rows removed, doubled, swapped; files removed, and added.
std::vector<Forgery> forgeries_of(const std::filesystem::path& release, const TextsOfFields& texts);

}  // namespace cudp
