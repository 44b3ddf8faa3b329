#pragma once
// Functions that find the files of data sets, and tell whose folder a file is in.
#include <filesystem>
#include <string>
#include <vector>

namespace cudp {

bool is_folder(const std::filesystem::path& path);

/// Returns the path of the first of the files `stem`, `stem`.gz and `stem`.xz that exists in
/// `folder`; an empty path if none exists.
std::filesystem::path find_file(const std::filesystem::path& folder, const std::string& stem);

/// Returns the path of the first of the file names `stems` that exists in `folder`, as it is or
/// with .gz or .xz appended. Throws InputError if none exists.
std::filesystem::path require_file(const std::filesystem::path& folder,
                                   const std::vector<std::string>& stems);

/// Returns the name that a data set in this file gets: the file name without its extensions (.csv,
/// .tsv, .gz, ...).
std::string set_name_of(const std::filesystem::path& path);

/// Throws InputError if the test file is one of the training files: the same path, or a link to the
/// same file. Copies of a file are not detected, because an error that depends on the content of
/// rows would reveal something about the rows. train: the training files.
void check_apart(const std::filesystem::path& test,
                 const std::vector<std::filesystem::path>& train);

/// Returns the folder of the tuning that made the training in whose folder `path` is; empty if
/// `path` is in no such folder. Links are followed.
std::filesystem::path tuning_of(const std::filesystem::path& path);

/// Describes what is at `path`, which is no run, for the end of a message: "none", or "a sweep,
/// whose runs are in PATH/runs".
std::string found_for_run(const std::filesystem::path& path);

}  // namespace cudp
