#include <cstddef>

#include "kernels/common/cpu_kernel_list.hpp"
#include "kernels/random/normal_math.hpp"
#include "kernels/random/random.hpp"
#include "kernels/random/random_block.hpp"
#include "kernels/random/random_chunk.hpp"

namespace cudp::CUDP_SIMD {

namespace {

/// Number of random words of a tile.
constexpr std::int64_t kTile = 256;
constexpr std::int64_t kTileLanes = 16;  // generator blocks in a tile
static_assert(kTileLanes % kLanes == 0);

/// A `lanes` type for random_block() with twice as many lanes as a SIMD register: one call computes
/// the blocks of two neighbouring tiles, 32 blocks.
struct PairLanes {
  struct U {
    VecU v[2];
    CUDP_HD void operator+=(U b) {
      v[0] += b.v[0];
      v[1] += b.v[1];
    }
    CUDP_HD U operator^(U b) const { return {v[0] ^ b.v[0], v[1] ^ b.v[1]}; }
    CUDP_HD U operator+(std::uint32_t b) const { return {v[0] + b, v[1] + b}; }
    CUDP_HD U operator<<(int n) const { return {v[0] << n, v[1] << n}; }
    CUDP_HD U operator>>(int n) const { return {v[0] >> n, v[1] >> n}; }
  };
  static CUDP_HD U fill_u(std::uint32_t x) { return {broadcast_u(x), broadcast_u(x)}; }
  template <int n>
  static CUDP_HD U rotate_left(U x) {
    return {VecLanes::rotate_left<n>(x.v[0]), VecLanes::rotate_left<n>(x.v[1])};
  }
  static CUDP_HD U multiply(U a, std::uint32_t m, U& high) {
    return {VecLanes::multiply(a.v[0], m, high.v[0]), VecLanes::multiply(a.v[1], m, high.v[1])};
  }
};

// Computes words[tile][row] of the two tiles that start at word `first` of the stream: of each row,
// kLanes words from word `lane` on.
CUDP_INLINE void chunk_rows(const RandomStream& stream, std::int64_t first, std::int64_t lane,
                            VecU (&words)[2][16]) {
  const auto block = static_cast<std::uint32_t>(first / kTileLanes + lane);
  VecU n;
  for (int i = 0; i < kLanes; ++i) n[i] = block + static_cast<std::uint32_t>(i);
  const VecU next = n + static_cast<std::uint32_t>(kTileLanes);
  if constexpr (kRegisters >= 32) {
    PairLanes::U rows[16];
    random_block<PairLanes>(stream, {n, next}, rows);
    CUDP_UNROLL for (int row = 0; row < 16; ++row) {
      words[0][row] = rows[row].v[0];
      words[1][row] = rows[row].v[1];
    }
  } else {
    random_block<VecLanes>(stream, n, words[0]);
    random_block<VecLanes>(stream, next, words[1]);
  }
}

}  // namespace

void words_chunk(const RandomStream& stream, std::int64_t first, std::uint32_t* out) {
  for (std::int64_t lane = 0; lane < kTileLanes; lane += kLanes) {
    VecU words[2][16];
    chunk_rows(stream, first, lane, words);
    CUDP_UNROLL for (int row = 0; row < 16; ++row) {
      store_u(out + row * kTileLanes + lane, words[0][row]);
      store_u(out + kTile + row * kTileLanes + lane, words[1][row]);
    }
  }
}

void normals_chunk(const RandomStream& stream, std::int64_t first, float* out) {
  for (std::int64_t lane = 0; lane < kTileLanes; lane += kLanes) {
    VecU words[2][16];
    chunk_rows(stream, first, lane, words);
    CUDP_UNROLL for (int row = 0; row < 16; row += 2) {
      CUDP_UNROLL for (int tile = 0; tile < 2; ++tile) {
        Vec even{};
        Vec odd{};
        box_muller<VecLanes>(words[tile][row], words[tile][row + 1], even, odd);
        float* const to = out + tile * kTile + row * kTileLanes + lane;
        store(to, even);
        store(to + kTileLanes, odd);
      }
    }
  }
}

namespace {

// Writes whole chunks directly to the caller's array, and the rest through a chunk on the stack.
template <class T>
CUDP_INLINE void fill(void (*make_chunk)(const RandomStream&, std::int64_t, T*),
                      const RandomStream& stream, std::int64_t begin, std::int64_t end, T* out) {
  std::int64_t i = begin;
  for (; i + kRandomChunk <= end; i += kRandomChunk) make_chunk(stream, i, out + (i - begin));
  if (i < end) {
    T tail[kRandomChunk];
    make_chunk(stream, i, tail);
    __builtin_memcpy(out + (i - begin), tail, sizeof(T) * static_cast<std::size_t>(end - i));
  }
}

}  // namespace

void fill_words(const RandomStream& stream, std::int64_t begin, std::int64_t end,
                std::uint32_t* words) {
  fill(words_chunk, stream, begin, end, words);
}

void fill_normals(const RandomStream& stream, std::int64_t begin, std::int64_t end,
                  float* normals) {
  fill(normals_chunk, stream, begin, end, normals);
}

}  // namespace cudp::CUDP_SIMD
