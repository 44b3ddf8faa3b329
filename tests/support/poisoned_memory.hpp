#pragma once
// Large memory filled with 0xff bytes (NaN, -1), whose pages cost nothing until they are written.
// Emulated devices have more of it than their kernels use.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

namespace cudp {

inline constexpr std::size_t kPoisonedPiece = std::size_t{4} << 20;

/// Returns the size of the mapping that map_poisoned(bytes) makes [bytes].
inline std::size_t poisoned_size(std::size_t bytes) {
  return (bytes + kPoisonedPiece - 1) / kPoisonedPiece * kPoisonedPiece;
}

/// Maps at least `bytes` bytes, to be freed by munmap(p, poisoned_size(bytes)). One file of the
/// size of a piece is mapped repeatedly, and copied on write.
inline void* map_poisoned(std::size_t bytes) {
  static const int file = [] {
    const int made = memfd_create("poisoned", MFD_CLOEXEC);
    const std::vector<unsigned char> piece(kPoisonedPiece, 0xff);
    if (made < 0 || write(made, piece.data(), piece.size()) != static_cast<ssize_t>(piece.size()))
      throw std::bad_alloc();
    return made;
  }();
  const std::size_t size = poisoned_size(bytes);
  void* const all =
      mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) throw std::bad_alloc();
  auto* const p = static_cast<unsigned char*>(all);
  for (std::size_t at = 0; at < size; at += kPoisonedPiece)
    if (mmap(p + at, kPoisonedPiece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file, 0) ==
        MAP_FAILED) {
      munmap(all, size);
      throw std::bad_alloc();
    }
  return p;
}

/// Sets bytes at p, within such memory, to zero; whole pages of it cost nothing again.
inline void clear_poisoned(void* p, std::size_t bytes) {
  static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  auto* const first = static_cast<unsigned char*>(p);
  const auto place = reinterpret_cast<std::uintptr_t>(first);
  const std::size_t before = std::min<std::size_t>((page - place % page) % page, bytes);
  const std::size_t pages = (bytes - before) / page * page;
  std::memset(first, 0, before);
  if (pages > 0 && mmap(first + before, pages, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
    throw std::bad_alloc();
  std::memset(first + before + pages, 0, bytes - before - pages);
}

}  // namespace cudp
