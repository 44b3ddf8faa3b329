#pragma once
// Device memory as the interpreter keeps it: who last wrote and read each word is known, so that
// an access that no barrier, launch or stream orders is found whatever order things ran in.
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "tests/support/ptx/module.hpp"

namespace cudp::ptx {

enum class Access : u8 { read, write, atomic };

/// Who touches memory. An interval is what lies between two barriers of one block, or of some of
/// its warps, or one copy; its number is used once, and numbers of later launches are larger.
struct Toucher {
  u32 interval = 0;
  u32 block = 0;
  u16 thread = 0;  ///< in the block
  u16 sync = 0;    ///< warp-wide barriers that the warp has passed in this interval
};

/// Which earlier operations are known to have ended before the one that runs.
class HappensBefore {
 public:
  /// The first interval of the operation that runs; what is at or beyond it is of this operation.
  u32 first = 0;
  /// Where barriers order some of a block's warps alone: of each warp of the block, the last
  /// interval that has ended before what the running warp does. Null: all but its own have.
  mutable const u32* ended = nullptr;
  bool ended_in_block(u32 interval, u32 warp, u32 own) const {
    return ended == nullptr || warp == own || interval <= ended[warp];
  }
  /// True if the operation that had this earlier interval has ended before this one begins.
  bool before(u32 interval) const {
    return all_before_ || interval == 0 || interval == last_known_ || is_known_before(interval);
  }

 protected:
  bool all_before_ = true;
  /// What was once true stays so.
  virtual bool known_before(u32) const { return true; }
  ~HappensBefore() = default;

 private:
  bool is_known_before(u32 interval) const {
    if (!known_before(interval)) return false;
    last_known_ = interval;  // neighbouring words were mostly touched by the same operation
    return true;
  }
  mutable u32 last_known_ = 0;
};

/// What is known of four bytes, or of one byte of a word that is used in parts.
struct Word {
  Toucher writer, reader;    ///< the last ones
  u8 other_writers = 0;      ///< kOtherLanes | ...: atomic ones before the last
  u8 other_readers = 0;      ///< kOtherLanes | ...: those before the last
  bool written : 1 = false;  ///< since the memory was made
  bool written_atomically : 1 = false;
  bool in_flight : 1 = false;  ///< a copy to it has not been waited for
  bool in_parts : 1 = false;   ///< writer.interval is then the number of its four bytes
  bool outside : 1 = false;    ///< it is of no variable
  /// In global memory: what is said here counts, and not what is said of the word's stretch.
  bool counts : 1 = false;
};
inline constexpr u8 kOtherLanes = 1, kOtherWarps = 2, kOtherBlocks = 4;

enum class Conflict : u8 { none, same_block, other_block, other_operation };

/// Whether the last toucher, and those before it that `others` names, are ordered before `who`.
/// `shared`: memory of one block, where intervals alone tell.
template <bool shared>
[[gnu::always_inline]] inline Conflict conflict(Toucher last, u8 others, Toucher who,
                                                const HappensBefore& order) {
  if (last.interval == who.interval) {
    const bool same_warp = last.thread / kLanes == who.thread / kLanes;
    if (!shared && (others & kOtherBlocks) != 0) return Conflict::other_block;
    if (!same_warp || (others & kOtherWarps) != 0 ||
        ((last.thread != who.thread || (others & kOtherLanes) != 0) && last.sync >= who.sync))
      return Conflict::same_block;
  } else if (shared || last.interval >= order.first) {
    if (!shared && (last.block != who.block || (others & kOtherBlocks) != 0))
      return Conflict::other_block;
    if (last.interval >= order.first &&
        !order.ended_in_block(last.interval, last.thread / kLanes, who.thread / kLanes))
      return Conflict::same_block;
  } else {
    if (!order.before(last.interval)) {
      return Conflict::other_operation;
    }
  }
  return Conflict::none;
}

/// Makes `who` the last one, beside those of the same launch and interval that were there before.
template <bool shared>
[[gnu::always_inline]] inline void replace(Toucher& last, u8& others, Toucher who,
                                           const HappensBefore& order) {
  if (last.interval == who.interval) {
    if (last.thread / kLanes != who.thread / kLanes) {
      others |= kOtherWarps;
    } else if (last.sync < who.sync) {
      others &= static_cast<u8>(~kOtherLanes);  // a barrier of the warp is between
    } else if (last.thread != who.thread) {
      others |= kOtherLanes;
    }
  } else if (shared || last.interval < order.first) {
    others = 0;
  } else {
    others = last.block != who.block ? kOtherBlocks : others & kOtherBlocks;
  }
  last = who;
}

/// What to say of a conflict.
const char* race(Access kind, bool with_a_write, Conflict conflict);

/// Null if the access is ordered after those before it; otherwise what is wrong.
template <bool shared>
[[gnu::always_inline]] inline const char* touch(Word& w, Access kind, Toucher who,
                                                const HappensBefore& order) {
  if (!(kind == Access::atomic && w.written_atomically)) {
    const Conflict c = conflict<shared>(w.writer, w.other_writers, who, order);
    if (c != Conflict::none) return race(kind, true, c);
  }
  if (kind == Access::read) {
    replace<shared>(w.reader, w.other_readers, who, order);
    return nullptr;
  }
  const Conflict c = conflict<shared>(w.reader, w.other_readers, who, order);
  if (c != Conflict::none) return race(kind, false, c);
  if (kind == Access::atomic && w.written_atomically) {
    replace<shared>(w.writer, w.other_writers, who, order);
  } else {
    w.writer = who;
    w.other_writers = 0;
  }
  w.written = true;
  w.written_atomically = kind == Access::atomic;
  return nullptr;
}

/// Zeros, which take no memory before they are touched.
template <class T>
class Zeros {
 public:
  void reset(u64 count) {
    if (count > capacity_) {
      data_.reset(static_cast<T*>(std::calloc(count, sizeof(T))));
      if (data_ == nullptr) throw std::bad_alloc();
      capacity_ = count;
    } else {
      std::memset(static_cast<void*>(data_.get()), 0, count * sizeof(T));
    }
  }
  T* data() { return data_.get(); }
  T& operator[](u64 i) { return data_[i]; }

 private:
  struct Free {
    void operator()(T* p) const { std::free(p); }
  };
  std::unique_ptr<T[], Free> data_;
  u64 capacity_ = 0;
};

/// What is known of a piece of memory, word by word. A word that is used in parts is known byte by
/// byte from then on: neighbours' bytes are no race. Words of global memory that only copies and
/// fills have touched are known by stretches of 64.
class Shadow {
 public:
  /// Nobody has touched it. For memory of a block.
  void reset(u64 bytes) {
    words_.reset(bytes / 4 + 1);
    parts_.clear();
  }
  /// Nobody has touched it. For global memory.
  void reset_stretches(u64 bytes) {
    bytes_ = bytes;
    words_.reset((bytes / kStretch + 1) * (kStretch / 4));
    stretches_.reset(bytes / kStretch + 1);
  }
  /// Bytes from..to are of no variable; both are multiples of 4.
  void set_outside(u64 from, u64 to) {
    for (u64 at = from / 4; at < to / 4; ++at) words_[at].outside = true;
  }
  /// From now on a copy to 16 bytes is on its way, or no longer.
  void set_in_flight(u64 at, bool in_flight);

  /// Null if `bytes` at `at` may be touched so; otherwise what is wrong. Accesses of 4 and more
  /// bytes are aligned to 4; shorter ones lie in one word.
  template <bool shared>
  [[gnu::always_inline]] inline const char* touch(u64 at, u32 bytes, Access kind, Toucher who,
                                                  const HappensBefore& order) {
    if (bytes < 4) return touch_parts<shared>(at, bytes, kind, who, order);
    for (Word* w = &words_[at / 4]; bytes != 0; bytes -= 4, ++w, at += 4) {
      const bool usual = (shared || w->counts) && !w->in_flight && !w->in_parts && !w->outside &&
                         (w->written || kind == Access::write);
      const char* const wrong = usual ? ptx::touch<shared>(*w, kind, who, order)
                                      : touch_unusual<shared>(*w, at, kind, who, order);
      if (wrong != nullptr) [[unlikely]]
        return wrong;
    }
    return nullptr;
  }
  /// The same for bytes from..to of global memory, for copies and fills. `at` is then where it is
  /// wrong.
  const char* touch_range(u64 from, u64 to, Access kind, const Toucher& who,
                          const HappensBefore& order, u64& at);

 private:
  static constexpr u64 kStretch = 256;  // bytes

  template <bool shared>
  const char* touch_unusual(Word& w, u64 at, Access kind, Toucher who, const HappensBefore& order);
  template <bool shared>
  const char* touch_parts(u64 at, u32 bytes, Access kind, Toucher who, const HappensBefore& order);
  /// From now on the words of a stretch count.
  void spread(u64 at);

  Zeros<Word> words_, stretches_;
  std::vector<std::array<Word, 4>> parts_;
  u64 bytes_ = 0;
};

/// Memory that cudaMalloc gave. Its addresses are no addresses of this process: a host that reads
/// them, or a kernel that is given a host's, is found.
struct Allocation {
  u64 address = 0;
  u64 bytes = 0;
  Zeros<u8> data;
  Shadow shadow;
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
  u8* range(u64 address, u64 bytes, Access kind, const Toucher& who, const HappensBefore& order,
            const std::string& what);

 private:
  Allocation* find_slowly(u64 address);

  u64 capacity_;
  u64 in_use_ = 0;
  u64 next_ = 0;
  void* reserved_ = nullptr;
  u64 reserved_bytes_ = 0;
  std::map<u64, Allocation> allocations_;
  std::array<Allocation*, 4> recent_{};
  unsigned oldest_ = 0;
};

}  // namespace cudp::ptx
