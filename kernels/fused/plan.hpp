#pragma once
// Layout of the fused kernel (fused_kernel.cuh) for a list of layers, computed at compile time:
// where every operand of every product is in shared memory, which warp computes which tile of a
// weight gradient, and how many examples a block processes at once (E). The layers and the terms
// are those of stages.hpp.
#include <algorithm>
#include <array>

#include "kernels/fused/stages.hpp"

namespace cudp::fused {

/// Selects the matrix products whose operands are each split into the sum of two fp16 numbers,
/// about 22 bits, for more accuracy. forward: the products of convolutions in the forward pass, so
/// that max pools choose the same pixels as in float32. all: every product.
enum class Split { forward, all };

/// Type of an example's features. bytes: whole numbers 0..255, which fp16 represents exactly.
/// numbers: float32, each split into two fp16 numbers in the forward pass.
enum class Input { bytes, numbers };

/// Period of the banks of shared memory [bytes]: addresses this far apart are in the same bank.
inline constexpr int kBanks = 128;
/// Shared memory that one thread block may use on an H100 [bytes].
inline constexpr int kMaxShared = 227 * 1024;

/// Numbers of the stages of computation, in the order in which a thread block executes them for a
/// group of examples, with barriers between them: product and pool of each convolution (1, 2, 3, 4,
/// ...), hidden layer, last layer, backward pass of the hidden layer, backward pass of the pool and
/// weight gradient of each convolution, norm of the gradient, sum.
struct Phases {
  int convolutions;
  constexpr int product(int i) const { return 2 * i + 1; }
  constexpr int pool(int i) const { return 2 * i + 2; }
  constexpr int hidden() const { return 2 * convolutions + 1; }
  constexpr int head() const { return 2 * convolutions + 2; }
  constexpr int hidden_back() const { return 2 * convolutions + 3; }
  constexpr int pool_back(int i) const { return 2 * convolutions + 4 + 2 * (convolutions - 1 - i); }
  constexpr int gradient(int i) const { return pool_back(i) + 1; }
  constexpr int norm() const { return 4 * convolutions + 4; }
  constexpr int sum() const { return 4 * convolutions + 5; }
};

/// Position of an array in shared memory, and the stages (Phases) `first` to `last` in which it is
/// needed. Arrays that are not needed at the same time may overlap.
struct Plane {
  int bytes = 0;   ///< size for all examples of the group
  int stride = 0;  ///< distance between consecutive examples [bytes]
  int first = 0, last = 0;
  int at = 0;  ///< offset from the start of the first array [bytes]

  constexpr bool is_live_with(const Plane& o) const { return first <= o.last && o.first <= last; }
  constexpr bool overlaps(const Plane& o) const {
    return bytes > 0 && o.bytes > 0 && at < o.at + o.bytes && o.at < at + bytes;
  }
};

enum class Part { high, low };

/// The arrays in shared memory of a thread block. Each has a part for every example that the block
/// processes at once.
struct SharedLayout {
  /// Arrays of one convolution. In the shapes, `pixels` is the number of output pixels, `pooled`
  /// that of pixels after the pool, `out` the number of output channels, and `splits` the number of
  /// parts of a sum.
  struct Convolution {
    Plane input[2];  ///< inputs; fp16, high and low parts
    Plane y;         ///< float [splits][pixels][out], outputs before pool and activation
    Plane flags;     ///< bits: which pixel of each pooling window was the maximum
    Plane gradient;  ///< float [pooled][out], gradient of the pooled outputs
    Plane dy[2];     ///< gradient of the outputs; fp16, high and low parts
  };
  std::array<Convolution, kMaxConvolutions> convolution{};
  Plane raw;  ///< features of the next group of examples, if they are bytes
  /// Inputs of the hidden layer, [pixels][channels]. Each is the sum of two fp16 numbers: the high
  /// parts are in the first array, the low parts in the second.
  Plane hidden_in[2];
  Plane partial;         ///< float [16][hidden], the warps' partial sums of the hidden layer
  Plane hidden_back[2];  ///< gradient of the hidden layer; fp16 [hidden], high and low parts
  Plane vector;          ///< floats, as described by VectorOffsets
  Plane norm_parts;      ///< float, partial sums of a squared norm
  int bytes = 0;         ///< size of all arrays together

  template <class Body>
  constexpr void for_each(const Body& body) {
    for (Convolution& c : convolution) {
      for (Plane* p : {&c.input[0], &c.input[1], &c.y, &c.flags, &c.gradient, &c.dy[0], &c.dy[1]})
        body(*p);
    }
    for (Plane* p : {&raw, &hidden_in[0], &hidden_in[1], &partial, &hidden_back[0], &hidden_back[1],
                     &vector, &norm_parts})
      body(*p);
  }
};

/// Offsets of single numbers and small vectors in the array of floats (SharedLayout::vector) that
/// each example has in shared memory [floats].
struct VectorOffsets {
  int one = 0;   ///< the number 1, which stands for the input of a bias
  int bias = 0;  ///< gradients of the convolutions' biases, one convolution after the other
  int gradient_hidden = 0, gradient = 0, hidden = 0;
  int inverse = 0;  ///< 1 / (power of two that the gradients are scaled by)
  int weight = 0;   ///< class weight by which clip factors are multiplied
  /// Offset of four squared norms: of the inputs of the hidden layer, of the gradient of its
  /// outputs, of the inputs of the last layer, and of the gradient of its outputs.
  int squares = 0;
  int loss = 0;
  int size = 0;
};

/// Offsets of the partial sums that make up an example's squared gradient norm, in the order in
/// which they are added. For each convolution there is one per unit (the part of the weight
/// gradient that a warp computes at once), then one for its bias. With coordinate-wise clipping
/// there are also 16 for the hidden layer (one per warp), and 16 per layer for the biases and the
/// last layer's weights.
struct NormParts {
  std::array<int, kMaxConvolutions> first{};
  std::array<int, kMaxConvolutions> count{};
  int hidden = 0, small = 0;
  int size = 0;
};

/// The layout and all constants of one fused kernel. Network: list of layers. split_: which
/// products have split operands. input_: type of the features. examples_: number of examples that a
/// block processes at once. transforms_: whether gradients are transformed before clipping
/// (coordinate-wise clipping).
template <class Network, Split split_, Input input_, int examples_, bool transforms_>
struct Plan {
  static constexpr Split kSplit = split_;
  static constexpr Input kInput = input_;
  static constexpr int kExamples = examples_;
  static constexpr bool kTransforms = transforms_;
  static constexpr Stages kStages = stages_of(Network::kLayers);
  static_assert(kStages.refusal == nullptr, "no fused kernel for these layers");
  static_assert(kInput == Input::numbers || kStages.features % kChunk == 0,
                "bytes are copied by chunks");
  static constexpr int kConvolutions = kStages.convolutions;
  static constexpr int kLayers = kConvolutions + 2;
  static constexpr DenseStages kDense = kStages.dense;
  static constexpr Phases kPhases{kConvolutions};
  static constexpr bool kAll = kSplit == Split::all;

  static constexpr ConvStage stage(int i) { return kStages.convolution[i]; }
  /// Returns whether each input of convolution i is the sum of two fp16 numbers in the forward
  /// pass. (input_is_split_back() returns the same for the backward pass.)
  static constexpr bool input_is_split(int i) { return i > 0 || kInput == Input::numbers; }
  static constexpr bool input_is_split_back(int i) { return kAll && input_is_split(i); }

  static constexpr SlotOrder out_slots(int i) {
    const ConvStage s = stage(i);
    return slot_order(s.out_height, s.out_width, s.row);
  }
  static constexpr PhasePixels back_pixels(int i, int phase) {
    const ConvStage before = stage(i - 1);
    return phase_pixels(stage(i), before.pooled_height(), before.pooled_width(), phase);
  }

  static constexpr int channels_before(int i) {
    int n = 0;
    for (int k = 0; k < i; ++k) n += stage(k).out;
    return n;
  }
  static constexpr int kBiases = channels_before(kConvolutions);

  static constexpr VectorOffsets vector_offsets() {
    VectorOffsets v;
    int at = 4;
    const auto take = [&](int n) {
      const int here = at;
      at += round_up_to(n, 4);
      return here;
    };
    v.bias = take(kBiases);
    v.gradient_hidden = take(kDense.hidden);
    v.gradient = take(kDense.outputs);
    v.hidden = take(kDense.hidden);
    v.inverse = take(2);
    v.weight = v.inverse + 1;
    v.squares = take(4);
    v.loss = take(1);
    v.size = at;
    return v;
  }
  static constexpr VectorOffsets kVector = vector_offsets();

  static constexpr NormParts norm_parts() {
    NormParts p;
    for (int i = 0; i < kConvolutions; ++i) {
      p.first[i] = p.size;
      p.count[i] = stage(i).units + (kTransforms ? 0 : 1);
      p.size += p.count[i];
    }
    p.hidden = p.size;
    if (kTransforms) p.size += kWarps;
    p.small = p.size;
    if (kTransforms) p.size += kLayers * kWarps;
    return p;
  }
  static constexpr NormParts kNormParts = norm_parts();

  // Small numbers: partial derivatives with respect to the biases and to the last layer's weights.
  // They belong to no tile of a matrix product. Thread t computes those with indices t, t + 512,
  // ...
  static constexpr int kSmall =
      kBiases + kDense.hidden + kDense.outputs * kDense.hidden + kDense.outputs;
  static constexpr int kSmallOwned = quotient_up(kSmall, kThreads);
  struct Small {
    int layer, parameter;
    int a, b;  ///< offsets in the example's vector of the two numbers whose product is the gradient
  };
  /// Returns the n-th "small" parameter (biases and the last layer's weights), and the two numbers
  /// whose product is the partial derivative with respect to it. Callers use the default i = 0. The
  /// function calls itself with i + 1 for the next convolution; n then counts from the first bias
  /// of that convolution. i is a template argument, because device code can use the plan in
  /// constant expressions only.
  template <int i = 0>
  static constexpr Small small_number(int n) {
    if constexpr (i < kConvolutions) {
      constexpr ConvStage c = stage(i);
      constexpr int kFirst = kVector.bias + channels_before(i);
      if (n < c.out) return {i, c.bias + n, kFirst + n, kVector.one};
      return small_number<i + 1>(n - c.out);
    } else {
      if (n < kDense.hidden)
        return {kConvolutions, kDense.bias + n, kVector.gradient_hidden + n, kVector.one};
      n -= kDense.hidden;
      if (n < kDense.outputs * kDense.hidden)
        return {kConvolutions + 1, kDense.last_weight + n, kVector.gradient + n / kDense.hidden,
                kVector.hidden + n % kDense.hidden};
      n -= kDense.outputs * kDense.hidden;
      return {kConvolutions + 1, kDense.last_bias + n, kVector.gradient + n, kVector.one};
    }
  }

  /// Returns the index of the first sum for convolution i among the integer sums of partial
  /// derivatives that a thread keeps in registers. A thread's sums are those of each convolution's
  /// weights, then of the hidden layer's weights, then of biases and the last layer's weights.
  static constexpr int first_sum(int i) {
    int n = 0;
    for (int k = 0; k < i; ++k) n += stage(k).sums(kExamples);
    return n;
  }
  static constexpr int kHiddenSums = first_sum(kConvolutions);
  static constexpr int kSmallSums = kHiddenSums + 32 * kDense.owned();
  static constexpr int kSums = kSmallSums + kSmallOwned;

  static constexpr SharedLayout make_layout() {
    SharedLayout p;
    const auto plane = [](int bytes, int first, int last) {
      const int stride = round_up_to(bytes, kBanks);
      return Plane{kExamples * stride, stride, first, last};
    };
    // Returns an array with a row of `words` 32-bit words per example, for the activations of dense
    // layers. The distance between rows is not rounded up to kBanks, so that lanes that read the
    // same word of different examples read different banks.
    const auto rows = [](int words, int first, int last) {
      return Plane{round_up_to(kExamples * words * 4, kBanks), words * 4, first, last};
    };
    const int end = kPhases.sum();
    for (int i = 0; i < kConvolutions; ++i) {
      const ConvStage s = stage(i);
      SharedLayout::Convolution& c = p.convolution[i];
      // If an input has padding, its zeros are written only once, at the start. So no other array
      // may overlap it at any stage.
      const bool keeps_zeros = i == 0 || s.pad > 0;
      const int made = keeps_zeros ? 0 : kPhases.pool(i - 1);
      c.input[0] = plane(s.input_bytes(), made, end);
      if (input_is_split(i))
        c.input[1] = plane(s.input_bytes(), made,
                           keeps_zeros || input_is_split_back(i) ? end : kPhases.product(i));
      c.y = plane(s.splits * s.pixels() * s.out * 4, kPhases.product(i), kPhases.pool(i));
      if (s.pool > 1)
        c.flags = plane((s.out_height + s.pooled_height()) * s.out / 2 * 4, kPhases.pool(i),
                        kPhases.pool_back(i));
      c.gradient = plane(s.pooled() * s.out * 4,
                         i + 1 < kConvolutions ? kPhases.gradient(i + 1) : kPhases.hidden_back(),
                         kPhases.pool_back(i));
      const int dy_first = s.border > 0 ? 0 : kPhases.pool_back(i);
      const int dy_last = s.border > 0 ? end : s.has_example_owners ? kPhases.gradient(i) : end;
      c.dy[0] = plane(s.dy_bytes(), dy_first, dy_last);
      if (kAll) c.dy[1] = plane(s.dy_bytes(), dy_first, dy_last);
    }
    const int pooled = kPhases.pool(kConvolutions - 1);
    if (kInput == Input::bytes) p.raw = plane(kStages.features, 0, end);
    p.hidden_in[0] = rows(kDense.input_pitch(), pooled, end);
    if (kAll) p.hidden_in[1] = rows(kDense.input_pitch(), pooled, end);
    p.partial = plane(kWarps * kDense.hidden * 4, kPhases.hidden(), kPhases.head());
    for (int part = 0; part < (kAll ? 2 : 1); ++part)
      p.hidden_back[part] = rows(kDense.gradient_pitch(), kPhases.head(), kPhases.hidden_back());
    p.vector = plane(kVector.size * 4, 0, end);
    p.norm_parts = plane(kNormParts.size * 4, 0, end);
    // Gives each array the lowest offset that is free while it is needed, the largest array first.
    std::array<Plane*, 40> order{};
    int n = 0;
    p.for_each([&](Plane& x) {
      if (x.bytes > 0) order[n++] = &x;
    });
    for (int i = 0; i < n; ++i)
      for (int k = i + 1; k < n; ++k)
        if (order[k]->bytes > order[i]->bytes) std::swap(order[i], order[k]);
    for (int i = 0; i < n; ++i) {
      Plane& x = *order[i];
      for (bool moved = true; moved;) {
        moved = false;
        for (int k = 0; k < i; ++k)
          if (x.is_live_with(*order[k]) && x.overlaps(*order[k])) {
            x.at = order[k]->at + order[k]->bytes;
            moved = true;
          }
      }
      p.bytes = std::max(p.bytes, x.at + x.bytes);
    }
    return p;
  }
  static constexpr SharedLayout kLayout = make_layout();
  /// Returns kLayout by value, for device code, which must not refer to the static member kLayout
  /// itself.
  static consteval SharedLayout layout() { return kLayout; }
};

}  // namespace cudp::fused
