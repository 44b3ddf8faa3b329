#include "tests/support/ptx/fat_binary.hpp"

#include <cstring>

#include <zstd.h>

namespace cudp::ptx {

namespace {

// No document of NVIDIA's says how a fat binary lies in memory. This is what nvcc 12 and 13 write,
// and all that is read of it.
constexpr u32 kMagic = 0xBA55ED50;
struct FatHeader {
  u32 magic;
  u16 version;
  u16 header_bytes;
  u64 bytes;  // of all entries
};
struct EntryHeader {
  u16 kind;
  u16 version;
  u32 header_bytes;
  u64 payload_bytes;     // with padding
  u32 compressed_bytes;  // without
  u32 unknown;
  u16 minor, major;  // of the PTX
  u32 architecture;
  u32 name_at, name_bytes;
  u64 flags;
  u64 zero;
  u64 whole_bytes;  // as it was before it was compressed
};
static_assert(sizeof(FatHeader) == 16 && sizeof(EntryHeader) == 64);
constexpr u16 kPtx = 1;
constexpr u64 kLz4 = 0x2000;
constexpr u64 kZstd = 0x8000;

[[noreturn]] void damaged(const char* what) {
  throw Fault(std::string("ptx: a fat binary is damaged: ") + what);
}

template <class T>
T read(const u8* from) {
  T t;
  std::memcpy(&t, from, sizeof t);
  return t;
}

std::string text_of(const EntryHeader& e, const u8* payload) {
  std::string text;
  if ((e.flags & (kLz4 | kZstd)) == 0) {
    text.assign(reinterpret_cast<const char*>(payload), e.payload_bytes);
  } else {
    if (e.compressed_bytes > e.payload_bytes) damaged("more is compressed than there is");
    const std::span<const u8> block(payload, e.compressed_bytes);
    if ((e.flags & kZstd) != 0) {
      text.resize(e.whole_bytes);
      if (ZSTD_decompress(text.data(), text.size(), block.data(), block.size()) != text.size())
        damaged("zstd cannot read it");
    } else {
      text = decompress_lz4(block, e.whole_bytes);
    }
  }
  if (const std::size_t end = text.find('\0'); end != std::string::npos) text.resize(end);
  return text;
}

}  // namespace

std::string decompress_lz4(std::span<const u8> block, std::size_t size) {
  std::string text;
  std::size_t at = 0;
  const auto next = [&]() -> u8 {
    if (at >= block.size()) damaged("LZ4 ends early");
    return block[at++];
  };
  const auto length = [&](std::size_t n) {
    if (n != 15) return n;
    for (u8 more = 255; more == 255;) n += more = next();
    return n;
  };
  while (at < block.size()) {
    const u8 token = next();
    const std::size_t literals = length(token >> 4);
    if (literals > block.size() - at) damaged("LZ4 ends early");
    text.append(reinterpret_cast<const char*>(block.data()) + at, literals);
    at += literals;
    if (at == block.size()) break;  // the last sequence has no match
    std::size_t back = next();
    back |= std::size_t{next()} << 8;
    const std::size_t match = length(token & 15) + 4;
    if (back == 0 || back > text.size()) damaged("LZ4 refers to what is before its beginning");
    if (text.size() + match > size) damaged("LZ4 has more than there should be");
    for (std::size_t i = 0; i < match; ++i) text.push_back(text[text.size() - back]);
  }
  if (text.size() != size) damaged("LZ4 has another size");
  return text;
}

std::string ptx_of_fat_binary(const void* fat_binary, u32 newest) {
  const auto* const first = static_cast<const u8*>(fat_binary);
  const auto header = read<FatHeader>(first);
  if (header.magic != kMagic || header.header_bytes < sizeof(FatHeader)) damaged("its first bytes");
  const u8* entry = nullptr;
  u32 found = 0;
  for (u64 at = 0; at < header.bytes;) {
    const u8* const p = first + header.header_bytes + at;
    const u64 left = header.bytes - at;
    if (left < sizeof(EntryHeader)) damaged("an entry ends early");
    const auto e = read<EntryHeader>(p);
    if (e.header_bytes < sizeof(EntryHeader) || e.header_bytes > left ||
        e.payload_bytes > left - e.header_bytes)
      damaged("an entry ends early");
    if (e.kind == kPtx && e.architecture >= found && e.architecture <= newest) {
      found = e.architecture;
      entry = p;
    }
    at += e.header_bytes + e.payload_bytes;
  }
  if (entry == nullptr)
    throw Fault("ptx: an object has no PTX: build it for an architecture like 80-virtual");
  const auto e = read<EntryHeader>(entry);
  return text_of(e, entry + e.header_bytes);
}

}  // namespace cudp::ptx
