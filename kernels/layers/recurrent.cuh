#pragma once
// LSTM and GRU in float32. W are the weights of the inputs x, U those of the previous state h. A
// block computes all steps of some texts, in one direction. Separate matrix products compute W x of
// whole texts before the steps of the forward pass, and the gradient of x after the steps of the
// backward pass.
#include "kernels/common/copy_async.cuh"
#include "kernels/common/lanes.hpp"
#include "kernels/common/simt.cuh"
#include "kernels/layers/recurrent.hpp"
#include "kernels/layers/recurrent_math.hpp"

// Offsets are computed in 32 bits. validate() ensures that offsets in a micro-batch's arrays are
// below 2^31; offsets in shared memory are below 2^18.
// NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result)

namespace cudp::inline CUDP_SIMT {

/// Kind of recurrent cell as a template argument of kernels. LstmCell: an LSTM. GruCell: a GRU.
struct LstmCell {
  static constexpr int kGates = 4;
  static constexpr bool kIsLstm = true;
  /// Returns the index, among the four numbers of a unit, of U h for gate g, where h is the
  /// previous state and U are its weights; in RecurrentPass::gates after the backward step, of its
  /// gradient. The index is g, except that a GRU's gate 2 has it at index 3.
  static __device__ __forceinline__ int delta(int g) { return g; }
};
struct GruCell {
  static constexpr int kGates = 3;
  static constexpr bool kIsLstm = false;
  static __device__ __forceinline__ int delta(int g) { return g == 2 ? 3 : g; }
};

/// Number of examples (texts) for which a thread computes the steps of one hidden unit.
inline constexpr int kExamplesOfThread = 4;

/// Base class of a thread block's view of an LSTM or GRU: the texts that the block processes, in
/// one direction, and the parameters of that direction. blockIdx.x selects the texts, blockIdx.y
/// the direction.
struct RecurrentTexts {
  const device::RecurrentPass& a;
  bool is_reverse;
  const float* from;  ///< U [gates hidden, hidden]
  const float* bias;  ///< biases that are added to W x, the part of the inputs, [gates hidden]
  /// Biases that are added to U h, the part of the previous state, [gates hidden]; for a GRU only.
  const float* state_bias;
  int first;                       ///< index of the block's first example
  std::int32_t* length = nullptr;  ///< [examples], number of words of each text, in shared memory

  __device__ __forceinline__ explicit RecurrentTexts(const device::RecurrentPass& pass)
      : a(pass), is_reverse(blockIdx.y == 1) {
    from = is_reverse ? a.reverse.states : a.forth.states;
    bias = is_reverse ? a.reverse.bias : a.forth.bias;
    state_bias = is_reverse ? a.reverse.state_bias : a.forth.state_bias;
    first = static_cast<int>(blockIdx.x) * a.plan.examples;
  }

  /// Prepares shared memory: sets it to zero from `at` up to the array `length`, and writes the
  /// lengths of `examples` texts to that array (0 for texts beyond the end of the batch). Returns
  /// the largest length. All threads must call it.
  __device__ __forceinline__ int begin(float* at, int examples) {
    const int live = live_examples(a.batch);
    const auto threads = static_cast<int>(blockDim.x);
    const auto floats = static_cast<int>(reinterpret_cast<float*>(length) - at);
    for (auto i = static_cast<int>(threadIdx.x); i < floats; i += threads) at[i] = 0.0f;
    for (auto i = static_cast<int>(threadIdx.x); i < examples; i += threads)
      length[i] = i < a.plan.examples && first + i < live ? a.length[first + i] : 0;
    __syncthreads();
    int longest = 0;
    for (int i = 0; i < examples; ++i) longest = length[i] > longest ? length[i] : longest;
    return longest;
  }

  // Accessors for example e of the block.

  /// Returns the position in the text of example e that step s of this direction reads. The reverse
  /// direction begins with the last word.
  __device__ __forceinline__ int place_of(int e, int s) const {
    return is_reverse ? length[e] - 1 - s : s;
  }
  /// Returns the index of the numbers of example e's step s in arrays [capacity, T, directions,
  /// ...], with T positions per text.
  __device__ __forceinline__ int line_of(int e, int s) const {
    return ((first + e) * a.places + place_of(e, s)) * a.directions + (is_reverse ? 1 : 0);
  }
  /// Returns the offset of hidden unit j of this direction among the layer's outputs for one step
  /// [floats].
  __device__ __forceinline__ int unit_place(int j) const {
    const int channel = (is_reverse ? a.hidden : 0) + j;
    return a.output == device::StatesOut::sequence ? channel : a.planes.pixel_offset(channel);
  }
  /// Returns the offset of the output for step s of the block's example e within that example's
  /// outputs [floats]; 0 if the layer outputs a single state.
  __device__ __forceinline__ int place_in_output(int e, int s) const {
    return a.output == device::StatesOut::sequence ? place_of(e, s) * a.directions * a.hidden : 0;
  }
  __device__ __forceinline__ float* output_of(int e, int s, int j) const {
    return a.out + static_cast<std::int64_t>(first + e) * a.planes.size() + place_in_output(e, s) +
           unit_place(j);
  }
};

/// Computes one unit's forward step and returns its state h. x: the gates' pre-activations without
/// biases; of a GRU's gate 2 the parts of the inputs (W x) at index 2, of the previous state (U h)
/// at index 3. Replaces `kept`, the number that the next step needs: the cell state c of an LSTM, h
/// of a GRU. Writes the values of the gates, `hidden` floats apart. Cell: LSTM or GRU. bias: for
/// each gate the bias of the inputs; for an LSTM the only one. state_bias: for each gate the bias
/// of the states; used by a GRU only.
template <class Cell>
__device__ __forceinline__ float step_forward(const float (&x)[4],
                                              const float (&bias)[Cell::kGates],
                                              const float (&state_bias)[Cell::kGates], float& kept,
                                              float* gates, int hidden) {
  if constexpr (Cell::kIsLstm) {
    LstmUnit<float> u{x[0] + bias[0], x[1] + bias[1], x[2] + bias[2], x[3] + bias[3]};
    u.activate();
    const float c = u.state(kept);
    kept = c;
    gates[0] = u.i;
    gates[hidden] = u.f;
    gates[2 * hidden] = u.g;
    gates[3 * hidden] = u.o;
    return u.output(tanh_of(c));
  } else {
    GruUnit<float> u{x[2] + bias[2], x[0] + bias[0] + state_bias[0], x[1] + bias[1] + state_bias[1],
                     x[3] + state_bias[2]};
    u.activate();
    gates[0] = u.r;
    gates[hidden] = u.z;
    gates[2 * hidden] = u.n;
    gates[3 * hidden] = u.product;
    kept = u.state(kept);
    return kept;
  }
}

/// Computes one unit's backward step. dh: gradient of its state h. gate: the gates' values,
/// replaced with the gradients of their pre-activations (deltas). before: c (LSTM) or h (GRU) of
/// the previous step; c: c of this step (LSTM). Replaces `carry`, the gradient that goes to the
/// previous step without passing the gates. Cell: LSTM or GRU.
template <class Cell>
__device__ __forceinline__ void step_back(float dh, float (&gate)[4], float before, float c,
                                          float& carry) {
  if constexpr (Cell::kIsLstm) {
    LstmUnit<float> u{gate[0], gate[1], gate[2], gate[3]};
    u.backward(dh, carry, before, tanh_of(c));
    gate[0] = u.i;
    gate[1] = u.f;
    gate[2] = u.g;
    gate[3] = u.o;
  } else {
    GruUnit<float> u{gate[2], gate[0], gate[1], gate[3]};
    float through = dh + carry;
    u.backward(through, before);
    carry = through;
    gate[0] = u.r;
    gate[1] = u.z;
    gate[2] = u.n;
    gate[3] = u.product;
  }
}

/// A thread's view of an LSTM or GRU kernel without tensor cores: the arrays in its block's shared
/// memory, and the unit and the four texts for which this thread computes. back: true for the
/// backward pass. Cell: LstmCell or GruCell.
template <class Cell, bool back>
struct RecurrentBlock : RecurrentTexts {
  /// Index of the thread's group of four examples. The group has the block's examples 4 group .. 4
  /// group + 3.
  int group;
  int lane;    ///< index of the thread's unit among the plan.units that the block computes at once
  bool works;  ///< false for spare threads of the last warp
  int terms;   ///< length of the sums U h: hidden, rounded up to a multiple of four
  int row_pitch;    ///< distance between rows of U [floats]
  int pitch;        ///< distance between units in arrays with one number per example [floats]
  float* weights;   ///< shared memory: all of U, or two slabs (parts of it)
  float* steps[2];  ///< forward: [terms][pitch], states; backward: [gates hidden][pitch], deltas
  /// Numbers that one step passes to the next, [hidden][pitch]. Forward: the cell state c (LSTM
  /// only). Backward: the gradient that goes to the previous step.
  float* carry;
  float* total;  ///< [hidden][pitch], forward only: sum of the states over steps

  __device__ __forceinline__ RecurrentBlock(const device::RecurrentPass& pass, float* shared)
      : RecurrentTexts(pass) {
    const auto thread = static_cast<int>(threadIdx.x);
    group = thread / a.plan.units;
    lane = thread - group * a.plan.units;
    works = group < a.plan.examples / kExamplesOfThread;
    terms = static_cast<int>(device::state_terms(a.hidden));
    row_pitch = static_cast<int>(device::state_pitch(a.hidden));
    pitch = static_cast<int>(device::example_pitch(a.plan.examples));
    weights = shared;
    const int rows = Cell::kGates * a.hidden;
    const int slab = slab_floats();
    float* at = shared + (a.plan.is_resident ? rows * row_pitch : 2 * slab);
    const int step = (back ? rows : terms) * pitch;
    steps[0] = at;
    steps[1] = at + step;
    carry = at + 2 * step;
    total = carry + a.hidden * pitch;
    length = reinterpret_cast<std::int32_t*>(back ? total : total + a.hidden * pitch);
  }

  __device__ __forceinline__ int slab_floats() const {
    return back ? Cell::kGates * a.hidden * a.plan.units : Cell::kGates * a.plan.units * row_pitch;
  }

  /// Clears all of shared memory except U, the weights of the states, and loads the texts' lengths.
  /// Returns the largest length.
  __device__ __forceinline__ int begin() {
    return RecurrentTexts::begin(steps[0], a.plan.examples);
  }

  /// Copies all of U, the weights of the states, to shared memory. Rows are padded with zeros.
  __device__ __forceinline__ void load_all() {
    const int all = Cell::kGates * a.hidden * row_pitch;
    for (auto i = static_cast<int>(threadIdx.x); i < all; i += static_cast<int>(blockDim.x)) {
      const int row = i / row_pitch;
      const int k = i - row * row_pitch;
      weights[i] = k < a.hidden ? from[row * a.hidden + k] : 0.0f;
    }
  }

  /// Starts to copy a part (slab) of U, the matrix of weights that multiply the previous state, to
  /// shared memory. The slab has the weights that the kernel needs to compute plan.units hidden
  /// units, the first of which is `unit`: in the forward pass these units' rows of U, gate by gate;
  /// in the backward pass their columns. to: index (0 or 1) of the buffer that receives it.
  /// finish_slab() waits for the copy.
  __device__ __forceinline__ void start_slab(int unit, int to) {
    float* const slab = weights + to * slab_floats();
    const int width = back ? a.plan.units : row_pitch;
    const int fours = slab_floats() / 4;
    const bool in_fours =
        a.hidden % 4 == 0 && reinterpret_cast<std::uintptr_t>(from) % sizeof(Four) == 0;
    for (auto i = static_cast<int>(threadIdx.x); i < fours; i += static_cast<int>(blockDim.x)) {
      const int line = 4 * i / width;
      const int within = 4 * i - line * width;
      // Row of U for a line of the slab. Forward: line l is gate l / units of unit l % units.
      // Backward: line l is row l of U.
      const int gate = line / a.plan.units;
      const int of = unit + line - gate * a.plan.units;
      const int row = back ? line : gate * a.hidden + of;
      const int column = back ? unit + within : within;
      const bool is_row = back || of < a.hidden;
      const float* const at = from + static_cast<std::int64_t>(row) * a.hidden + column;
      if (in_fours) {
        copy_four_async(slab + 4 * i, is_row && column < a.hidden ? at : from,
                        is_row && column < a.hidden);
        continue;
      }
      CUDP_UNROLL for (int k = 0; k < 4; ++k) {
        slab[4 * i + k] = is_row && column + k < a.hidden ? at[k] : 0.0f;
      }
    }
  }

  /// Waits, for all threads, until the slab (part of U, the weights of the states) whose copy was
  /// started last has arrived, and returns it. Then starts to copy the slab for the units from
  /// `next` on. buffer: index (0 or 1) of the slab's buffer; changed to that of the next slab.
  __device__ __forceinline__ const float* finish_slab(int next, int& buffer) {
    wait_for_copies();
    __syncthreads();
    const float* const here = weights + buffer * slab_floats();
    buffer ^= 1;
    start_slab(next, buffer);
    return here;
  }

  // Accessors for the thread's n-th example.

  __device__ __forceinline__ int own(int n) const { return kExamplesOfThread * group + n; }
  __device__ __forceinline__ int line(int n, int s) const { return line_of(own(n), s); }
  __device__ __forceinline__ float* output(int n, int s, int j) const {
    return output_of(own(n), s, j);
  }
};

// Forward pass of an LSTM or GRU in float32. grid: groups of plan.examples texts, directions.
// block: one thread per unit of plan.units and four examples, at most 256. dynamic smem:
// step_floats + weight_floats, and the lengths of the texts. At least two blocks of 256 threads fit
// on a multiprocessor (__launch_bounds__).
template <class Cell>
__global__ void __launch_bounds__(device::kRecurrentThreads, 2)
    recurrent_kernel(device::RecurrentPass a) {
  CUDP_DYNAMIC_SMEM(float, shared);
  if (static_cast<int>(blockIdx.x) * a.plan.examples >= live_examples(a.batch)) return;
  RecurrentBlock<Cell, false> b(a, shared);
  const int hidden = a.hidden;
  const int longest = b.begin();
  int buffer = 0;
  if (a.plan.is_resident)
    b.load_all();
  else if (longest > 0)
    b.start_slab(0, buffer);
  __syncthreads();
  const int gate_rows = a.plan.is_resident ? hidden : a.plan.units;

  for (int s = 0; s < longest; ++s) {
    const float* const before = s % 2 == 0 ? b.steps[0] : b.steps[1];
    float* const after = s % 2 == 0 ? b.steps[1] : b.steps[0];
    for (int unit = 0; unit < hidden; unit += a.plan.units) {
      const float* rows = b.weights + unit * b.row_pitch;
      if (!a.plan.is_resident) {
        const int next = unit + a.plan.units;
        rows = b.finish_slab(next < hidden ? next : 0, buffer);
      }
      const int j = unit + b.lane;
      if (!b.works || j >= hidden) continue;
      // Reads global memory before it computes the sums, to hide the latency of the reads.
      float x[Cell::kGates][kExamplesOfThread];
      float sum[Cell::kGates][kExamplesOfThread] = {};
      float bias[Cell::kGates];
      float state_bias[Cell::kGates];
      CUDP_UNROLL for (int g = 0; g < Cell::kGates; ++g) {
        bias[g] = b.bias[g * hidden + j];
        state_bias[g] = Cell::kIsLstm ? 0.0f : b.state_bias[g * hidden + j];
        CUDP_UNROLL for (int n = 0; n < kExamplesOfThread; ++n) {
          x[g][n] = s < b.length[b.own(n)] ? a.gates[(b.line(n, s) * 4 + g) * hidden + j] : 0.0f;
        }
      }
      const float* const row = rows + b.lane * b.row_pitch;
      const float* const states = before + kExamplesOfThread * b.group;
      for (int k = 0; k < b.terms; k += 4) {
        Four h[4];
        CUDP_UNROLL for (int i = 0; i < 4; ++i) { h[i] = load_four(states + (k + i) * b.pitch); }
        CUDP_UNROLL for (int g = 0; g < Cell::kGates; ++g) {
          const Four u = load_four(row + g * gate_rows * b.row_pitch + k);
          CUDP_UNROLL for (int i = 0; i < 4; ++i) {
            CUDP_UNROLL for (int n = 0; n < kExamplesOfThread; ++n) {
              sum[g][n] += u.v[i] * h[i].v[n];
            }
          }
        }
      }
      CUDP_UNROLL for (int n = 0; n < kExamplesOfThread; ++n) {
        const int length = b.length[b.own(n)];
        if (s >= length) continue;
        const int line = b.line(n, s);
        float* const gates = a.gates + line * 4 * hidden + j;
        const int at = j * b.pitch + b.own(n);
        float x_n[4] = {};
        CUDP_UNROLL for (int g = 0; g < Cell::kGates; ++g) { x_n[g] = x[g][n]; }
        CUDP_UNROLL for (int g = 0; g < Cell::kGates; ++g) { x_n[Cell::delta(g)] += sum[g][n]; }
        float kept = Cell::kIsLstm ? b.carry[at] : before[at];
        float h = step_forward<Cell>(x_n, bias, state_bias, kept, gates, hidden);
        if constexpr (Cell::kIsLstm) {
          b.carry[at] = kept;
          a.c[line * hidden + j] = kept;
        }
        after[at] = h;
        a.h[line * hidden + j] = h;
        if (a.output == device::StatesOut::mean) {
          h += b.total[at];
          b.total[at] = h;
          h /= static_cast<float>(length);
        }
        if (a.output == device::StatesOut::sequence || s == length - 1) *b.output(n, s, j) = h;
      }
    }
    __syncthreads();
  }
  wait_for_copies();  // the slab copied last is not used
  if (a.output == device::StatesOut::sequence || !b.works) return;
  const int live = live_examples(a.batch);
  for (int j = b.lane; j < hidden; j += a.plan.units)
    CUDP_UNROLL for (int n = 0; n < kExamplesOfThread; ++n) {
      if (b.first + b.own(n) < live && b.length[b.own(n)] == 0) *b.output(n, 0, j) = 0.0f;
    }
}

// Backward pass of an LSTM or GRU in float32. grid: groups of plan.examples texts, directions.
// block: at most 256.
template <class Cell>
__global__ void __launch_bounds__(device::kRecurrentThreads, 2)
    recurrent_backward_kernel(device::RecurrentPass a) {
  CUDP_DYNAMIC_SMEM(float, shared);
  if (static_cast<int>(blockIdx.x) * a.plan.examples >= live_examples(a.batch)) return;
  RecurrentBlock<Cell, true> b(a, shared);
  const int hidden = a.hidden;
  const int longest = b.begin();
  int buffer = 0;
  if (a.plan.is_resident)
    b.load_all();
  else if (longest > 0)
    b.start_slab(0, buffer);
  __syncthreads();
  const int width = a.plan.is_resident ? b.row_pitch : a.plan.units;

  for (int s = longest - 1; s >= 0; --s) {
    const float* const behind = s % 2 == 0 ? b.steps[0] : b.steps[1];
    float* const here = s % 2 == 0 ? b.steps[1] : b.steps[0];
    for (int unit = 0; unit < hidden; unit += a.plan.units) {
      const float* columns = b.weights + unit;
      if (!a.plan.is_resident) {
        const int next = unit + a.plan.units;
        columns = b.finish_slab(next < hidden ? next : 0, buffer);
      }
      const int j = unit + b.lane;
      if (!b.works || j >= hidden) continue;
      // Reads global memory before it computes the sums, to hide the latency of the reads. At an
      // example's last step, the deltas of the step after it are 0.
      float gate[4][kExamplesOfThread];
      float now[kExamplesOfThread];     // c
      float before[kExamplesOfThread];  // c or h of the previous step
      float dy[kExamplesOfThread];
      float dh[kExamplesOfThread] = {};
      CUDP_UNROLL for (int n = 0; n < kExamplesOfThread; ++n) {
        const int length = b.length[b.own(n)];
        const bool active = s < length;
        const int line = active ? b.line(n, s) : 0;
        CUDP_UNROLL for (int g = 0; g < 4; ++g) {
          gate[g][n] = active ? a.gates[(line * 4 + g) * hidden + j] : 0.0f;
        }
        now[n] = Cell::kIsLstm && active ? a.c[line * hidden + j] : 0.0f;
        const float* const states = Cell::kIsLstm ? a.c : a.h;
        before[n] = active && s > 0 ? states[b.line(n, s - 1) * hidden + j] : 0.0f;
        const bool has_output = a.output != device::StatesOut::last || s == length - 1;
        dy[n] = active && has_output ? *b.output(n, s, j) : 0.0f;
        if (a.output == device::StatesOut::mean && active) dy[n] /= static_cast<float>(length);
      }
      const float* const deltas = behind + kExamplesOfThread * b.group;
      const float* const column = columns + b.lane;
      CUDP_UNROLL_BY(4) for (int r = 0; r < Cell::kGates * hidden; ++r) {
        const float u = column[r * width];
        const Four d = load_four(deltas + r * b.pitch);
        CUDP_UNROLL for (int n = 0; n < kExamplesOfThread; ++n) { dh[n] += u * d.v[n]; }
      }
      CUDP_UNROLL for (int n = 0; n < kExamplesOfThread; ++n) {
        if (s >= b.length[b.own(n)]) continue;
        float* const gates = a.gates + b.line(n, s) * 4 * hidden + j;
        const int at = j * b.pitch + b.own(n);
        dh[n] += dy[n];
        float delta[4] = {gate[0][n], gate[1][n], gate[2][n], gate[3][n]};
        step_back<Cell>(dh[n], delta, before[n], now[n], b.carry[at]);
        CUDP_UNROLL for (int g = 0; g < 4; ++g) { gates[g * hidden] = delta[g]; }
        CUDP_UNROLL for (int g = 0; g < Cell::kGates; ++g) {
          here[(g * hidden + j) * b.pitch + b.own(n)] = delta[Cell::delta(g)];
        }
      }
    }
    __syncthreads();
  }
  wait_for_copies();
}

}  // namespace cudp::inline CUDP_SIMT
// NOLINTEND(bugprone-implicit-widening-of-multiplication-result)
