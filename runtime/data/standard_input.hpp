#pragma once
#include <filesystem>
#include <memory>

#include "runtime/data/bytes.hpp"

namespace cudp {

/// Path by which users give the standard input in place of a file.
inline constexpr const char* kStandardInput = "-";

/// Opens a file, or the standard input if the path is "-". If the bytes are compressed with gzip or
/// xz, the reader decompresses them. The standard input can be read only once. progress: receives
/// the fraction of the file that has been read; may be null. compression: how to recognise
/// compressed bytes; by name, the standard input is never decompressed, because it has no name.
std::unique_ptr<ByteReader> open_input(const std::filesystem::path& path, Busy* progress = nullptr,
                                       Compression compression = Compression::by_content);

}  // namespace cudp
