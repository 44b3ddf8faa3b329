#pragma once
#include <filesystem>
#include <string>
#include <system_error>

#include "runtime/base/error.hpp"

namespace cudp {

/// Throws InputError if a file to write is a folder, or in a folder that does not exist. flag: the
/// option that names the file.
inline void check_out_folder(const std::filesystem::path& out, const char* flag = "--out") {
  const std::filesystem::path folder = out.parent_path();
  std::error_code none;
  if (!folder.empty() && !std::filesystem::is_directory(folder, none))
    throw InputError(std::string(flag) + " " + out.string() +
                     ": expected a file in an existing folder, found no folder '" +
                     folder.string() + "'");
  if (std::filesystem::is_directory(out, none))
    throw InputError(std::string(flag) + " " + out.string() + ": expected a file, found a folder");
}

}  // namespace cudp
