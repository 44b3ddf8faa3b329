#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "runtime/data/bytes.hpp"

namespace cudp {

/// Number of bytes that distinguish gzip, xz and everything else.
inline constexpr std::size_t kCompressionMagic = 6;

/// Returns `raw`, or a reader of its decompressed content. head: its first bytes, up to
/// kCompressionMagic, not consumed. These bytes decide, not the name of the file: browsers unpack
/// .gz downloads and keep the name.
std::unique_ptr<ByteReader> decompressed(std::unique_ptr<ByteReader> raw,
                                         std::span<const std::uint8_t> head);

}  // namespace cudp
