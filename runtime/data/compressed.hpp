#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "runtime/data/bytes.hpp"

namespace cudp {

/// Bytes that tell gzip, xz and everything else apart.
inline constexpr std::size_t kCompressionMagic = 6;

/// `raw` itself, or a reader of what is compressed in it. head: its first bytes, up to
/// kCompressionMagic, not consumed. What a file is goes by these bytes, not by its name: browsers
/// unpack .gz downloads and keep the name.
std::unique_ptr<ByteReader> decompressed(std::unique_ptr<ByteReader> raw,
                                         std::span<const std::uint8_t> head);

}  // namespace cudp
