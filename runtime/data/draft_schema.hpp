#pragma once
#include <filesystem>
#include <string>

namespace cudp {

/// Facts that a user states about a table for which a schema is drafted.
struct DraftOptions {
  bool rows_are_public =
      false;             ///< the rows are declared public, so that kinds and bounds are drafted too
  std::string label{};   ///< column of the class; empty: the guess of schema_from_header
  std::string target{};  ///< column of the number to predict, instead of a class; empty: none
  std::string delimiter{};  ///< one character; empty: a tab for .tsv and .tab, otherwise a comma
};

/// Returns a tab for .tsv and .tab files, compressed or not, and a comma for all others.
char delimiter_of(const std::filesystem::path& table);

/// Drafts a schema as TOML, with comments that state what is left to fill in. Without
/// rows_are_public the draft depends on the table's header only. Throws InputError if there is no
/// header, or the file is not a table.
std::string draft_schema(const std::filesystem::path& table, const DraftOptions& options);

}  // namespace cudp
