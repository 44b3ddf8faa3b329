#pragma once
// LSTM and GRU like recurrent.cuh, but with matrix products by tensor cores, in fp16. States,
// deltas (gradients of the gates' pre-activations) and U, the weights of the states, are rounded to
// fp16 once; sums and the formulas of the cells are in float32. A warp computes eight units at a
// time. Forward, rows of a product are gates of these units and columns are eight texts; so a lane
// has all gates of one unit of two texts in its own registers. Backward, rows are texts and columns
// units. A text's row or column depends on no other text. The summands of every sum are added in a
// fixed order.
#include "kernels/common/half_core.cuh"
#include "kernels/common/lanes.hpp"
#include "kernels/common/loss_exponent.cuh"
#include "kernels/layers/recurrent.cuh"

// Offsets are numbers of 32 bits: validate() ensures that those of a micro-batch are below 2^31,
// and those in shared memory are below 2^18.
// NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result)

namespace cudp::inline CUDP_SIMT {

/// Four fp16 numbers of one unit and text.
struct alignas(8) FourHalves {
  u32 word[2];
};

/// A lane's view of an LSTM or GRU kernel that uses tensor cores: the arrays in its block's shared
/// memory, and the units and texts for which this lane computes. back: true for the backward pass.
/// resident: whether a lane keeps its weights in registers, and the block has eight texts and all
/// units at once. Otherwise weights are read from memory for every step, for up to four times eight
/// texts. Cell: LstmCell or GruCell.
template <class Cell, bool back, bool resident>
struct HalfBlock : RecurrentTexts {
  static constexpr int kTiles = resident ? 1 : 4;  ///< largest number of groups of eight texts
  static constexpr int kProducts = back ? 1 : 2;   ///< forward: gates 0 and 1, gates 2 and 3
  static constexpr int kSteps = back ? 2 : 1;      ///< steps of a product for one slice
  static constexpr int kSlice = 16 * kSteps;       ///< number of summands that Weights are for
  static constexpr int kOwn = 4 * kSteps;          ///< of which a lane has this many
  static constexpr int kSlices =                   ///< in registers
      resident ? static_cast<int>(device::half_terms(device::kResidentUnits, back)) / kSlice : 1;
  /// Number of parts of a sum, which are added at its end. So tensor cores wait less for each
  /// other.
  static constexpr int kChains = resident ? (back ? 3 : 2) : 1;

  /// Weights for one slice of the summands, as operands of each product. Lane t has summands kOwn t
  /// and the next ones of the slice, in the order in which it loads those of a text with one
  /// instruction; word(k, r) is the pair of them in register r of step k. Forward, weights are the
  /// left operand: two gates of eight units, in index 2 r + gate. Backward they are the right one:
  /// eight units.
  using Weights = u32[kProducts][kSteps][back ? 2 : 4];
  static __device__ __forceinline__ constexpr int word(int k, int r) { return k + kSteps * r; }
  struct alignas(8 * kSteps) Own {
    u32 word[2 * kSteps];
  };
  using Sums = float[kChains][kTiles][kProducts][4];

  int g, t;        ///< lane / 4 and lane % 4
  int first_unit;  ///< first unit of the warp; others are a.plan.units apart
  int terms;       ///< number of summands, a multiple of kSlice
  int pitch;       ///< distance between texts in `steps` [fp16 numbers]
  /// [examples][pitch], states of a step; backward: four deltas for each unit, times a power of two
  std::uint16_t* steps[2];
  /// [hidden][examples]; forward: what a step keeps, c of an LSTM or h of a GRU; backward: the
  /// gradient that goes to the previous step without passing the gates.
  float* carry;
  float* total;  ///< [hidden][examples], forward only: sum of the states over steps

  __device__ __forceinline__ HalfBlock(const device::RecurrentPass& pass, float* shared)
      : RecurrentTexts(pass) {
    const auto thread = static_cast<int>(threadIdx.x);
    g = thread % kWarp / 4;
    t = thread % 4;
    first_unit = thread / kWarp * 8;
    terms = static_cast<int>(device::half_terms(a.hidden, back));
    pitch = static_cast<int>(device::half_pitch(a.hidden, back));
    const int examples = a.plan.examples;
    steps[0] = reinterpret_cast<std::uint16_t*>(shared);
    steps[1] = steps[0] + examples * pitch;
    carry = shared + examples * pitch;
    total = carry + a.hidden * examples;
    length = reinterpret_cast<std::int32_t*>(back ? total : total + a.hidden * examples);
  }

  /// Clears shared memory, and loads the texts' lengths and the weights that are resident. Returns
  /// the largest length.
  __device__ __forceinline__ int begin(Weights (&own)[kSlices]) {
    const int longest = RecurrentTexts::begin(reinterpret_cast<float*>(steps[0]), a.plan.examples);
    if constexpr (resident) CUDP_UNROLL for (int m = 0; m < kSlices; ++m) {
        load(first_unit, m, own[m]);
      }
    return longest;
  }

  // The lane's i-th cell (0 or 1) in a tile of eight texts and eight units. Forward it has one unit
  // of two texts, backward two units of one text, as the results of its products are.

  __device__ __forceinline__ int text(int tile, int i) const {
    return 8 * tile + (back ? g : 2 * t + i);
  }
  __device__ __forceinline__ int unit(int first, int i) const {
    return first + (back ? 2 * t + i : g);
  }
  /// Returns the place of a unit's number for the block's text e in arrays [hidden][examples].
  __device__ __forceinline__ int at(int j, int e) const { return j * a.plan.examples + e; }
  __device__ __forceinline__ bool has_tile(int tile) const { return 8 * tile < a.plan.examples; }
  /// Returns whether text e of the block has step s, and the layer unit j.
  __device__ __forceinline__ bool is_active(int e, int s, int j) const {
    return e < a.plan.examples && s < length[e] && j < a.hidden;
  }

  /// Loads the weights of the units from `first` on for slice m of the summands.
  __device__ __forceinline__ void load(int first, int m, Weights& to) const {
    const int j = first + g;
    CUDP_UNROLL for (int p = 0; p < kProducts; ++p) {
      CUDP_UNROLL for (int half = 0; half < (back ? 1 : 2); ++half) {
        float v[kOwn];
        CUDP_UNROLL for (int i = 0; i < kOwn; ++i) {
          // Backward, summand 4 n + gate is that of a gate of unit n.
          const int summand = kSlice * m + kOwn * t + i;
          const int gate = back ? i % 4 : 2 * p + half;
          const int other = back ? summand / 4 : summand;
          const bool is_there = gate < Cell::kGates && j < a.hidden && other < a.hidden;
          const int row = gate * a.hidden + (back ? other : j);
          v[i] = is_there ? from[row * a.hidden + (back ? j : other)] : 0.0f;
        }
        CUDP_UNROLL for (int k = 0; k < kSteps; ++k) {
          CUDP_UNROLL for (int r = 0; r < 2; ++r) {
            const int i = 2 * word(k, r);
            to[p][k][back ? r : 2 * r + half] = halves(v[i], v[i + 1]);
          }
        }
      }
    }
  }

  /// Adds the products of slice m of the summands to the sums of one chain. numbers: states or
  /// deltas of the block's texts.
  __device__ __forceinline__ void add(const Weights& w, const std::uint16_t* numbers, int m,
                                      float (&sums)[kTiles][kProducts][4]) const {
    CUDP_UNROLL for (int n = 0; n < kTiles; ++n) {
      if (!has_tile(n)) continue;
      const Own own =
          *reinterpret_cast<const Own*>(numbers + (8 * n + g) * pitch + kSlice * m + kOwn * t);
      const auto& x = own.word;
      CUDP_UNROLL for (int k = 0; k < kSteps; ++k) {
        if constexpr (back) {
          // Rows are texts, of which there are eight. The lower half's results are not used.
          const u32 rows[4] = {x[word(k, 0)], x[1], x[word(k, 1)], x[3]};
          multiply_add(sums[n][0], rows, w[0][k]);
        } else {
          const u32 column[2] = {x[word(k, 0)], x[word(k, 1)]};
          CUDP_UNROLL for (int p = 0; p < kProducts; ++p) {
            multiply_add(sums[n][p], w[p][k], column);
          }
        }
      }
    }
  }

  /// Computes the products of the weights of the units from `first` on with `numbers`, the states
  /// or deltas of the block's texts. own: the weights, if they are resident. Whole warps must call
  /// it.
  __device__ __forceinline__ void multiply(int first, const Weights (&own)[kSlices],
                                           const std::uint16_t* numbers, Sums& sums) const {
    CUDP_UNROLL for (int c = 0; c < kChains; ++c) {
      CUDP_UNROLL for (int n = 0; n < kTiles; ++n) {
        CUDP_UNROLL for (int p = 0; p < kProducts; ++p) {
          CUDP_UNROLL for (int i = 0; i < 4; ++i) { sums[c][n][p][i] = 0.0f; }
        }
      }
    }
    if constexpr (resident) {
      CUDP_UNROLL for (int m = 0; m < kSlices; ++m) {
        if (kSlice * m < terms) add(own[m], numbers, m, sums[m % kChains]);
      }
    } else {
      for (int m = 0; kSlice * m < terms; ++m) {
        Weights w;
        load(first, m, w);
        add(w, numbers, m, sums[0]);
      }
    }
  }

  /// Returns the sum for gate `gate` (backward: 0) of the lane's cell i in tile n.
  static __device__ __forceinline__ float sum(const Sums& sums, int n, int gate, int i) {
    const int p = gate / 2, of = gate % 2 * 2 + i;
    float sum = sums[0][n][p][of];
    CUDP_UNROLL for (int c = 1; c < kChains; ++c) { sum += sums[c][n][p][of]; }
    return sum;
  }
};

/// Number of threads for which the compiler must leave registers, in a kernel of HalfBlock.
template <bool resident>
inline constexpr int kHalfThreads =
    resident ? device::kResidentUnits / 8 * kWarp : device::kRecurrentThreads;

// Forward pass of an LSTM or GRU with tensor cores. grid: groups of plan.examples texts,
// directions. block: one warp per 8 units of plan.units. dynamic smem: half_floats.
template <class Cell, bool resident>
__global__ void __launch_bounds__(kHalfThreads<resident>, 1)
    half_recurrent_kernel(device::RecurrentPass a) {
  CUDP_DYNAMIC_SMEM(float, shared);
  if (static_cast<int>(blockIdx.x) * a.plan.examples >= live_examples(a.batch)) return;
  using Block = HalfBlock<Cell, false, resident>;
  Block b(a, shared);
  const int hidden = a.hidden;
  typename Block::Weights own[Block::kSlices];
  const int longest = b.begin(own);
  float bias[Cell::kGates], state_bias[Cell::kGates];
  const auto load_biases = [&](int j) {
    CUDP_UNROLL for (int gate = 0; gate < Cell::kGates; ++gate) {
      bias[gate] = j < hidden ? b.bias[gate * hidden + j] : 0.0f;
      state_bias[gate] = j < hidden && !Cell::kIsLstm ? b.state_bias[gate * hidden + j] : 0.0f;
    }
  };
  // The gates' pre-activations, see step_forward(): at first W x, the parts of the inputs.
  struct Inputs {
    float x[Block::kTiles][2][4];
  };
  const auto fetch = [&](Inputs& to, int j, int s) {
    CUDP_UNROLL for (int n = 0; n < Block::kTiles; ++n) {
      CUDP_UNROLL for (int i = 0; i < 2; ++i) {
        const int e = b.text(n, i);
        const bool is_there = b.is_active(e, s, j);
        const float* const gates = a.gates + (is_there ? b.line_of(e, s) * 4 * hidden + j : 0);
        CUDP_UNROLL for (int gate = 0; gate < 4; ++gate) {
          to.x[n][i][gate] = is_there && gate < Cell::kGates ? gates[gate * hidden] : 0.0f;
        }
      }
    }
  };
  [[maybe_unused]] Inputs next;
  if constexpr (resident) fetch(next, b.unit(b.first_unit, 0), 0);

  for (int s = 0; s < longest; ++s) {
    const std::uint16_t* const before = s % 2 == 0 ? b.steps[0] : b.steps[1];
    std::uint16_t* const after = s % 2 == 0 ? b.steps[1] : b.steps[0];
    int first = b.first_unit;
    do {
      const int j = b.unit(first, 0);
      // Global memory is read before the sums, or a whole step ahead if weights are resident, to
      // hide its latency.
      Inputs now;
      if constexpr (!resident) fetch(now, j, s);
      typename Block::Sums sums;
      b.multiply(first, own, before, sums);
      if constexpr (resident) now = next;
      CUDP_UNROLL for (int n = 0; n < Block::kTiles; ++n) {
        CUDP_UNROLL for (int i = 0; i < 2; ++i) {
          CUDP_UNROLL for (int gate = 0; gate < Cell::kGates; ++gate) {
            now.x[n][i][Cell::delta(gate)] += Block::sum(sums, n, gate, i);
          }
        }
      }
      if constexpr (resident) fetch(next, j, s + 1);
      load_biases(j);
      CUDP_UNROLL for (int n = 0; n < Block::kTiles; ++n) {
        CUDP_UNROLL for (int i = 0; i < 2; ++i) {
          const int e = b.text(n, i);
          if (!b.is_active(e, s, j)) continue;
          const int line = b.line_of(e, s), at = b.at(j, e);
          float kept = b.carry[at];
          float h = step_forward<Cell>(now.x[n][i], bias, state_bias, kept,
                                       a.gates + line * 4 * hidden + j, hidden);
          b.carry[at] = kept;
          if constexpr (Cell::kIsLstm) a.c[line * hidden + j] = kept;
          after[e * b.pitch + j] = static_cast<std::uint16_t>(halves(h, 0.0f));
          a.h[line * hidden + j] = h;
          const bool is_last = s == b.length[e] - 1;
          if (a.output == device::StatesOut::mean) {
            h += b.total[at];
            b.total[at] = h;
            h /= static_cast<float>(b.length[e]);
          }
          if (a.output == device::StatesOut::sequence || is_last) *b.output_of(e, s, j) = h;
        }
      }
      first += a.plan.units;
    } while (!resident && first < hidden);
    __syncthreads();
  }
  if (a.output == device::StatesOut::sequence) return;
  const int live = live_examples(a.batch);
  for (int first = b.first_unit; first < hidden; first += a.plan.units)
    CUDP_UNROLL for (int n = 0; n < Block::kTiles; ++n) {
      CUDP_UNROLL for (int i = 0; i < 2; ++i) {
        const int e = b.text(n, i), j = b.unit(first, i);
        if (b.has_tile(n) && b.first + e < live && b.length[e] == 0 && j < hidden)
          *b.output_of(e, 0, j) = 0.0f;
      }
    }
}

// Backward pass, tensor cores. grid, block, dynamic smem: as forward. A text's deltas are
// multiplied by a power of two before they are rounded to fp16 (loss_exponent), and sums divided by
// it.
template <class Cell, bool resident>
__global__ void __launch_bounds__(kHalfThreads<resident>, 1)
    half_recurrent_backward_kernel(device::RecurrentPass a) {
  CUDP_DYNAMIC_SMEM(float, shared);
  if (static_cast<int>(blockIdx.x) * a.plan.examples >= live_examples(a.batch)) return;
  using Block = HalfBlock<Cell, true, resident>;
  Block b(a, shared);
  const int hidden = a.hidden;
  typename Block::Weights own[Block::kSlices];
  const int longest = b.begin(own);
  u32 exponent[Block::kTiles];
  CUDP_UNROLL for (int n = 0; n < Block::kTiles; ++n) {
    const int e = b.text(n, 0);
    exponent[n] =
        b.is_active(e, 0, 0) ? loss_exponent(a.logit_gradients, a.outputs, b.first + e) : 127;
  }
  // What the forward step has left of a unit, and the gradient of its output.
  struct Saved {
    float gate[Block::kTiles][2][4];
    float now[Block::kTiles][2];     // c
    float before[Block::kTiles][2];  // c or h of the previous step
    float dy[Block::kTiles][2];
  };
  const auto fetch = [&](Saved& to, int first, int s) {
    const float* const states = Cell::kIsLstm ? a.c : a.h;
    CUDP_UNROLL for (int n = 0; n < Block::kTiles; ++n) {
      CUDP_UNROLL for (int i = 0; i < 2; ++i) {
        const int e = b.text(n, i), j = b.unit(first, i);
        const bool is_there = s >= 0 && b.is_active(e, s, j);
        const int line = is_there ? b.line_of(e, s) : 0;
        CUDP_UNROLL for (int gate = 0; gate < 4; ++gate) {
          to.gate[n][i][gate] = is_there ? a.gates[(line * 4 + gate) * hidden + j] : 0.0f;
        }
        to.now[n][i] = Cell::kIsLstm && is_there ? a.c[line * hidden + j] : 0.0f;
        to.before[n][i] = is_there && s > 0 ? states[b.line_of(e, s - 1) * hidden + j] : 0.0f;
        const bool has_output =
            is_there && (a.output != device::StatesOut::last || s == b.length[e] - 1);
        to.dy[n][i] = has_output ? *b.output_of(e, s, j) : 0.0f;
      }
    }
  };
  [[maybe_unused]] Saved next;
  if constexpr (resident) fetch(next, b.first_unit, longest - 1);

  for (int s = longest - 1; s >= 0; --s) {
    const std::uint16_t* const behind = s % 2 == 0 ? b.steps[0] : b.steps[1];
    std::uint16_t* const here = s % 2 == 0 ? b.steps[1] : b.steps[0];
    int first = b.first_unit;
    do {
      Saved now;
      if constexpr (!resident) fetch(now, first, s);
      typename Block::Sums sums;
      b.multiply(first, own, behind, sums);
      float from_step[Block::kTiles][2];  // from the deltas of the step behind
      CUDP_UNROLL for (int n = 0; n < Block::kTiles; ++n) {
        CUDP_UNROLL for (int i = 0; i < 2; ++i) { from_step[n][i] = Block::sum(sums, n, 0, i); }
      }
      if constexpr (resident) {
        now = next;
        fetch(next, first, s - 1);
      }
      CUDP_UNROLL for (int n = 0; n < Block::kTiles; ++n) {
        CUDP_UNROLL for (int i = 0; i < 2; ++i) {
          const int e = b.text(n, i), j = b.unit(first, i);
          if (!b.is_active(e, s, j)) continue;
          float dh = now.dy[n][i];
          if (a.output == device::StatesOut::mean) dh /= static_cast<float>(b.length[e]);
          dh += from_step[n][i] * ScalarLanes::from_bits((254 - exponent[n]) << 23);
          float(&gate)[4] = now.gate[n][i];
          step_back<Cell>(dh, gate, now.before[n][i], now.now[n][i], b.carry[b.at(j, e)]);
          float* const gates = a.gates + b.line_of(e, s) * 4 * hidden + j;
          CUDP_UNROLL for (int k = 0; k < 4; ++k) { gates[k * hidden] = gate[k]; }
          const float scale = ScalarLanes::from_bits(exponent[n] << 23);
          const float fourth = Cell::kIsLstm ? gate[3] * scale : 0.0f;
          *reinterpret_cast<FourHalves*>(here + e * b.pitch + 4 * j) =
              FourHalves{{halves(gate[0] * scale, gate[1] * scale),
                          halves(gate[Cell::delta(2)] * scale, fourth)}};
        }
      }
      first += a.plan.units;
    } while (!resident && first < hidden);
    __syncthreads();
  }
}

}  // namespace cudp::inline CUDP_SIMT
// NOLINTEND(bugprone-implicit-widening-of-multiplication-result)
