#pragma once
// Data that the action of an instruction uses: a warp of a block, and rows of 32 lanes. Only the
// interpreter's own files include it.
#include <memory>
#include <type_traits>

#include "tests/support/ptx/interpreter.hpp"

namespace cudp::ptx {

// Before a loop over lanes: no lane needs what another writes, though a row may be read and
// written.
#ifdef __clang__
#define CUDP_PTX_NO_DEPENDENCE _Pragma("clang loop vectorize(assume_safety)")
#else
#define CUDP_PTX_NO_DEPENDENCE _Pragma("GCC ivdep")
#endif
// Instructions that not every x86-64 has; whoever uses them asks wide_instructions() first.
#if defined(__x86_64__)
#define CUDP_PTX_WIDE [[gnu::target("avx2,fma")]]
#endif

/// Generic addresses of shared memory begin here.
inline constexpr u64 kSharedWindow = u64{1} << 56;

/// Memory for the rows of a warp, aligned to 64 bytes and not cleared.
class Rows {
 public:
  u8* make(u64 bytes) {
    if (bytes > bytes_) {
      data_ = std::make_unique_for_overwrite<u8[]>(bytes + 64);
      bytes_ = bytes;
    }
    return data_.get() + (64 - reinterpret_cast<u64>(data_.get()) % 64) % 64;
  }

 private:
  std::unique_ptr<u8[]> data_;
  u64 bytes_ = 0;
};

inline constexpr u32 kMaxWarps = 32;  ///< of a block

/// A copy to shared memory that has not been waited for.
struct AsyncCopy {
  u32 to = 0;
  u32 bytes = 0;  ///< number of bytes read; the others of 16 become 0
  u64 from = 0;
};

struct Block {
  const Kernel* kernel = nullptr;
  const u8* parameters = nullptr;
  DeviceMemory* memory = nullptr;
  const HappensBefore* order = nullptr;
  std::map<std::string, u64>* notes = nullptr;
  Dim grid, block, id;
  u32 number = 0;             ///< of the block in the launch
  bool is_dependent = false;  ///< its threads must wait for the primary of the launch
  std::vector<u8> shared;
  Shadow shadow;
  Rows rows;
  std::vector<Warp> warps;  ///< those of the largest block so far; this one has warp_count
  u32 warp_count = 0;
};

struct Warp {
  Block* block = nullptr;
  const Kernel* kernel = nullptr;
  u8* registers = nullptr;
  u32* predicates = nullptr;
  u32* written = nullptr;  ///< lanes that have written a register, for each register
  u32* predicates_written = nullptr;
  u32 index = 0;     ///< in the block
  u32 live = 0;      ///< lanes that have not ended
  u32 waiting = 0;   ///< lanes that wait in a warp operation or at a barrier
  u32 current = 0;   ///< the instruction that runs
  u32 interval = 0;  ///< between barriers
  /// The last interval of each warp of the block that has ended before this warp's own.
  std::array<u32, kMaxWarps> ended{};
  u16 sync = 0;  ///< warp-wide barriers in this interval
  bool at_barrier = false;
  u32 has_waited = 0;  ///< lanes that have waited for the primary of a dependent launch
  u32 fenced = 0;      ///< lanes that have passed a fence in this interval
  /// Address of a counter at which lane counted_lane found all other blocks counted, and that no
  /// fence has followed; 0 if there is none.
  u64 counted = 0;
  u32 counted_lane = 0;
  std::array<u32, kLanes> pc{};
  std::array<std::vector<AsyncCopy>, kLanes> copies;

  Toucher toucher(u32 lane) const {
    return {interval, block->number, static_cast<u16>(index * kLanes + lane), sync};
  }
  const u8* row(const Operand& o) const {
    return (o.is_constant() ? kernel->constants.data() : registers) + o.at;
  }
  u8* result(const Operand& o) const { return registers + o.at; }
};

/// Random number generator (splitmix64).
class Random {
 public:
  explicit Random(u64 seed) : state_(seed) {}
  u64 next() {
    u64 z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  /// Returns a random number in 0..n - 1.
  u32 below(u32 n) { return static_cast<u32>((next() >> 32) * n >> 32); }

 private:
  u64 state_;
};

/// Runs a warp until its lanes wait at a barrier or have ended, or for about `instructions`
/// instructions.
void run_warp(Warp& warp, Random& random, u64 instructions, Totals& totals);

[[noreturn]] void fault(const Warp& warp, u32 lane, const std::string& what);
/// Records an unusual event that is not a fault.
void note(const Warp& warp, const std::string& what);

inline bool wide_instructions() {
#ifdef CUDP_PTX_WIDE
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

template <class T>
struct Aliased {
  using type [[gnu::may_alias]] = T;
};

/// Returns one lane's register from a row. Registers are as wide as T, or 32 bits wide if T is
/// shorter.
template <class T>
[[gnu::always_inline]] inline T get(const u8* row, u32 lane) {
  if constexpr (sizeof(T) >= 4)
    return reinterpret_cast<const typename Aliased<T>::type*>(row)[lane];
  else
    return static_cast<T>(reinterpret_cast<const typename Aliased<u32>::type*>(row)[lane]);
}
template <class T>
[[gnu::always_inline]] inline void set(u8* row, u32 lane, T value) {
  if constexpr (sizeof(T) >= 4)
    reinterpret_cast<typename Aliased<T>::type*>(row)[lane] = value;
  else
    reinterpret_cast<typename Aliased<u32>::type*>(row)[lane] = static_cast<u32>(value);
}

/// Returns one lane's register from a row whose registers may be wider than T.
template <class T>
[[gnu::always_inline]] inline T get_narrow(const u8* row, u8 width, u32 lane) {
  if (sizeof(T) < 8 && width == 8) {
    const auto bits = get<u64>(row, lane);
    if constexpr (std::is_integral_v<T>) return static_cast<T>(bits);
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  return get<T>(row, lane);
}
/// Writes a register that may be wider than T. Signed integers are sign-extended, unsigned ones
/// zero-extended.
template <class T>
[[gnu::always_inline]] inline void set_wide(u8* row, u8 width, u32 lane, T value) {
  if (sizeof(T) < 8 && width == 8) {
    if constexpr (std::is_integral_v<T>) {
      set<u64>(row, lane, static_cast<u64>(value));
    } else {
      u32 bits = 0;
      std::memcpy(&bits, &value, 4);
      set<u64>(row, lane, bits);
    }
  } else {
    set<T>(row, lane, value);
  }
}

/// Calls f(lane) for each lane of the mask. If all lanes are set, the compiler can vectorise the
/// loop.
template <class F>
[[gnu::always_inline]] inline void for_lanes(u32 lanes, F&& f) {
  if (lanes == ~0u) {
    CUDP_PTX_NO_DEPENDENCE
    for (u32 lane = 0; lane < kLanes; ++lane) f(lane);
  } else {
    for (; lanes != 0; lanes &= lanes - 1) f(static_cast<u32>(__builtin_ctz(lanes)));
  }
}

}  // namespace cudp::ptx
