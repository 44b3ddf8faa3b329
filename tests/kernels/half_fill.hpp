#pragma once
// Fills the shared memory of the kernels that multiply fp16 numbers (steps of recurrent layers,
// products of texts, patches), at every barrier of a block, where no later phase may read it: what
// the step, the text or the patch before has left. Results must not change by a bit, also beside
// examples of any numbers.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#include "kernels/layers/recurrent.hpp"
#include "kernels/products/half_tile.cuh"
#include "kernels/products/patch_product.hpp"
#include "tests/support/simt/at_barrier.hpp"

namespace cudp {
namespace {

/// Bytes that memory is filled with: of NaN, of large finite numbers (61,280 in fp16, 1.3e36 in
/// float32) and of 0.
constexpr unsigned char kFills[] = {0xff, 0x7b, 0x00};

/// The i-th of numbers that an example may have.
inline float hostile(std::size_t i) {
  constexpr float kNumbers[] = {NAN, INFINITY, -65504.0f, 7e4f, -3e38f, 1e-42f, -INFINITY};
  return kNumbers[i % std::size(kNumbers)];
}

/// While it lives, shared memory starts with `first` in every byte, and launches call `at_barrier`.
class SharedFill {
 public:
  explicit SharedFill(unsigned char first, simt::AtBarrier at_barrier = nullptr) {
    simt::set_first_byte(first);
    simt::set_at_barrier(std::move(at_barrier));
  }
  SharedFill(const SharedFill&) = delete;
  SharedFill& operator=(const SharedFill&) = delete;
  ~SharedFill() {
    simt::set_first_byte(0xff);
    simt::set_at_barrier(nullptr);
  }
};

/// Of a step of a recurrent layer (kernels/layers/recurrent_half.cuh): what the step before the
/// last one has left, the numbers of texts that have ended, and what lies between texts. The
/// numbers between the last unit and a whole slice are zeros that products read.
inline simt::AtBarrier fill_steps(const device::RecurrentPass& a, bool back, unsigned char byte) {
  return [=](unsigned n, const simt::SharedMemory& shared) {
    const std::size_t examples = a.plan.examples, hidden = a.hidden;
    const auto terms = static_cast<std::size_t>(device::half_terms(a.hidden, back));
    const auto pitch = static_cast<std::size_t>(device::half_pitch(a.hidden, back));
    auto* const steps = reinterpret_cast<std::uint16_t*>(shared.dynamic);
    auto* const carry = reinterpret_cast<float*>(shared.dynamic) + examples * pitch;
    const std::size_t arrays = back ? 1 : 2;  // carry, and the sum of the states
    const auto* const length =
        reinterpret_cast<const std::int32_t*>(carry + arrays * hidden * examples);
    const int longest = *std::max_element(length, length + examples);
    const int next = back ? longest - 1 - static_cast<int>(n) : static_cast<int>(n);
    for (std::size_t e = 0; e < examples; ++e) {
      const bool has_ended = back ? length[e] == 0 : next >= length[e];
      // The step of this text that comes next: it replaces the numbers of one array.
      const int step = std::max(std::min(next, length[e] - 1), 0);
      for (std::size_t k = 0; k < 2; ++k) {
        std::uint16_t* const row = steps + (k * examples + e) * pitch;
        std::memset(row + terms, byte, sizeof *row * (pitch - terms));
        if (has_ended || k == (step % 2 == 0 ? 1u : 0u))
          std::memset(row, byte, sizeof *row * hidden * (back ? 4 : 1));
      }
      for (std::size_t j = 0; has_ended && j < arrays * hidden; ++j)
        std::memset(carry + j * examples + e, byte, sizeof *carry);
    }
  };
}

/// Of a kernel whose tile has two buffers (`a` and `b`), which are multiplied in turn: the one that
/// has been multiplied.
template <class Tile>
simt::AtBarrier fill_other_half(unsigned char byte) {
  return [=](unsigned n, const simt::SharedMemory& shared) {
    auto& tile = shared.array<Tile>();
    const unsigned other = (n + 1) % 2;
    std::memset(&tile.a[other], byte, sizeof tile.a[other]);
    std::memset(&tile.b[other], byte, sizeof tile.b[other]);
  };
}

/// Of a weight gradient from patches: the patch that has been multiplied, but for the zeros behind
/// each group of channels of dy. columns: those of a block's tile.
inline simt::AtBarrier fill_patch(const ConvPatch& p, int columns, unsigned char byte) {
  return [=](unsigned n, const simt::SharedMemory& shared) {
    if (n % 2 != 0) return;  // the patch has just been copied
    const auto x = std::size_t{kPatchChannels / kChunkChannels} * p.x_pixels.n * 16;
    const auto dy = static_cast<std::size_t>(p.dy_pixels.n) * 16;
    std::memset(shared.dynamic, byte, x);
    for (int group = 0; group < columns / kChunkChannels; ++group)
      std::memset(shared.dynamic + x + static_cast<std::size_t>(group) * (dy + 16), byte, dy);
  };
}

/// Of a convolution from patches: the pixels and weights of the step that has been multiplied.
inline simt::AtBarrier fill_pixels(const PixelPatch& p, int columns, unsigned char byte) {
  return [=](unsigned n, const simt::SharedMemory& shared) {
    if (n % 2 != 0) return;  // the step has just been copied
    const int chunks = p.x_chunks() + patch_columns(columns) * kStepChunks;
    std::memset(shared.dynamic, byte, 16 * static_cast<std::size_t>(chunks));
  };
}

}  // namespace
}  // namespace cudp
