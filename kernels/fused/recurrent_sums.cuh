#pragma once
// Sum of clipped gradients in the fused kernel for texts: a text's gradient in the threads'
// registers, the norm of exactly these numbers, the clip factors, and a thread's part of the
// block's sum. The order of all additions depends on the text alone.
#include "kernels/common/copy_async.cuh"
#include "kernels/fused/recurrent_block.cuh"
#include "kernels/fused/sums.cuh"

// Offsets in shared memory are computed in 32 bits. They are below 2^18, so no product overflows.
// NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result)

namespace cudp::fused::inline CUDP_SIMT {

/// Starts to copy the deltas (gradients of the gates' pre-activations) of a piece of text e, the
/// positions from `first` on, to shared memory. Rows past the text's end become 0. P: the kernel's
/// TextPlan for one network. t: the group's texts.
template <class P>
__device__ __forceinline__ void fetch_deltas(TextSpace<P>& s, const Texts<P>& t, int e, int first) {
  constexpr int kChunks = 2 * P::kGateRows / kChunk;
  const int rows = s.length[e] - first, filled = round_up_to(rows, 16);
  const int count = filled < P::kPiece ? filled : P::kPiece;
  const auto* const from = reinterpret_cast<const float*>(t.gates(e)) + first * P::kGateRows / 2;
  for (int i = thread_number(); i < count * kChunks; i += P::kThreads) {
    const int row = i / kChunks, chunk = i % kChunks;
    copy_four_async(reinterpret_cast<float*>(s.deltas + row * P::kDeltaRow + chunk * kChunk),
                    from + row * P::kGateRows / 2 + 4 * chunk, row < rows);
  }
}

/// Backward pass through the inputs of the steps, for a piece of text e: the positions from `first`
/// on. The steps' inputs are the outputs of a dense layer that is applied to each word. Computes
/// the gradient of that layer's pre-activations: W^T times the deltas (the gradients of the gates),
/// times the activation's derivative, where W is the matrix of weights of the steps' inputs. P: the
/// kernel's TextPlan for one network. t: the group's texts.
template <class P>
__device__ __forceinline__ void words_back(TextSpace<P>& s, const Texts<P>& t, int e, int first) {
  const Lane l;
  const AnyFunction f = s.functions[0];
  const int tiles = round_up_to(s.length[e] - first, 16) / 8;
  for (int tile = warp_number(); tile < tiles && tile < P::kPiece / 8; tile += P::kWarps) {
    float d[P::kWordTiles][4];
    CUDP_UNROLL for (int j = 0; j < P::kWordTiles; ++j) { clear(d[j]); }
    const unsigned char* const delta =
        s.deltas + (8 * tile + l.row) * P::kDeltaRow + l.matrix * kChunk;
    const unsigned char* const w =
        s.inputs + (l.matrix / 2 * 8 + l.row) * P::kInputRow + l.matrix % 2 * kChunk;
    CUDP_UNROLL_BY(2) for (int k = 0; k < P::kGateRows / 32; ++k) {
      u32 terms[4];
      ldmatrix_x4(terms, delta + 64 * k);
      CUDP_UNROLL for (int half = 0; half < 2; ++half) {
        CUDP_UNROLL for (int j = 0; j < P::kWordTiles; ++j) {
          u32 weights[4];
          ldmatrix_x4_trans(weights, w + (2 * k + half) * 16 * P::kInputRow + 32 * j);
          multiply_add_half(d[j], weights, terms, half);
        }
      }
    }
    CUDP_UNROLL for (int j = 0; j < P::kWordTiles; ++j) {
      CUDP_UNROLL for (int i = 0; i < 2; ++i) {
        const int number = 16 * j + l.g + 8 * i, position = 8 * tile + 2 * l.t;
        const unsigned char* const y = t.row(e, first + position + 1) + 2 * number;
        const float now = low_half(*reinterpret_cast<const std::uint16_t*>(y));
        const float next = low_half(*reinterpret_cast<const std::uint16_t*>(y + P::kRow));
        *reinterpret_cast<u32*>(s.back + number * P::kBackRow + 2 * position) =
            halves(d[j][2 * i] * f.derivative(now), d[j][2 * i + 1] * f.derivative(next));
      }
    }
  }
}

/// A thread's part of the block's sum of gradients. For each of its kNumbers partial derivatives,
/// `sum` has the sum over the added texts, as an integer that counts multiples of the sum's grid.
/// Each addition also adds the constant kToUnitsBits, a by-product of rounding a float to an
/// integer (kernels/common/fixed_point.hpp). So store() subtracts it `added` times. P: the kernel's
/// TextPlan for one network.
template <class P>
struct TextSums {
  u32 sum[P::kNumbers];
  u32 added = 0;  ///< number of texts added to sum

  __device__ __forceinline__ TextSums() { clear(sum); }

  /// Calls body(k, layer, parameter) for each partial derivative that this thread holds. k: index
  /// among the thread's partial derivatives. layer: index of the layer, 0 to 3. parameter: index
  /// among the parameters, or -1 if the tile has no parameter at this position.
  template <class Body>
  static __device__ __forceinline__ void for_each_number(const Body& body) {
    const Lane l;
    const int warp = warp_number();
    for_constants<P::kGateNumbers>([&](auto k) {
      constexpr int i = k % 4, n = k / 4 % P::kGateColumns, m = k / 4 / P::kGateColumns;
      body(k, 1,
           P::gate_parameter(16 * (warp * P::kGateTiles + m) + l.g + 8 * (i / 2),
                             8 * n + 2 * l.t + i % 2));
    });
    for_constants<P::kWordNumbers>([&](auto k) {
      constexpr int i = k % 4, m = k / 4 % P::kWordTiles, q = k / 4 / P::kWordTiles;
      body(P::kGateNumbers + k, 0,
           P::word_parameter(16 * m + l.g + 8 * (i / 2),
                             8 * (warp + q * P::kWarps) + 2 * l.t + i % 2));
    });
    constexpr int kBias = P::kGateNumbers + P::kWordNumbers;
    const int thread = thread_number();
    for_constants<P::kBiasOwned>([&](auto k) {
      const int n = thread + k * P::kThreads;
      body(kBias + k, 1, n < P::kBiases ? P::bias_parameter(n) : -1);
    });
    for_constants<P::kSmallOwned>([&](auto k) {
      const int n = thread + k * P::kThreads;
      const auto small = P::small_number(n);
      body(kBias + P::kBiasOwned + k, small.layer, n < P::kSmall ? small.parameter : -1);
    });
  }

  /// Adds a piece of text e, the positions from `first` on, to the thread's partial derivatives d
  /// with respect to the weights [W U]. They are the product of the deltas and the text's rows
  /// (inputs and states). multiply_words() does the same for the words' layer, with TextSpace::back
  /// and the word vectors. t: the group's texts.
  static __device__ __forceinline__ void multiply_gates(TextSpace<P>& s, const Texts<P>& t, int e,
                                                        int first, float (&d)[P::kNumbers]) {
    const Lane l;
    const int steps = steps_of(s, e, first);
    const int row = warp_number() * P::kGateTiles * 16;
    const unsigned char* delta =
        s.deltas + (l.matrix / 2 * 8 + l.row) * P::kDeltaRow + 2 * row + l.matrix % 2 * kChunk;
    const unsigned char* x = t.row(e, first + 1 + l.matrix % 2 * 8 + l.row) + l.matrix / 2 * kChunk;
    // The states before a step are those of the previous position, or of the next one in the
    // reverse direction.
    const int direction = row / P::kGates;
    const int states =
        (direction == 0 ? -P::kRow : P::kRow) + 2 * P::kWords + direction * 2 * P::kHidden;
    for (int k = 0; k < steps; ++k) {
      u32 rows[P::kGateTiles][4];
      CUDP_UNROLL for (int m = 0; m < P::kGateTiles; ++m) {
        ldmatrix_x4_trans(rows[m], delta + 32 * m);
      }
      for_constants<P::kGateColumns / 2>([&](auto pair) {
        constexpr int n = 2 * pair;
        u32 columns[4];
        ldmatrix_x4_trans(columns,
                          8 * n < P::kWords ? x + 16 * n : x + states + 16 * n - 2 * P::kWords);
        for_constants<P::kGateTiles>([&](auto m) {
          for_constants<2>([&](auto half) {
            constexpr int at = 4 * (m * P::kGateColumns + n + half);
            multiply_to<at>(d, rows[m], columns, half);
          });
        });
      });
      delta += 16 * P::kDeltaRow;
      x += 16 * P::kRow;
    }
  }
  static __device__ __forceinline__ void multiply_words(TextSpace<P>& s, int e, int first,
                                                        float (&d)[P::kNumbers]) {
    const Lane l;
    const int steps = steps_of(s, e, first), warp = warp_number();
    const unsigned char* back =
        s.back + (l.matrix % 2 * 8 + l.row) * P::kBackRow + l.matrix / 2 * kChunk;
    const unsigned char* vectors = s.vectors + l.lane % 16 * P::kVectorRow + warp * kChunk;
    for (int k = 0; k < steps; ++k) {
      u32 rows[P::kWordTiles][4];
      CUDP_UNROLL for (int m = 0; m < P::kWordTiles; ++m) {
        ldmatrix_x4(rows[m], back + m * 16 * P::kBackRow);
      }
      for_constants<P::kWordOwned>([&](auto q) {
        if (warp + q * P::kWarps >= P::kWordColumns) return;
        u32 columns[2];
        ldmatrix_x2_trans(columns, vectors + q * P::kWarps * kChunk);
        for_constants<P::kWordTiles>([&](auto m) {
          constexpr int at = P::kGateNumbers + 4 * (q * P::kWordTiles + m);
          const u32 both[4] = {columns[0], columns[1], 0, 0};
          multiply_to<at>(d, rows[m], both, 0);
        });
      });
      back += 32;
      vectors += 16 * P::kVectorRow;
    }
  }

  /// Computes those partial derivatives of the thread that do not come from matrix products: with
  /// respect to the biases of the recurrent layer, and to the parameters of the last two layers.
  /// For a GRU, also sets to 0 the elements of the matrix product that belong to no weight
  /// (gate_parameter() is -1). s: the block's shared memory. t: the group's texts. e: number of the
  /// text in the group. d: the thread's partial derivatives for the text.
  static __device__ __forceinline__ void make_others(TextSpace<P>& s, const Texts<P>& t, int e,
                                                     float (&d)[P::kNumbers]) {
    constexpr int kBias = P::kGateNumbers + P::kWordNumbers;
    const int thread = thread_number();
    if constexpr (P::kIsGru) {
      const int gate = Lane().g % 4;
      for_constants<P::kGateNumbers>([&](auto k) {
        constexpr bool of_inputs = 8 * (k / 4 % P::kGateColumns) < P::kWords;
        if (gate == (of_inputs ? 3 : 0)) d[k] = 0.0f;
      });
    }
    for_constants<P::kBiasOwned>([&](auto k) {
      const int n = thread + k * P::kThreads;
      d[kBias + k] = n < P::kBiases ? t.delta_sums(e)[P::bias_row(n)] : 0.0f;
    });
    for_constants<P::kSmallOwned>([&](auto k) {
      const int n = thread + k * P::kThreads;
      const auto small = P::small_number(n < P::kSmall ? n : 0);
      d[kBias + P::kBiasOwned + k] = n < P::kSmall ? s.text[e][small.a] * s.text[e][small.b] : 0.0f;
    });
  }

  /// Replaces each partial derivative g in d, of text e, with w = (g - m) / scale (coordinate-wise
  /// clipping). a: arguments of the launch. s: the block's shared memory.
  static __device__ __forceinline__ void transform(const FusedSum& a, TextSpace<P>& s, int e,
                                                   float (&d)[P::kNumbers]) {
    const float inverse = s.text[e][P::kText.inverse];
    for_each_number([&](int k, int layer, int parameter) {
      d[k] = transformed(a.transform, d[k], layer < 2 ? inverse : 1.0f, parameter);
    });
  }

  /// Writes, for each layer, the sum of the squares of the warp's partial derivatives (d in each
  /// thread) to s.parts[warp].
  static __device__ __forceinline__ void square(TextSpace<P>& s, const float (&d)[P::kNumbers]) {
    Four squares{};
    for_each_number([&](int k, int layer, int) {
      CUDP_UNROLL for (int n = 0; n < P::kLayers; ++n) {
        if (layer == n) squares.v[n] = ScalarLanes::fma(d[k], d[k], squares.v[n]);
      }
    });
    CUDP_UNROLL for (int n = 0; n < P::kLayers; ++n) { squares.v[n] = warp_sum(squares.v[n]); }
    const int warp = warp_number();
    if (thread_number() % kWarp == 0) s.parts[warp] = squares;
  }

  /// Computes the norm and clip factors of text e, decides whether it is added, adds it, and
  /// reports on it. Every thread computes the same decision. prefetched: index of the text in the
  /// block's PrefetchedCandidates. a: arguments of the launch. group: the examples that the block
  /// processes at once. d: the thread's partial derivatives for the text.
  __device__ __forceinline__ void decide_and_add(const FusedSum& a, TextSpace<P>& s,
                                                 const Group& group, int e, int prefetched,
                                                 const float (&d)[P::kNumbers]) {
    const float* const text = s.text[e];
    const float inverse = text[P::kText.inverse];
    float squares[P::kLayers], factors[P::kLayers];
    clear(squares);
    CUDP_UNROLL for (int w = 0; w < P::kWarps; ++w) {
      const Four part = s.parts[w];
      CUDP_UNROLL for (int n = 0; n < P::kLayers; ++n) { squares[n] += part.v[n]; }
    }
    if constexpr (!P::kTransforms) {
      // In float32, squares and sums below 2^-126 lose bits or become 0. The factor 1 / s^2, with s
      // the scale of the text's gradients, may magnify this loss. So kLoss, the largest possible
      // loss, is added before. This also bounds `factor * inverse`.
      constexpr float kLoss = static_cast<float>(P::kParameters + 4 * P::kThreads) * 0x1p-126f;
      CUDP_UNROLL for (int n = 0; n < 2; ++n) {
        squares[n] = (squares[n] + kLoss) * (inverse * inverse);
      }
    }
    const FusedTask task = P::kTransforms ? FusedTask::clip : a.task;
    const bool is_first = thread_number() == 0;
    bool adds = group.has(e);
    if (task == FusedTask::clip) {
      adds = clip_factors(clip_settings(a.clip, *a.sum_scale), squares, P::kLayers, factors) <
                 INFINITY &&
             adds;
    } else {
      float square = 0.0f;
      CUDP_UNROLL for (int n = 0; n < P::kLayers; ++n) { square += squares[n]; }
      if (adds && is_first) a.norms[group.number(a, e)] = kept_norm(square);
      if (task == FusedTask::norms) return;
      const float factor = adds ? acceptance_factor(*a.accept.rule, s.candidates.seen[prefetched],
                                                    s.candidates.word[prefetched], square)
                                : 0.0f;
      CUDP_UNROLL for (int n = 0; n < P::kLayers; ++n) { factors[n] = factor; }
      adds = adds && factor > 0.0f;
    }
    if (is_first && group.has(e))
      report_example(a, group.at(e), text[P::kText.loss], P::kLayers, squares, factors);
    if (!adds) return;
    ++added;
    const float unit = a.sum_scale->inverse_grid * text[P::kText.weight];
    float scale[P::kLayers];
    CUDP_UNROLL for (int n = 0; n < P::kLayers; ++n) {
      scale[n] = factors[n] * unit * (n < 2 && !P::kTransforms ? inverse : 1.0f);
    }
    for_each_number([&](int k, int layer, int) {
      float by = scale[0];
      CUDP_UNROLL for (int n = 1; n < P::kLayers; ++n) { by = layer == n ? scale[n] : by; }
      sum[k] += ScalarLanes::bits(ScalarLanes::fma(d[k], by, kToUnits));
    });
  }

  /// Writes the block's sums of gradients to `slab`, one integer per parameter, in the order of the
  /// parameters.
  __device__ __forceinline__ void store(std::int32_t* slab) const {
    for_each_number([&](int k, int, int parameter) {
      if (parameter >= 0)
        slab[parameter] = static_cast<std::int32_t>(sum[k] - added * kToUnitsBits);
    });
  }

 private:
  /// Returns the number of steps of a matrix product, 16 positions each, for one piece of a text:
  /// its positions from `first` on, at most P::kPiece of them. e: index of the text among those of
  /// the block. s: the block's shared memory.
  static __device__ __forceinline__ int steps_of(const TextSpace<P>& s, int e, int first) {
    const int steps = (s.length[e] - first + 15) / 16;
    return steps < P::kPiece / 16 ? steps : P::kPiece / 16;
  }
  template <int at>
  static __device__ __forceinline__ void multiply_to(float (&d)[P::kNumbers], const u32 (&a)[4],
                                                     const u32 (&b)[4], int half) {
    float tile[4] = {d[at], d[at + 1], d[at + 2], d[at + 3]};
    multiply_add_half(tile, a, b, half);
    CUDP_UNROLL for (int i = 0; i < 4; ++i) { d[at + i] = tile[i]; }
  }
};

}  // namespace cudp::fused::inline CUDP_SIMT
// NOLINTEND(bugprone-implicit-widening-of-multiplication-result)
