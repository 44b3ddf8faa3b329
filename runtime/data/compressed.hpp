#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "runtime/data/bytes.hpp"

namespace cudp {

/// Number of bytes at the start of a file from which the program recognises whether it is
/// compressed with gzip, with xz, or not at all.
inline constexpr std::size_t kCompressionMagic = 6;

/// Returns `raw` itself, or a reader of its decompressed content if `head` is the magic number of
/// gzip or xz. head: the first bytes of `raw`, up to kCompressionMagic; reading `raw` must still
/// return these bytes. The name of the file is ignored, because browsers unpack .gz downloads and
/// keep the name.
std::unique_ptr<ByteReader> decompressed(std::unique_ptr<ByteReader> raw,
                                         std::span<const std::uint8_t> head);

/// Returns `raw` itself, or a reader of its decompressed content if its name ends in .gz or .xz.
/// The content is not looked at: if it is not what the name states, reading throws InputError.
std::unique_ptr<ByteReader> decompressed_by_name(std::unique_ptr<ByteReader> raw);

}  // namespace cudp
