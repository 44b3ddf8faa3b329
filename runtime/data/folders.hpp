#pragma once
// Files that data sets are read from.
#include <filesystem>
#include <string>
#include <vector>

namespace cudp {

bool is_folder(const std::filesystem::path& path);

/// `folder`/`stem`, or that with .gz or .xz; an empty path if there is none.
std::filesystem::path find_file(const std::filesystem::path& folder, const std::string& stem);

/// The first of the stems that `folder` has. Throws InputError if it has none.
std::filesystem::path require_file(const std::filesystem::path& folder,
                                   const std::vector<std::string>& stems);

/// The last part of the path without the endings of tables and compression.
std::string set_name_of(const std::filesystem::path& path);

/// Throws InputError where a file of test examples is one of training examples: the same path, or a
/// link to the same file. A copy is not looked for: a refusal that depends on rows would tell of
/// them.
void check_apart(const std::filesystem::path& test,
                 const std::vector<std::filesystem::path>& train);

}  // namespace cudp
