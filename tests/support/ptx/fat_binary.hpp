#pragma once
// What nvcc puts into an object: a fat binary, of which the PTX is taken.
#include <cstddef>
#include <span>
#include <string>

#include "tests/support/ptx/module.hpp"

namespace cudp::ptx {

/// The PTX of a fat binary, as __cudaRegisterFatBinary gets one; of the newest architecture, if
/// there is PTX of several. Compressed by LZ4 or zstd, or not at all. Throws Fault where it is
/// damaged, is compressed in another way or has no PTX.
std::string ptx_of_fat_binary(const void* fat_binary);

/// A block of LZ4's, which comes to `size` bytes. Throws Fault if it does not.
std::string decompress_lz4(std::span<const u8> block, std::size_t size);

}  // namespace cudp::ptx
