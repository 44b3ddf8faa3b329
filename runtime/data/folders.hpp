#pragma once
// Functions that find the files of data sets.
#include <filesystem>
#include <string>
#include <vector>

namespace cudp {

bool is_folder(const std::filesystem::path& path);

/// Returns the path of the file `stem`, `stem`.gz or `stem`.xz in `folder`; empty if there is none.
std::filesystem::path find_file(const std::filesystem::path& folder, const std::string& stem);

/// Returns the path of the first of these file names, perhaps with .gz or .xz, that exists in
/// `folder`. Throws InputError if none does.
std::filesystem::path require_file(const std::filesystem::path& folder,
                                   const std::vector<std::string>& stems);

/// Returns the file name without its extensions (.csv, .tsv, .gz, ...), as the name of a data set.
std::string set_name_of(const std::filesystem::path& path);

/// Throws InputError if the test file is one of the training files: the same path, or a link to the
/// same file. Copies are not detected, because a refusal that depends on rows would reveal
/// something about them.
void check_apart(const std::filesystem::path& test,
                 const std::vector<std::filesystem::path>& train);

}  // namespace cudp
