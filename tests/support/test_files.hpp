#pragma once
#include <filesystem>
#include <string>

namespace cudp {

/// A file of golden values or real data beside the project (CUDP_SHARED names another place). Tests
/// skip where it does not exist.
std::filesystem::path shared_file(const std::string& name);

/// A file of tests/golden.
std::filesystem::path golden_file(const std::string& name);

/// The built program; on a machine that has not built it, the one beside the tests.
const char* cudp_binary();

/// A program by this path or, if there is no such file, by its name in the folder of the program
/// that runs.
std::filesystem::path program_at(const std::filesystem::path& built);

/// What the compiler said of the kernels, a file for each architecture; empty where it was not
/// asked.
std::filesystem::path kernel_reports();

}  // namespace cudp
