#pragma once
// Reads the PTX from a fat binary, which nvcc puts into an object file.
#include <cstddef>
#include <span>
#include <string>

#include "tests/support/ptx/module.hpp"

namespace cudp::ptx {

/// Returns the PTX of a fat binary in the form passed to __cudaRegisterFatBinary; that of the
/// newest architecture up to `newest` (90: sm_90), if there are several. It may be compressed by
/// LZ4 or zstd. Throws Fault if it is damaged, is compressed in another way or has no such PTX.
std::string ptx_of_fat_binary(const void* fat_binary, u32 newest = ~0u);

/// Decompresses an LZ4 block. Throws Fault if the result does not have `size` bytes.
std::string decompress_lz4(std::span<const u8> block, std::size_t size);

}  // namespace cudp::ptx
