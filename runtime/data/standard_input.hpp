#pragma once
#include <filesystem>
#include <memory>

#include "runtime/data/bytes.hpp"

namespace cudp {

/// Path that stands for the standard input.
inline constexpr const char* kStandardInput = "-";

/// Opens a file as open_bytes does, or the standard input if the path is "-", decompressed in the
/// same way. The standard input can be read only once. progress: as in open_bytes, of a file.
std::unique_ptr<ByteReader> open_input(const std::filesystem::path& path, Busy* progress = nullptr);

}  // namespace cudp
