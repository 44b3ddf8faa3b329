#pragma once
// Device memory of the interpreter. It records which thread last wrote and read each word, so that
// an access that no barrier, launch or stream orders (a race) is found, in whatever order
// operations ran.
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

/// A thread that accesses memory, and when. An interval is the execution of a block (or of some of
/// its warps) between two barriers, or one copy. Its number is unique; numbers of later launches
/// are larger.
struct Toucher {
  u32 interval = 0;
  u32 block = 0;
  u16 thread = 0;  ///< index in the block
  u16 sync = 0;    ///< number of warp-wide barriers that the warp has passed in this interval
};

/// Order between the blocks of a launch that a counter in global memory establishes: each block
/// adds to it after a fence, and the block that finds all others counted goes on after a fence of
/// its own.
class CountedBlocks {
 public:
  /// Records that a thread has added to the counter at `address`, after a fence in the same
  /// interval. Returns whether all blocks of the launch have now done so.
  bool add(u64 address, Toucher who, u64 blocks) {
    std::map<u32, Toucher>& of = counted_[address];
    of[who.block] = who;
    return of.size() == blocks;
  }
  /// Orders block `last`, whose thread found all others counted at `address` and has then passed a
  /// fence, after what the others did before they added to the counter.
  void order_last(u64 address, u32 last) {
    others_ = &counted_[address];
    last_ = last;
  }
  bool is_last(u32 block) const { return others_ != nullptr && block == last_; }
  /// Returns whether an access of another block is ordered before what this block does now.
  bool is_before(Toucher access, u32 block) const {
    if (!is_last(block)) return false;
    const auto at = others_->find(access.block);
    if (at == others_->end()) return false;
    const Toucher& counted = at->second;
    return access.interval < counted.interval ||
           (access.interval == counted.interval && access.thread == counted.thread);
  }

 private:
  std::map<u64, std::map<u32, Toucher>> counted_;  // by address, then by block
  const std::map<u32, Toucher>* others_ = nullptr;
  u32 last_ = 0;
};

/// Tells which earlier operations are known to have ended before the one that runs.
class HappensBefore {
 public:
  /// First interval of the operation that runs; later intervals also belong to it.
  u32 first = 0;
  /// Used if barriers order only some of a block's warps: for each warp of the block, its last
  /// interval that ended before the running warp's current one. Null: all earlier intervals have
  /// ended.
  mutable const u32* ended = nullptr;
  mutable CountedBlocks counted;
  /// First interval of the operation before this one in its stream or branch of a graph.
  u32 operation_before = 0;
  /// Intervals from this one on, those of a dependent launch's primary, have not ended for a warp
  /// that has not waited for it.
  mutable u32 unknown_from = ~0u;
  bool ended_in_block(u32 interval, u32 warp, u32 own) const {
    return ended == nullptr || warp == own || interval <= ended[warp];
  }
  /// Returns whether the operation of this earlier interval ended before this one began.
  bool before(u32 interval) const {
    return interval < unknown_from &&
           (all_before_ || interval == 0 || interval == last_known_ || is_known_before(interval));
  }

 protected:
  bool all_before_ = true;
  /// Must keep returning true for an interval once it has returned true.
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

/// State of four bytes of memory, or of one byte of a word that is accessed in parts.
struct Word {
  Toucher writer, reader;    ///< last thread that wrote, and last thread that read
  u8 other_writers = 0;      ///< kOtherLanes | ...: atomic ones before the last
  u8 other_readers = 0;      ///< kOtherLanes | ...: those before the last
  bool written : 1 = false;  ///< since the memory was allocated
  bool written_atomically : 1 = false;
  bool in_flight : 1 = false;  ///< destination of a copy that has not been waited for
  bool in_parts : 1 = false;   ///< writer.interval is then the number of its four bytes
  bool outside : 1 = false;    ///< belongs to no variable
  /// In global memory: whether this state is used, and not that of the word's stretch of 64 words.
  bool counts : 1 = false;
};
inline constexpr u8 kOtherLanes = 1, kOtherWarps = 2, kOtherBlocks = 4;

enum class Conflict : u8 { none, same_block, other_block, other_operation };

/// Returns the kind of conflict if the last access, or an earlier one that `others` flags, is not
/// ordered before the access by `who`. shared: memory of one block, whose accesses are ordered by
/// intervals alone.
template <bool shared>
[[gnu::always_inline]] inline Conflict conflict(Toucher last, u8 others, Toucher who,
                                                const HappensBefore& order) {
  if (last.interval == who.interval) {
    const bool same_warp = last.thread / kLanes == who.thread / kLanes;
    if (!shared && (others & kOtherBlocks) != 0 && !order.counted.is_last(who.block))
      return Conflict::other_block;
    if (!same_warp || (others & kOtherWarps) != 0 ||
        ((last.thread != who.thread || (others & kOtherLanes) != 0) && last.sync >= who.sync))
      return Conflict::same_block;
  } else if (shared || last.interval >= order.first) {
    if (!shared && last.block != who.block)
      return order.counted.is_before(last, who.block) ? Conflict::none : Conflict::other_block;
    if (!shared && (others & kOtherBlocks) != 0 && !order.counted.is_last(who.block))
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

/// Makes `who` the last access, and flags in `others` earlier accesses of the same launch or
/// interval that are not ordered before it.
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

/// Returns the message for a conflict.
const char* race(Access kind, bool with_a_write, Conflict conflict);

/// Records an access to a word. Returns null if it is ordered after earlier accesses; otherwise the
/// message about the race.
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

/// Sets bytes of memory from calloc or new to zero. Whole pages of a long range are given back to
/// the system, so that they occupy no memory until they are accessed again.
void clear(u8* data, u64 bytes);

/// Array of zeros that occupies no memory until it is accessed.
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

/// State of a piece of memory, word by word. A word that is accessed in parts has a state per byte
/// from then on, so that accesses to neighbouring bytes are no race. Words of global memory that
/// only copies and fills have accessed share one state per stretch of 64.
class Shadow {
 public:
  /// Resets the state of a block's memory to not accessed.
  void reset(u64 bytes) {
    words_.reset(bytes / 4 + 1);
    parts_.clear();
  }
  /// Resets the state of global memory to not accessed.
  void reset_stretches(u64 bytes) {
    bytes_ = bytes;
    words_.reset((bytes / kStretch + 1) * (kStretch / 4));
    stretches_.reset(bytes / kStretch + 1);
  }
  /// Marks bytes from..to, both multiples of 4, as belonging to no variable.
  void set_outside(u64 from, u64 to) {
    for (u64 at = from / 4; at < to / 4; ++at) words_[at].outside = true;
  }
  /// Records that a copy to the 16 bytes at `at` has started, or has been waited for.
  void set_in_flight(u64 at, bool in_flight);

  /// Records an access to `bytes` bytes at `at`. Returns null if it is allowed; otherwise the
  /// message. Accesses of 4 and more bytes are aligned to 4; shorter ones lie in one word.
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
  /// Records an access of a copy or fill to bytes from..to of global memory. Returns null if it is
  /// allowed; otherwise the message, and writes the first wrong address to `at`.
  const char* touch_range(u64 from, u64 to, Access kind, const Toucher& who,
                          const HappensBefore& order, u64& at);

 private:
  static constexpr u64 kStretch = 256;  // bytes

  template <bool shared>
  const char* touch_unusual(Word& w, u64 at, Access kind, Toucher who, const HappensBefore& order);
  template <bool shared>
  const char* touch_parts(u64 at, u32 bytes, Access kind, Toucher who, const HappensBefore& order);
  /// Gives each word of a stretch a state of its own.
  void spread(u64 at);

  Zeros<Word> words_, stretches_;
  std::vector<std::array<Word, 4>> parts_;
  u64 bytes_ = 0;
};

/// Memory returned by cudaMalloc. Its addresses are not valid in this process, so that host code
/// that reads them is found, and so are kernels that read host memory.
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

  /// Returns the address; 0 if there is not enough memory.
  u64 allocate(u64 bytes);
  /// Returns false if there is no such allocation.
  bool release(u64 address);
  /// Returns the allocation that contains this byte; null if there is none.
  Allocation* find(u64 address) {
    for (Allocation* a : recent_)
      if (a != nullptr && address - a->address < a->bytes) return a;
    return find_slowly(address);
  }
  u64 in_use() const { return in_use_; }
  u64 capacity() const { return capacity_; }

  /// Returns the bytes of a range of one allocation, for a copy. Throws Fault if the range is not
  /// inside an allocation, is read without having been written, or if the access is not ordered
  /// after earlier ones.
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
