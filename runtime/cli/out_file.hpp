#pragma once
#include <filesystem>
#include <system_error>

#include "runtime/base/error.hpp"

namespace cudp {

/// Throws InputError if the folder of a file that --out names does not exist.
inline void check_out_folder(const std::filesystem::path& out) {
  const std::filesystem::path folder = out.parent_path();
  std::error_code none;
  if (!folder.empty() && !std::filesystem::is_directory(folder, none))
    throw InputError("--out " + out.string() +
                     ": expected a file in an existing folder, found no folder '" +
                     folder.string() + "'");
}

}  // namespace cudp
