#pragma once
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace simt {

/// Shared memory of a block: its dynamic array, and its static ones with their sizes [bytes].
struct SharedMemory {
  unsigned char* dynamic;
  std::vector<std::pair<void*, std::size_t>> fixed;

  /// Returns the static array of the size of T. Throws std::logic_error if there is none.
  template <class T>
  T& array() const {
    for (const auto& [data, bytes] : fixed)
      if (bytes == sizeof(T)) return *static_cast<T*>(data);
    throw std::logic_error("simt: no static array of this size");
  }
};

/// Called whenever all threads of a block wait at a __syncthreads. n: number of barriers that the
/// block has passed before.
using AtBarrier = std::function<void(unsigned n, const SharedMemory& shared)>;
/// Sets what all launches from now on call; null for nothing.
void set_at_barrier(AtBarrier call);
/// Sets the bytes with which shared memory starts from now on: 0xff (NaN, -1) unless it is called.
void set_first_byte(unsigned char value);

}  // namespace simt
