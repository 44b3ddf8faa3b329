#pragma once
// Packed copy (image) of a network's parameters, as the fused kernel (fused_kernel.cuh) reads them
// in shared memory. There is one layout per Plan. Kernels that update parameters also write the
// image (kernels/step/packed_image.hpp), and each block copies it. Weights that tensor cores
// multiply are fp16, or sums of two fp16 numbers where the plan says so; biases and the last layer
// are float32. Index tables of the convolutions follow.
#include <cstdint>
#include <vector>

#include "kernels/fused/plan.hpp"
#include "kernels/step/packed_image.hpp"

namespace cudp::fused {

/// Layout of the packed copy of a network's parameters, in the order and number formats in which a
/// fused kernel reads them. Most members are byte offsets in the copy. After the parameters come
/// tables of pixel offsets. P: the kernel's Plan for one network.
template <class P>
struct Packed {
  static constexpr int kConvolutions = P::kConvolutions;
  static constexpr DenseStages kDense = P::kDense;

  static constexpr int weights(int i) {
    int at = 0;
    for (int k = 0; k < i; ++k) at += P::stage(k).weight_bytes();
    return at;
  }
  static constexpr int kSplitBytes = weights(kConvolutions) + (P::kAll ? kDense.weight_bytes() : 0);
  /// Distance from the high part of a weight to its low part, if the weight is stored as the sum of
  /// two fp16 numbers [bytes].
  static constexpr int kLow = kSplitBytes;
  static constexpr int kHidden = P::kAll ? weights(kConvolutions) : 2 * kSplitBytes;
  static constexpr int kLast = 2 * kSplitBytes + (P::kAll ? 0 : kDense.weight_bytes());
  static constexpr int kBiases = kLast + 4 * kDense.outputs * kDense.last_pitch();
  static constexpr int kHiddenBias = kBiases + 4 * round_up_to(P::kBiases, 4);
  static constexpr int kLastBias = kHiddenBias + 4 * kDense.hidden;
  static constexpr int kTables = kLastBias + 4 * round_up_to(kDense.outputs, 4);

  // Offsets of a convolution's index tables, in 16-bit numbers.
  struct Tables {
    int x = 0, dy = 0, pixel = 0;  ///< [slots], one entry per output pixel
    /// Table with one entry for each step (16 summands) of the convolution's product: the distance
    /// from the first 16-byte chunk of a pixel's input to the chunk that the step reads.
    int step = 0;
    /// Three tables [phases][back_slots] for the gradient of the input, with one entry per input
    /// pixel: its offset in the outputs' gradient dy, its offset in the input, and its index.
    /// phases, back_slots: see ConvStage.
    int back_dy = 0, back_x = 0, back_pixel = 0;
    int end = 0;
  };
  static constexpr Tables tables(int i) {
    Tables t;
    int at = i == 0 ? 0 : tables(i - 1).end;
    const ConvStage s = P::stage(i);
    const auto take = [&](int n) {
      const int here = at;
      at += n;
      return here;
    };
    t.x = take(s.slots);
    t.dy = take(s.slots);
    t.pixel = take(s.slots);
    t.step = take(s.steps());
    t.back_dy = take(s.phases * s.back_slots);
    t.back_x = take(s.phases * s.back_slots);
    t.back_pixel = take(s.phases * s.back_slots);
    t.end = at;
    return t;
  }
  static constexpr int kTableSize = tables(kConvolutions - 1).end;
  static constexpr int kBytes = round_up_to(kTables + 2 * kTableSize, kBanks);

  /// Returns the byte offset of a weight of convolution i in the packed copy. co: output channel.
  /// tap: position of the kernel. chunk, n: the input of the weight is the n-th number (0 to 7) of
  /// this chunk of eight fp16 numbers.
  static constexpr int weight_at(int i, int co, int tap, int chunk, int n) {
    const ConvStage s = P::stage(i);
    return weights(i) + s.weight_chunk(tap * s.tap_steps() + chunk / 2, chunk % 2, co) * kChunk +
           2 * n;
  }
  static constexpr int hidden_weight_at(int o, int in) {
    return kHidden + o * kDense.weight_pitch() * kChunk + 2 * in;
  }

  static std::vector<PackedPlace> places() {
    std::vector<PackedPlace> to(static_cast<std::size_t>(P::kStages.parameters));
    const auto put = [&](int parameter, int byte, std::uint32_t flags) {
      to[static_cast<std::size_t>(parameter)].word = static_cast<std::uint32_t>(byte) | flags;
    };
    const auto put_floats = [&](int parameter, int byte, int n) {
      for (int k = 0; k < n; ++k) put(parameter + k, byte + 4 * k, PackedPlace::kIsFloat);
    };
    for (int i = 0; i < kConvolutions; ++i) {
      const ConvStage s = P::stage(i);
      for (int co = 0; co < s.out; ++co)
        for (int tap = 0; tap < s.tap_count; ++tap)
          for (int chunk = 0; chunk < s.tap_chunks; ++chunk)
            for (int n = 0; n < 8; ++n)
              if (const int p = s.parameter(co, tap, chunk, n); p >= 0)
                put(p, weight_at(i, co, tap, chunk, n), PackedPlace::kHasLow);
      put_floats(s.bias, kBiases + 4 * P::channels_before(i), s.out);
    }
    for (int o = 0; o < kDense.hidden; ++o)
      for (int in = 0; in < kDense.in; ++in)
        put(kDense.parameter(o, in), hidden_weight_at(o, in), P::kAll ? PackedPlace::kHasLow : 0);
    put_floats(kDense.bias, kHiddenBias, kDense.hidden);
    for (int o = 0; o < kDense.outputs; ++o)
      put_floats(kDense.last_weight + o * kDense.hidden, kLast + 4 * o * kDense.last_pitch(),
                 kDense.hidden);
    put_floats(kDense.last_bias, kLastBias, kDense.outputs);
    return to;
  }

  /// Returns the packed copy before the first step: the tables of pixel offsets, which never
  /// change, and zeros in place of all parameters.
  static std::vector<unsigned char> image() {
    std::vector<unsigned char> bytes(kBytes, 0);
    const auto put = [&](int at, int value) {
      const std::size_t first = kTables + std::size_t{2} * static_cast<std::size_t>(at);
      bytes[first] = static_cast<unsigned char>(value);
      bytes[first + 1] = static_cast<unsigned char>(value >> 8);
    };
    for (int i = 0; i < kConvolutions; ++i) {
      const ConvStage s = P::stage(i);
      const Tables t = tables(i);
      const SlotOrder order = P::out_slots(i);
      for (int slot = 0; slot < s.slots; ++slot) {
        const bool is_pixel = order.pixel[slot] != kNone;
        const int pixel = order.read_by(slot);
        const int y = pixel / s.out_width, x = pixel % s.out_width;
        const int zero = s.dy_zeros + (slot + s.dy_place(0, 0)) % 8;
        put(t.x + slot, s.row * y + x);
        put(t.dy + slot, is_pixel ? s.dy_place(y, x) : zero);
        put(t.pixel + slot, order.pixel[slot]);
      }
      for (int step = 0; step < s.steps(); ++step)
        put(t.step + step, s.tap_place(step / s.tap_steps(), 2 * (step % s.tap_steps())));
      for (int phase = 0; phase < s.phases; ++phase) {
        const PhasePixels p = P::back_pixels(i, phase);
        const SlotOrder back = slot_order(p.height, p.width, s.dy_row);
        const int fy = phase / s.stride, fx = phase % s.stride;
        for (int slot = 0; slot < s.back_slots; ++slot) {
          const int at = phase * s.back_slots + slot;
          const bool is_pixel = back.pixel[slot] != kNone;
          const int pixel = back.read_by(slot);
          const int ay = p.first_y + pixel / p.width, ax = p.first_x + pixel % p.width;
          const int y = ay * s.stride + fy,
                    x = ax * s.stride + fx;  // coordinates in the padded input
          put(t.back_dy + at, s.dy_place(ay, ax));
          put(t.back_x + at, s.pixel_place(y, x));
          put(t.back_pixel + at,
              is_pixel ? (y - s.pad) * P::stage(i - 1).pooled_width() + x - s.pad : kNone);
        }
      }
    }
    return bytes;
  }
};

}  // namespace cudp::fused
