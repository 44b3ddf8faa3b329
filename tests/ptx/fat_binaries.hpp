#pragma once
// Fat binaries made by hand, for tests.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <zstd.h>

namespace cudp::ptx {

enum class Packing { none, zstd, lz4 };

struct FatEntry {
  std::string text;
  std::uint32_t architecture = 80;
  Packing packing = Packing::none;
  std::uint16_t kind = 1;  ///< PTX; 2 is machine code
};

/// As nvcc writes one. Text for LZ4 is packed already, and `whole` bytes long.
inline std::vector<std::uint8_t> fat_binary(const std::vector<FatEntry>& entries,
                                            std::size_t whole = 0) {
  std::vector<std::uint8_t> all;
  const auto put = [&](auto value) {
    const auto* const p = reinterpret_cast<const std::uint8_t*>(&value);
    all.insert(all.end(), p, p + sizeof value);
  };
  put(std::uint32_t{0xBA55ED50});
  put(std::uint16_t{1});
  put(std::uint16_t{16});
  put(std::uint64_t{0});  // the size, below
  for (const FatEntry& e : entries) {
    std::string payload = e.text;
    if (e.packing == Packing::zstd) {
      payload.resize(ZSTD_compressBound(e.text.size()));
      payload.resize(
          ZSTD_compress(payload.data(), payload.size(), e.text.data(), e.text.size(), 3));
    }
    const std::size_t packed = payload.size();
    payload.resize((packed + 7) / 8 * 8);
    put(e.kind);
    put(std::uint16_t{0x101});
    put(std::uint32_t{64});
    put(std::uint64_t{payload.size()});
    put(static_cast<std::uint32_t>(e.packing == Packing::none ? 0 : packed));
    put(std::uint32_t{0});
    put(std::uint16_t{0});
    put(std::uint16_t{9});
    put(e.architecture);
    put(std::uint64_t{0});
    put(std::uint64_t{0x11} | (e.packing == Packing::zstd  ? 0x8000u
                               : e.packing == Packing::lz4 ? 0x2000u
                                                           : 0u));
    put(std::uint64_t{0});
    put(std::uint64_t{e.packing == Packing::lz4 ? whole : e.text.size()});
    all.insert(all.end(), payload.begin(), payload.end());
  }
  const std::uint64_t size = all.size() - 16;
  std::memcpy(all.data() + 8, &size, sizeof size);
  return all;
}

}  // namespace cudp::ptx
