#pragma once
#include <filesystem>
#include <string>

namespace cudp {

/// Returns the path of a file of golden values or real data outside of the project (in the folder
/// that CUDP_SHARED names, if it is set). Tests skip if it does not exist.
std::filesystem::path shared_file(const std::string& name);

/// Returns the path of a file of tests/golden.
std::filesystem::path golden_file(const std::string& name);

/// Returns the path of the built program.
const char* cudp_binary();

/// Returns the folder of the compiler's reports on kernels, one file for each architecture; empty
/// if none were made.
std::filesystem::path kernel_reports();

}  // namespace cudp
