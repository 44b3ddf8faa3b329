#pragma once
#include <filesystem>
#include <string>

namespace cudp {

/// User options for drafting the schema of a table.
struct DraftOptions {
  bool rows_are_public =
      false;             ///< the rows are declared public, so that kinds and bounds are drafted too
  std::string label{};   ///< column of the class; empty: the guess of schema_from_header
  std::string target{};  ///< column of the number to predict, instead of a class; empty: none
  std::string delimiter{};  ///< one character; empty: a tab for .tsv and .tab, otherwise a comma
};

/// Returns the delimiter of a table's cells, judging by the file's name: a tab for .tsv and .tab
/// files, compressed or not, and a comma for all others.
char delimiter_of(const std::filesystem::path& table);

/// Returns the draft of a schema for a table as TOML, with comments that state what the user must
/// fill in. Unless options.rows_are_public is set, the draft depends on the table's header only.
/// Throws InputError if there is no header, or if the file is not a table.
std::string draft_schema(const std::filesystem::path& table, const DraftOptions& options);

}  // namespace cudp
