#pragma once
#include <filesystem>
#include <string>

namespace cudp {

/// Returns the path of a file of golden values or real data outside of the project (in the folder
/// that CUDP_SHARED names, if it is set). Tests skip if it does not exist.
std::filesystem::path shared_file(const std::string& name);

/// Returns the path of a file of tests/golden; on a machine that has no such folder, of the file of
/// its name in the folder of the running program (scripts/gpu_bundle.sh).
std::filesystem::path golden_file(const std::string& name);

/// Returns the path of the built program; on a machine that has not built it, of the one in the
/// folder of the test program.
const char* cudp_binary();

/// Returns `built`, or if there is no such file, the file of its name in the folder of the running
/// program.
std::filesystem::path program_at(const std::filesystem::path& built);

/// Returns the folder of the compiler's reports on kernels, one file for each architecture; empty
/// if none were made.
std::filesystem::path kernel_reports();

}  // namespace cudp
