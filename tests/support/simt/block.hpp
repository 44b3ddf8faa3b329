#pragma once
// What the emulator keeps of a block in flight.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <new>
#include <vector>

#include "tests/support/simt/fiber.hpp"
#include "tests/support/simt/simt_emulator.hpp"

namespace simt {

constexpr std::size_t kGuardBytes = 64;
inline unsigned char first_byte = 0xff;
constexpr unsigned char kGuard = 0xa5;
constexpr unsigned kLanes = 32;
constexpr std::size_t kCopyBytes = 16;  // of an asynchronous copy

/// Shared memory followed by guard bytes. It is filled without memset, which TSan would record as
/// an access.
class SharedArray {
 public:
  SharedArray(std::size_t bytes, std::size_t align)
      : bytes_(bytes),
        memory_(new (std::align_val_t{kAlign}) unsigned char[align + bytes + kGuardBytes]),
        data_(memory_.get() + align) {  // not aligned to 2 align
    fill(data_ + bytes, kGuard, kGuardBytes);
    if (__asan_poison_memory_region) __asan_poison_memory_region(data_ + bytes, kGuardBytes);
    poison();
  }
  void poison() { fill(data_, first_byte, bytes_); }
  bool overrun() const {
    if (__asan_poison_memory_region) return false;  // ASan would have reported it
    const unsigned char* guard = data_ + bytes_;
    return std::any_of(guard, guard + kGuardBytes, [](unsigned char c) { return c != kGuard; });
  }
  std::size_t bytes() const { return bytes_; }
  void* data() { return data_; }

 private:
  static constexpr std::size_t kAlign = 256;
  static void fill(volatile unsigned char* p, unsigned char value, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) p[i] = value;
  }
  struct Free {
    void operator()(unsigned char* p) const { ::operator delete[](p, std::align_val_t{kAlign}); }
  };
  std::size_t bytes_;
  std::unique_ptr<unsigned char[], Free> memory_;
  unsigned char* data_;
};

struct Block;

struct Warp {
  Block* block = nullptr;
  unsigned first = 0;                            // lane 0's place in the pool
  unsigned members = 0, ready = 0, waiting = 0;  // lanes; waiting: at a warp operation
  unsigned generation = 0;
  char sync[2] = {};  // addresses that TSan orders by; two, so that early arrivals do not mix
};

struct Copy {  // of 16 bytes; zeros where from is null
  unsigned char* to;
  const unsigned char* from;
};

struct Lane {
  explicit Lane(void (*entry)()) : fiber(entry) {}
  Fiber fiber;
  Warp* warp = nullptr;
  unsigned number = 0;  // in the block
  dim3 thread;
  bool exited = false, at_barrier = false;
  bool awaits_primary = false, has_waited = false;  // of a dependent launch
  int named = 0;                                    // id of the named barrier it waits at
  WarpOp op = WarpOp::sync;
  unsigned mask = 0;
  int source = -1;
  std::uint64_t value = 0, result = 0;
  WholeWarp work = nullptr;
  std::vector<Copy> copies;  // on their way
  const char* file = "";
  int line = 0;
};

struct NamedBarrier {
  unsigned threads = 0, arrived = 0, generation = 0;
  char sync[2] = {};
};
constexpr int kNamedBarriers = 16;

struct Block {
  dim3 index;
  NamedBarrier named[kNamedBarriers];
  std::vector<Warp> warps;
  unsigned first = 0;  // thread 0's place in the pool
  unsigned size = 0, running_warps = 0, arrived = 0, exited = 0;
  unsigned generation = 0;
  unsigned barriers = 0;  // that it has passed
  char sync[2] = {};
  char started = 0, finished = 0;
  std::unique_ptr<SharedArray> dynamic;
  std::map<const void*, SharedArray> fixed;
};

}  // namespace simt
