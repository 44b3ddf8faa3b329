#pragma once
// Layers of a network as the fused kernel (fused_kernel.cuh) computes them: the sizes of each stage
// and its layout in shared memory, computed at compile time from a list of layers.
//
// Terms:
//   chunk  16 bytes of shared memory: 8 fp16 numbers, a row of an 8 x 8 matrix
//   step   16 summands of a product: two chunks
//   slot   index of an output pixel in the order in which products process pixels (SlotOrder)
//   tile   16 x 8 numbers
//   unit   tiles of a weight gradient that a warp computes at once; the sum of their squares is one
//          of the partial sums of the norm
//   part   one of the ConvStage::splits parts of the sums of a convolution's outputs
// Slots, units and parts depend on the layer only, not on the number of examples that a block
// processes at once. So results are equal bit for bit for every such number.
#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/fused/network.hpp"

namespace cudp::fused {

/// Numbers of threads and of warps per thread block.
inline constexpr int kThreads = 512, kWarps = 16;
/// Size of a chunk, the unit in which arrays in shared memory are laid out [bytes]: 8 fp16 numbers.
inline constexpr int kChunk = 16;
/// Maximum number of convolutions of a network for which a fused kernel can be compiled.
inline constexpr int kMaxConvolutions = 3;
/// Largest number of slots of an image (SlotOrder): positions in the order in which its pixels are
/// processed.
inline constexpr int kMaxSlots = 256;
/// Entry of SlotOrder::pixel for a slot to which no pixel is assigned.
inline constexpr std::uint16_t kNone = 0xffff;

constexpr int round_up_to(int n, int to) { return (n + to - 1) / to * to; }
constexpr int quotient_up(int n, int by) { return (n + by - 1) / by; }

/// Sizes of a convolution with the activation and the pool that follow it, and its layout in shared
/// memory. lay_out() chooses the layout. Outputs that no later layer reads are not computed.
struct ConvStage {
  int channels = 0, height = 0, width = 0;
  int out = 0, kernel = 1, stride = 1, pad = 0, pool = 1;
  int out_height = 0, out_width = 0;  ///< size of the outputs that are computed [pixels]
  /// Indices of the convolution's first weight and of its first bias in the model's parameters.
  int weight = 0, bias = 0;

  // Layout of the input in shared memory: planes of 16-byte chunks. Chunk `row * y + x` has the
  // inputs of output pixel (y, x) for the kernel's first tap. The inputs for another tap are at a
  // fixed distance from it, tap_place().
  /// Whether a chunk has all inputs of one row of the kernel (all channels). Otherwise a chunk has
  /// 8 channels of one pixel.
  bool is_taps = false;
  /// Distance in shared memory between consecutive rows of the padded input [16-byte chunks]. With
  /// a stride above 1, unless is_taps, it is the distance between consecutive rows of one phase,
  /// which are `stride` rows apart in the image.
  int line = 0;
  /// Distance in shared memory between the first rows (phase_line), or the first columns
  /// (phase_column), of consecutive phases of the input [16-byte chunks]. A phase is the pixels
  /// with the same row and column modulo the stride; each is stored separately.
  int phase_line = 0, phase_column = 0;
  int tap_count = 0;          ///< number of taps that have chunks of their own
  int tap_chunks = 0;         ///< number of chunks per tap that have weights
  int planes = 0, plane = 0;  ///< number of planes per example, and of 16-byte chunks per plane
  /// Distance in the stored input between the chunks that belong to consecutive rows of the output
  /// [16-byte chunks].
  int row = 0;

  // Layout of the outputs' gradient in shared memory: planes of 8 channels with a border of zeros.
  // Width of the border [pixels], and distances between rows and between planes [16-byte chunks].
  int border = 0, dy_row = 0, dy_plane = 0;
  /// Offset of 8 chunks of zeros in a plane of the outputs' gradient [16-byte chunks]. They are
  /// read for slots (SlotOrder) without a pixel. The 8 chunks are in different banks, so that these
  /// reads cause no bank conflicts.
  int dy_zeros = 0;

  int slots = 0;  ///< number of output pixels, padded to a multiple of 16
  /// Number of phases (pixels with the same row and column modulo the stride) for which the input's
  /// gradient is computed separately: the square of the stride. 0 if that gradient is not computed.
  int phases = 0;
  int back_slots = 0;  ///< number of slots for input pixels, in one phase
  int splits = 1;      ///< number of parts that the sum of an output is divided into

  /// Size of a unit, the part of the weight gradient that a warp computes at once: 16 unit_m output
  /// channels times 8 unit_k inputs.
  int unit_m = 1, unit_k = 1;
  int units = 0;  ///< number of units
  /// Whether each warp computes its parts of the weight gradient for only one of the examples that
  /// the block processes at once. If false, each warp computes its parts for all of them.
  bool has_example_owners = false;

  constexpr int pooled_height() const { return out_height - pool + 1; }
  constexpr int pooled_width() const { return out_width - pool + 1; }
  constexpr int pixels() const { return out_height * out_width; }
  constexpr int pooled() const { return pooled_height() * pooled_width(); }
  constexpr int weights() const { return out * channels * kernel * kernel; }
  constexpr int blocks_m() const { return out / 16; }
  constexpr int tap_steps() const { return quotient_up(tap_chunks, 2); }
  constexpr int steps() const { return tap_count * tap_steps(); }
  constexpr int units_k() const { return tap_count * (unit_k == 2 ? tap_steps() : tap_chunks); }
  /// Returns the offset of output pixel (y, x) in a plane (8 channels) of the gradient of the
  /// outputs [16-byte chunks].
  constexpr int dy_place(int y, int x) const { return (y + border) * dy_row + x + border; }
  constexpr int input_bytes() const { return planes * plane * kChunk; }
  constexpr int dy_bytes() const { return out / 8 * dy_plane * kChunk; }
  constexpr int weight_bytes() const { return steps() * out * 2 * kChunk; }
  /// Returns the distance in shared memory from the first input chunk of an output pixel to chunk
  /// number `chunk` of position `tap` of the kernel [16-byte chunks].
  constexpr int tap_place(int tap, int chunk) const {
    if (is_taps) return chunk * line;
    const int y = tap / kernel, x = tap % kernel;
    return chunk * plane + y / stride * line + y % stride * phase_line + x % stride * phase_column +
           x / stride;
  }
  /// Returns the offset of padded input pixel (y, x) in a plane [16-byte chunks]. Requires
  /// !is_taps, so that a chunk is 8 channels of one pixel.
  constexpr int pixel_place(int y, int x) const {
    return y / stride * line + y % stride * phase_line + x % stride * phase_column + x / stride;
  }
  /// Returns the index of the weight, among the model's parameters, by which the n-th number of an
  /// input chunk is multiplied for output channel c and kernel tap `tap`. Returns -1 if that number
  /// is padding, which has no weight.
  constexpr int parameter(int c, int tap, int chunk, int n) const {
    if (is_taps) {
      if (chunk >= kernel || n >= channels * kernel) return -1;
      return weight + ((c * channels + n / kernel) * kernel + chunk) * kernel + n % kernel;
    }
    const int in = 8 * chunk + n;
    return in < channels ? weight + (c * channels + in) * kernel * kernel + tap : -1;
  }
  /// Returns the index, among the chunks of packed weights, of 8 weights of output channel c for
  /// one step of a product. A step has 16 summands, so its weights are two chunks, half 0 and half
  /// 1. The halves swap places every 4 channels, to avoid bank conflicts when a warp reads one half
  /// of 8 consecutive channels.
  constexpr int weight_chunk(int step, int half, int c) const {
    return 2 * (step * out + c) + (half ^ (c >> 2 & 1));
  }
  /// Returns the number of warps that share the computation of one example's weight gradient.
  /// examples: number of examples that a block processes at once.
  constexpr int owners(int examples) const {
    return has_example_owners ? kWarps / examples : kWarps;
  }
  constexpr int owned(int examples) const { return quotient_up(units, owners(examples)); }
  constexpr int sums(int examples) const { return owned(examples) * unit_m * unit_k * 4; }
};

/// Sizes of the network's two dense layers, and the indices of their weights and biases among the
/// model's parameters. The hidden layer comes after the convolutions; the last layer computes the
/// logits.
struct DenseStages {
  int in = 0, hidden = 0, outputs = 0;
  int channels = 0, pixels = 0;  ///< the inputs' order is [pixels][channels]
  int weight = 0, bias = 0, last_weight = 0, last_bias = 0;

  constexpr int steps() const { return in / 16; }
  // Distances between rows in shared memory.

  /// Distance in shared memory between the hidden layer's weights of consecutive outputs [16-byte
  /// chunks]. It is odd, which avoids bank conflicts.
  constexpr int weight_pitch() const { return in / 8 + 1; }
  constexpr int weight_bytes() const { return hidden * weight_pitch() * kChunk; }
  /// Distance in shared memory between the hidden layer's inputs for consecutive examples [32-bit
  /// words].
  constexpr int input_pitch() const { return round_up_to(in / 2, 32) + 4; }
  /// Distance in shared memory between the gradients of the hidden layer's outputs for consecutive
  /// examples [32-bit words].
  constexpr int gradient_pitch() const { return round_up_to(hidden / 2, 32) + 4; }
  /// Distance in shared memory between the last layer's weights for consecutive outputs [floats].
  constexpr int last_pitch() const { return hidden + 4; }
  /// Number of blocks of 8 outputs x 4 inputs into which the hidden layer's weights are divided.
  /// Each thread adds up the gradients of the weights of one or more whole blocks.
  constexpr int blocks() const { return hidden / 8 * (in / 4); }
  constexpr int owned() const { return quotient_up(blocks(), kThreads); }
  /// Returns the index among the model's parameters of the hidden layer's weight for output o and
  /// input i. Inputs are in the order [pixels][channels].
  constexpr int parameter(int o, int i) const {
    return weight + o * in + i % channels * pixels + i / channels;
  }
};

/// A network as a fused kernel computes it: the convolutions, each with the activation and the pool
/// that follow it, then two dense layers. `parameters`, `functions` and `features` are the
/// network's numbers of parameters, activation functions and features.
struct Stages {
  int convolutions = 0;
  std::array<ConvStage, kMaxConvolutions> convolution{};
  DenseStages dense{};
  int parameters = 0;
  int functions = 0;
  int features = 0;
  /// The reason why no fused kernel can be made for this list of layers; null if one can be made.
  const char* refusal = nullptr;
};

// ------------------------------------------------------------------------------------------------
// Slots

/// Order in which matrix products process the pixels (y, x) of an image. Each position in this
/// order is a slot. The offset of pixel (y, x) in shared memory is `row` * y + x, where `row` is
/// the distance between rows of pixels. To avoid bank conflicts, the number of its slot and this
/// offset are equal modulo 8, so 8 consecutive slots are in different banks. Slots for which there
/// is no pixel remain empty (kNone).
struct SlotOrder {
  int slots = 0;
  /// [slots], index y width + x of the pixel in each slot.
  std::array<std::uint16_t, kMaxSlots> pixel{};

  /// Returns the pixel whose input is read for `slot`. An empty slot, whose products are not used,
  /// reads that of the first pixel of its eight slots, or pixel 0: the input of every pixel is
  /// finite if the example is, and a place that is read twice is no bank conflict.
  constexpr int read_by(int slot) const {
    int read = pixel[slot];
    for (int k = slot / 8 * 8; read == kNone && k < slot / 8 * 8 + 8; ++k) read = pixel[k];
    return read == kNone ? 0 : read;
  }
};
constexpr SlotOrder slot_order(int height, int width, int row) {
  SlotOrder order;
  for (auto& p : order.pixel) p = kNone;
  std::array<int, 8> found{};
  int most = 0;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const int c = (row * y + x) % 8;
      const int slot = found[c]++ * 8 + c;
      if (slot < kMaxSlots) order.pixel[slot] = static_cast<std::uint16_t>(y * width + x);
      most = std::max(most, found[c]);
    }
  order.slots = round_up_to(8 * most, 16);
  return order;
}

/// The input pixels of one phase of a convolution, a grid of height x width pixels. Phase number p
/// has the pixels whose row in the padded input is p / stride modulo the stride, and whose column
/// is p % stride modulo the stride.
struct PhasePixels {
  /// Numbers of rows (first_y) and of columns (first_x) of this phase that are padding before the
  /// image's first pixel.
  int first_y, first_x;
  int height, width;
};
constexpr PhasePixels phase_pixels(const ConvStage& s, int seen_height, int seen_width, int phase) {
  const auto first = [&](int f) { return s.pad > f ? quotient_up(s.pad - f, s.stride) : 0; };
  const auto count = [&](int f, int seen) {
    const int last = seen + s.pad - 1 - f;
    return last < 0 ? 0 : last / s.stride - first(f) + 1;
  };
  const int y = phase / s.stride, x = phase % s.stride;
  return {first(y), first(x), count(y, seen_height), count(x, seen_width)};
}

// ------------------------------------------------------------------------------------------------
// Stages of a list

/// Chooses a convolution's layout in shared memory: among the possible distances between rows, the
/// one that needs the fewest slots for pixels, and among equals the fewest bytes. Also divides its
/// weight gradient into units, the parts that a warp computes at once. gives_input_gradient:
/// whether the gradient of the input is computed.
constexpr void lay_out(ConvStage& s, bool gives_input_gradient) {
  const int rows = s.stride * (s.out_height - 1) + s.kernel;
  const int columns = s.stride * (s.out_width - 1) + s.kernel;
  s.border = gives_input_gradient ? quotient_up(s.kernel, s.stride) - 1 : 0;
  s.phases = gives_input_gradient ? s.stride * s.stride : 0;
  s.is_taps = !gives_input_gradient && s.channels * s.kernel <= 8;
  if (s.is_taps) {
    s.tap_count = 1;
    s.tap_chunks = s.kernel;
    s.planes = 1;
  } else {
    s.tap_count = s.kernel * s.kernel;
    s.tap_chunks = quotient_up(s.channels, 8);
    s.planes = 2 * s.tap_steps();
    s.phase_column = quotient_up(columns, s.stride);
    s.phase_line = s.stride * s.phase_column;
  }
  const int least = s.is_taps ? s.out_width : s.stride * s.phase_line;
  ConvStage best;
  for (int more = 0; more < 8; ++more) {
    ConvStage t = s;
    t.line = least + more;
    t.row = t.is_taps ? t.stride * t.line : t.line;
    t.slots = slot_order(t.out_height, t.out_width, t.row).slots;
    // All pixels, whose offsets are not in their order.
    int used_by_input = t.is_taps ? (rows + t.kernel % 2) * t.line : 0;
    for (int y = 0; y < (t.is_taps ? 0 : rows); ++y)
      for (int x = 0; x < columns; ++x)
        used_by_input = std::max(used_by_input, t.pixel_place(y, x) + 1);
    t.plane = round_up_to(used_by_input, 8);
    t.dy_row = t.out_width + t.border;
    while ((t.dy_row - t.row) % 8 != 0) ++t.dy_row;
    const int used = (t.out_height + 2 * t.border) * t.dy_row + t.border;
    const bool in_border = t.border > 0 && t.dy_row >= 8 + t.border;
    t.dy_zeros = in_border ? 0 : round_up_to(used, 8);
    t.dy_plane = in_border ? round_up_to(used, 8) : t.dy_zeros + 8;
    const auto bytes = [](const ConvStage& c) { return c.input_bytes() + c.dy_bytes(); };
    if (more == 0 || t.slots < best.slots || (t.slots == best.slots && bytes(t) < bytes(best)))
      best = t;
  }
  s = best;
  const int items = 2 * (s.slots / 16) * s.blocks_m();
  if (items < kWarps) {
    s.splits = std::min(kWarps / items, s.steps());
    s.splits = quotient_up(s.steps(), quotient_up(s.steps(), s.splits));
  }
  // Chooses the size of units: the fewest sums per thread, and among equals the largest unit.
  const int tiles = s.blocks_m() * s.tap_count * s.tap_chunks;
  s.has_example_owners = !gives_input_gradient && tiles < kWarps;
  int least_sums = 0;
  ConvStage chosen = s;
  for (const int m : {s.blocks_m(), 1})
    for (const int k : {2, 1}) {
      ConvStage t = s;
      t.unit_m = m;
      t.unit_k = k;
      t.units = t.blocks_m() / m * t.units_k();
      const int sums = t.sums(4);
      if (least_sums == 0 || sums < least_sums) {
        least_sums = sums;
        chosen = t;
      }
    }
  s = chosen;
}

template <std::size_t n>
constexpr Stages stages_of(const LayerList<n>& list) {
  Stages r;
  const auto refuse = [&](const char* why) {
    if (r.refusal == nullptr) r.refusal = why;
  };
  int channels = list.image.channels, height = list.image.height, width = list.image.width;
  r.features = channels * height * width;
  int dense_layers = 0;
  for (const Layer& l : list.layers) {
    switch (l.kind) {
      case LayerKind::convolution: {
        if (dense_layers > 0 || r.convolutions == kMaxConvolutions) {
          refuse("a convolution after a dense layer, or the fourth one");
          return r;
        }
        if (l.out % 16 != 0) refuse("channels that are no multiple of 16");
        if (l.kernel > 8) refuse("a kernel above 8");
        ConvStage& s = r.convolution[r.convolutions++];
        s.channels = channels;
        s.height = height;
        s.width = width;
        s.out = l.out;
        s.kernel = l.kernel;
        s.stride = l.stride;
        s.pad = l.pad;
        channels = l.out;
        height = (height + 2 * l.pad - l.kernel) / l.stride + 1;
        width = (width + 2 * l.pad - l.kernel) / l.stride + 1;
        s.weight = r.parameters;
        s.bias = s.weight + s.weights();
        r.parameters = s.bias + s.out;
        break;
      }
      case LayerKind::function:
        ++r.functions;
        break;
      case LayerKind::pool:
        if (r.convolutions == 0 || dense_layers > 0 || l.kernel != 2 || l.stride != 1)
          refuse("a pool that is not of 2 x 2 pixels, one apart, after a convolution");
        r.convolution[std::max(r.convolutions - 1, 0)].pool = 2;
        --height;
        --width;
        break;
      case LayerKind::dense: {
        const int in = dense_layers == 0 ? channels * height * width : r.dense.hidden;
        if (dense_layers == 0) {
          r.dense.in = in;
          r.dense.hidden = l.out;
          r.dense.channels = channels;
          r.dense.pixels = height * width;
          r.dense.weight = r.parameters;
          r.dense.bias = r.parameters + in * l.out;
        } else {
          r.dense.outputs = l.out;
          r.dense.last_weight = r.parameters;
          r.dense.last_bias = r.parameters + in * l.out;
        }
        r.parameters += (in + 1) * l.out;
        ++dense_layers;
        break;
      }
    }
  }
  if (r.convolutions == 0 || dense_layers != 2)
    refuse("other layers than convolutions and two dense ones");
  if (r.functions != r.convolutions + 1) refuse("a layer without a function, or the last with one");
  if (r.dense.in % 16 != 0 || r.dense.hidden % 16 != 0 || r.dense.hidden > 64)
    refuse("a dense layer of other sizes than multiples of 16, or above 64 outputs");
  if (r.dense.outputs > 32) refuse("more than 32 outputs");
  if (r.refusal != nullptr) return r;
  // Finds, from the last convolution to the first, the outputs of each convolution that the next
  // layer reads. Only these are computed.
  int seen_height = height, seen_width = width;
  for (int i = r.convolutions - 1; i >= 0; --i) {
    ConvStage& s = r.convolution[i];
    s.out_height = seen_height + s.pool - 1;
    s.out_width = seen_width + s.pool - 1;
    if (s.pooled_width() > 16) refuse("more than 16 windows in a row");
    lay_out(s, i > 0);
    if (s.slots > kMaxSlots) refuse("more output pixels than a table holds");
    seen_height = std::min(s.height, s.stride * (s.out_height - 1) + s.kernel - s.pad);
    seen_width = std::min(s.width, s.stride * (s.out_width - 1) + s.kernel - s.pad);
    for (int phase = 0; phase < s.phases; ++phase) {
      const PhasePixels p = phase_pixels(s, seen_height, seen_width, phase);
      s.back_slots = std::max(s.back_slots, slot_order(p.height, p.width, s.dy_row).slots);
    }
  }
  return r;
}

}  // namespace cudp::fused
