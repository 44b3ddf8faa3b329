#pragma once
#include <filesystem>
#include <memory>

#include "runtime/data/bytes.hpp"

namespace cudp {

/// The path that stands for the standard input.
inline constexpr const char* kStandardInput = "-";

/// A file as open_bytes reads it, or the standard input where the path is "-", decompressed in the
/// same way. What comes from there can be read once. progress: as of open_bytes, of a file.
std::unique_ptr<ByteReader> open_input(const std::filesystem::path& path, Busy* progress = nullptr);

}  // namespace cudp
