#pragma once
// Device memory as the interpreter keeps it: who last wrote and read each word is known, so that
// an access that no barrier, launch or stream orders is found whatever order things ran in.
#include <cstddef>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "tests/support/ptx/module.hpp"

namespace cudp::ptx {

enum class Access : u8 { read, write, atomic };

/// Who touches memory. An interval is what lies between two barriers of one block, or one copy; its
/// number is used once, and numbers of later launches are larger.
struct Toucher {
  u32 interval = 0;
  u32 block = 0;
  u16 thread = 0;  ///< in the block
  u16 sync = 0;    ///< warp-wide barriers that the warp has passed in this interval
};

/// What is known of four bytes. The masks have a bit a byte.
struct Word {
  u32 write_interval = 0, read_interval = 0;
  u32 write_block = 0, read_block = 0;
  u16 write_thread = 0, read_thread = 0;
  u16 write_sync = 0, read_sync = 0;
  u8 write_mask : 4 = 0, read_mask : 4 = 0;
  u8 written : 4 = 0;          ///< since the memory was made
  bool atomic : 1 = false;     ///< how it was last written
  bool in_flight : 1 = false;  ///< a copy to it has not been waited for
  u8 readers = 0;              ///< kOtherLanes | ...: besides the last one
  u8 unused[2]{};
};
inline constexpr u8 kOtherLanes = 1, kOtherWarps = 2, kOtherBlocks = 4;

/// Which earlier operations are known to have ended before the one that runs.
class Order {
 public:
  /// The first interval of the operation that runs; what is at or beyond it is of this operation.
  u32 first = 0;
  /// True if the operation that had this earlier interval has ended before this one begins.
  bool before(u32 interval) const {
    return all_before_ || interval == 0 || known_before(interval);
  }

 protected:
  bool all_before_ = true;
  virtual bool known_before(u32) const { return true; }
  ~Order() = default;
};

/// Null if the access is ordered after those before it; otherwise what is wrong. `shared`: memory of
/// one block, where intervals alone tell.
template <bool shared>
[[gnu::always_inline]] inline const char* touch(Word& w, Access kind, u8 mask, const Toucher& who,
                                                const Order& order) {
  if (w.in_flight) return "memory is used while a copy to it is on its way";
  const auto same_warp = [&](u16 thread) { return thread / kLanes == who.thread / kLanes; };
  if ((w.write_mask & mask) != 0 && !(kind == Access::atomic && w.atomic)) {
    if (w.write_interval == who.interval) {
      if (w.write_thread != who.thread &&
          !(same_warp(w.write_thread) && w.write_sync < who.sync))
        return kind == Access::read ? "race: a read after another thread's write, without a barrier"
                                    : "race: a write after another thread's write, without a barrier";
    } else if constexpr (!shared) {
      if (w.write_interval >= order.first) {
        if (w.write_block != who.block)
          return kind == Access::read ? "race: a read of what another block of the launch writes"
                                      : "race: two blocks of the launch write";
      } else if (!order.before(w.write_interval)) {
        return "race: nothing orders this launch after the one that wrote";
      }
    }
  }
  if (kind == Access::read) {
    const bool this_launch = shared ? w.read_interval == who.interval
                                    : w.read_interval >= order.first;
    if (!this_launch) {
      w.readers = 0;
      w.read_mask = 0;
    } else if (!shared && w.read_block != who.block) {
      w.readers |= kOtherBlocks;
    } else if (w.read_interval != who.interval) {
      w.readers &= kOtherBlocks;
      if (w.readers == 0) w.read_mask = 0;
    } else if (w.read_thread != who.thread) {
      w.readers |= same_warp(w.read_thread) ? kOtherLanes : kOtherWarps;
    }
    w.read_interval = who.interval;
    w.read_block = who.block;
    w.read_thread = who.thread;
    w.read_sync = who.sync;
    w.read_mask |= mask;
    return nullptr;
  }
  if ((w.read_mask & mask) != 0) {
    if (w.read_interval == who.interval) {
      if ((w.readers & (kOtherBlocks | kOtherWarps)) != 0 || !same_warp(w.read_thread) ||
          ((w.read_thread != who.thread || (w.readers & kOtherLanes) != 0) &&
           w.read_sync >= who.sync))
        return "race: a write after another thread's read, without a barrier";
    } else if constexpr (!shared) {
      if (w.read_interval >= order.first) {
        if (w.read_block != who.block || (w.readers & kOtherBlocks) != 0)
          return "race: a write of what another block of the launch reads";
      } else if (!order.before(w.read_interval)) {
        return "race: nothing orders this launch after the one that read";
      }
    }
  }
  const bool atomic = kind == Access::atomic;
  if (w.write_interval != who.interval || w.write_thread != who.thread || w.atomic != atomic)
    w.write_mask = 0;
  w.write_interval = who.interval;
  w.write_block = who.block;
  w.write_thread = who.thread;
  w.write_sync = who.sync;
  w.write_mask |= mask;
  w.written |= mask;
  w.atomic = atomic;
  return nullptr;
}

/// The bits of a word's mask for bytes at..at + bytes of it.
constexpr u8 mask_of(u64 at, u32 bytes) {
  return bytes >= 4 ? u8{15} : static_cast<u8>(((1u << bytes) - 1) << (at % 4));
}

/// Memory that cudaMalloc gave. Its addresses are no addresses of this process: a host that reads
/// them, or a kernel that is given a host's, is found.
struct Allocation {
  u64 address = 0;
  u64 bytes = 0;
  std::vector<u8> data;
  std::vector<Word> words;
};

class DeviceMemory {
 public:
  explicit DeviceMemory(u64 capacity) : capacity_(capacity) {}
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory();

  /// 0 if there is not enough.
  u64 allocate(u64 bytes);
  /// False if there is no such allocation.
  bool release(u64 address);
  /// Null if no allocation has that byte.
  Allocation* find(u64 address) {
    for (Allocation* a : recent_)
      if (a != nullptr && address - a->address < a->bytes) return a;
    return find_slowly(address);
  }
  u64 in_use() const { return in_use_; }
  u64 capacity() const { return capacity_; }

  /// What copies do: the bytes of a range of one allocation. Throws Fault if it is not one, is read
  /// and was not written by anybody, or is not ordered after who touched it before.
  u8* range(u64 address, u64 bytes, Access kind, const Toucher& who, const Order& order,
            const std::string& what);

 private:
  Allocation* find_slowly(u64 address);

  u64 capacity_;
  u64 in_use_ = 0;
  u64 next_ = 0;
  void* reserved_ = nullptr;
  std::map<u64, Allocation> allocations_;
  std::array<Allocation*, 4> recent_{};
  unsigned oldest_ = 0;
};

}  // namespace cudp::ptx
