#pragma once
#include <filesystem>
#include <string>

namespace cudp {

/// The facts that are known of a table when its schema is drafted.
struct DraftOptions {
  bool rows_are_public =
      false;             ///< the user declares them so: then kinds and bounds are drafted too
  std::string label{};   ///< the column of the class; empty: as schema_from_header guesses
  std::string target{};  ///< the column of the number to predict, in place of a class; empty: none
  std::string delimiter{};  ///< one character; empty: a tab for .tsv and .tab, otherwise a comma
};

/// A tab for .tsv and .tab files, packed or not, and a comma for all others.
char delimiter_of(const std::filesystem::path& table);

/// A draft of a schema, as TOML with comments that say what is left to do. Without
/// rows_are_public it depends on the table's header alone. Throws InputError where there is none,
/// or the file is no table.
std::string draft_schema(const std::filesystem::path& table, const DraftOptions& options);

}  // namespace cudp
