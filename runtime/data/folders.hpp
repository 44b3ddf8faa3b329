#pragma once
// Finds the files of data sets.
#include <filesystem>
#include <string>
#include <vector>

namespace cudp {

bool is_folder(const std::filesystem::path& path);

/// Returns the path of `folder`/`stem`, or of the same with .gz or .xz; an empty path if there is
/// none.
std::filesystem::path find_file(const std::filesystem::path& folder, const std::string& stem);

/// Returns the path of the first of the stems that `folder` has. Throws InputError if it has none.
std::filesystem::path require_file(const std::filesystem::path& folder,
                                   const std::vector<std::string>& stems);

/// Returns the last part of the path without the extensions of tables and compression.
std::string set_name_of(const std::filesystem::path& path);

/// Throws InputError if the test file is one of the training files: the same path, or a link to the
/// same file. Copies are not detected, because a refusal that depends on rows would reveal
/// something about them.
void check_apart(const std::filesystem::path& test,
                 const std::vector<std::filesystem::path>& train);

}  // namespace cudp
