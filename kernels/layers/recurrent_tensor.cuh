#pragma once
// LSTM and GRU like recurrent.cuh, but with matrix products by tensor cores, in TF32. States,
// deltas (gradients of the gates' pre-activations) and U, the weights of the states, are rounded to
// TF32 once; sums and the formulas of the cells are in float32. Every sum is a chain of mma_tf32
// calls in a fixed order, so it does not depend on which thread computes it.
#include "kernels/common/copy_async.cuh"
#include "kernels/common/lanes.hpp"
#include "kernels/common/tensor_core.cuh"
#include "kernels/layers/recurrent.cuh"

// Offsets are computed in 32 bits. validate() ensures that offsets in a micro-batch's arrays are
// below 2^31; offsets in shared memory are below 2^18.
// NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result)

namespace cudp::inline CUDP_SIMT {

/// Numbers that a thread computes, in the layout of the results of mma_tf32. kTensorUnits: number
/// of units, which are eight apart. kTensorExamples: number of examples for each unit.
inline constexpr int kTensorUnits = 2;
inline constexpr int kTensorExamples = 4;

/// A thread's view of an LSTM or GRU kernel that uses tensor cores: the arrays in its block's
/// shared memory, and the units and texts for which this thread computes. back: true for the
/// backward pass. Cell: LstmCell or GruCell.
template <class Cell, bool back>
struct TensorBlock : RecurrentTexts {
  /// Number of sums that are computed per unit. Forward: one sum for each gate, of U h, with U the
  /// weights of the states h. Backward: one, of U transposed times the deltas (gradients of the
  /// gates' pre-activations).
  static constexpr int kProducts = back ? 1 : Cell::kGates;
  using TensorSums = float[kProducts][kTensorUnits][kTensorExamples];

  int lane;
  int unit;          ///< first unit of the thread, among those that the block computes at once
  int warp_unit;     ///< first unit of the thread's warp
  int example;       ///< first example of the thread, among the block's
  int warp_example;  ///< first example of the thread's warp
  int terms;         ///< number of summands of each of the kProducts sums
  /// Number of summands of each sum whose weights are in shared memory at once. If not all of U,
  /// the weights of the states, fits, its parts (slabs) are loaded in turn, with this many summands
  /// each.
  int slab_terms;
  int weight_pitch;  ///< distance between lines of U, or of a slab [floats]
  int pitch;         ///< distance between states or deltas in `steps` [floats]
  float* weights;    ///< shared memory: all of U, or two slabs
  float* steps[2];   ///< [terms][pitch], states or deltas, rounded to TF32
  /// Numbers that one step passes to the next, [hidden][pitch]. Forward: the state, c of an LSTM or
  /// h of a GRU. Backward: the gradient that goes to the previous step of the text.
  float* carry;
  int own_length[kTensorExamples];

  __device__ __forceinline__ TensorBlock(const device::RecurrentPass& pass, float* shared)
      : RecurrentTexts(pass) {
    const auto thread = static_cast<int>(threadIdx.x);
    const int warp = thread / kWarp;
    const int across = (a.plan.examples + 15) / 16;
    lane = thread % kWarp;
    warp_unit = warp / across * 16;
    unit = warp_unit + lane / 4;
    warp_example = warp % across * 16;
    example = warp_example + lane % 4 * 2;
    terms = static_cast<int>(device::tensor_terms(Cell::kGates, a.hidden, back));
    slab_terms = a.plan.is_resident ? terms : a.plan.terms;
    weight_pitch = static_cast<int>(device::tensor_pitch(a.plan, a.hidden, back));
    pitch = static_cast<int>(device::tensor_example_pitch(a.plan.examples));
    weights = shared;
    float* const at = shared + (a.plan.is_resident ? 1 : 2) * slab_floats();
    const int buffers = device::tensor_buffers(a.plan, a.hidden, back);
    steps[0] = at;
    steps[1] = at + (buffers - 1) * terms * pitch;
    carry = at + buffers * terms * pitch;
    length = reinterpret_cast<std::int32_t*>(carry + a.hidden * pitch);
  }

  /// Returns whether a step overwrites the deltas (gradients of the gates' pre-activations) that it
  /// reads, because there is one buffer for them. All threads must then have read them before any
  /// thread writes.
  __device__ __forceinline__ bool must_wait() const { return steps[0] == steps[1]; }

  __device__ __forceinline__ int slab_floats() const {
    return static_cast<int>(device::tensor_lines(a.plan, Cell::kGates, a.hidden, back)) *
           weight_pitch;
  }
  /// Clears all of shared memory except U, the weights of the states, and loads the texts' lengths.
  /// Returns the largest length.
  __device__ __forceinline__ int begin() {
    const int longest = RecurrentTexts::begin(steps[0], device::tensor_lengths(a.plan.examples));
    CUDP_UNROLL for (int n = 0; n < kTensorExamples; ++n) { own_length[n] = length[own(n)]; }
    return longest;
  }

  // Accessors for the numbers that the thread computes: unit u < kTensorUnits, example n <
  // kTensorExamples.

  __device__ __forceinline__ int own(int n) const { return example + n / 2 * 8 + n % 2; }
  __device__ __forceinline__ bool has_unit(int round, int u) const {
    return round + unit + 8 * u < a.hidden;
  }
  __device__ __forceinline__ bool is_active(int n, int s) const { return s < own_length[n]; }
  /// Returns an offset in an array with `numbers` floats per position of a text and direction, e.g.
  /// states or gates' values (for gates: of the unit's first gate). The offset is that of the
  /// thread's first unit, for the thread's n-th example and the position that step s of the
  /// direction reads. The thread's second unit is eight floats further. round: index of the first
  /// unit among those that the block computes at once.
  __device__ __forceinline__ std::int32_t at_step(int n, int s, int round, int numbers) const {
    const int place = is_reverse ? own_length[n] - 1 - s : s;
    const int line = ((first + own(n)) * a.places + place) * a.directions + (is_reverse ? 1 : 0);
    return line * numbers + round + unit;
  }
  /// Returns the address of unit 0 in the output of the thread's n-th example for step s.
  __device__ __forceinline__ float* output_at(int n, int s) const {
    return a.out + static_cast<std::int64_t>(first + own(n)) * a.planes.size() +
           place_in_output(own(n), s);
  }

  /// Copies all of U, the weights of the states, to shared memory. Rows and columns are padded with
  /// zeros.
  __device__ __forceinline__ void load_all() {
    const int rows = Cell::kGates * a.hidden;
    const int all = slab_floats();
    for (auto i = static_cast<int>(threadIdx.x); i < all; i += static_cast<int>(blockDim.x)) {
      const int row = i / weight_pitch;
      const int k = i - row * weight_pitch;
      weights[i] = row < rows && k < a.hidden ? to_tf32(from[row * a.hidden + k]) : 0.0f;
    }
  }

  /// Divides a slab (a part of U, the weights of the states) among the threads, in groups of four
  /// numbers that are neighbours in a row of U. Calls body(offset, row, column) for each of this
  /// thread's groups: its offset in the slab [floats], its row of U, and its first column of U. row
  /// is -1 if U has no such row; column may be beyond U's last one. round, term: the slab has the
  /// weights for the units from `round` on, and for their summands from number `term` on.
  template <class Body>
  __device__ __forceinline__ void for_each_four(int round, int term, const Body& body) const {
    const int fours = (back ? a.plan.units : slab_terms) / 4;  // groups of four per line
    const int lines = static_cast<int>(device::tensor_lines(a.plan, Cell::kGates, a.hidden, back));
    const int stride = static_cast<int>(blockDim.x) / fours;
    const int first_line = static_cast<int>(threadIdx.x) / fours;
    if (first_line >= stride) return;
    const int within = 4 * (static_cast<int>(threadIdx.x) - first_line * fours);
    const int column = (back ? round : term) + within;
    int gate = 0;  // forward, line l is gate l / units of unit l % units; backward, term l
    int of = first_line;
    for (int line = first_line; line < lines; line += stride, of += stride) {
      while (!back && of >= a.plan.units) {
        of -= a.plan.units;
        ++gate;
      }
      const int row = back ? term + line : gate * a.hidden + round + of;
      const bool is_row = back ? row < Cell::kGates * a.hidden : round + of < a.hidden;
      body(line * weight_pitch + within, is_row ? row : -1, column);
    }
  }

  /// Starts to copy a slab, a part of U, the weights of the states, to buffer `to` (0 or 1). round,
  /// term: first unit and first summand of the slab, as in for_each_four(). finish_slab() waits for
  /// the copy.
  __device__ __forceinline__ void start_slab(int round, int term, int to) {
    float* const slab = weights + to * slab_floats();
    const bool in_fours =
        a.hidden % 4 == 0 && reinterpret_cast<std::uintptr_t>(from) % sizeof(Four) == 0;
    for_each_four(round, term, [&](int at, int row, int column) {
      const float* const source = from + static_cast<std::int64_t>(row) * a.hidden + column;
      if (in_fours) {
        const bool is_there = row >= 0 && column < a.hidden;
        copy_four_async(slab + at, is_there ? source : from, is_there);
        return;
      }
      CUDP_UNROLL for (int i = 0; i < 4; ++i) {
        slab[at + i] = row >= 0 && column + i < a.hidden ? source[i] : 0.0f;
      }
    });
  }

  /// Waits, for all threads, until the slab (part of U, the weights of the states) whose copy was
  /// started last has arrived, rounds it to TF32 and returns it. Also starts to copy the next slab.
  /// round, term: first unit and first summand of the returned slab, as in for_each_four(). buffer:
  /// index (0 or 1) of the slab's buffer; changed to that of the next slab.
  __device__ __forceinline__ const float* finish_slab(int round, int term, int& buffer) {
    float* const here = weights + buffer * slab_floats();
    wait_for_copies();
    for_each_four(round, term, [&](int at, int, int) {
      CUDP_UNROLL for (int i = 0; i < 4; ++i) { here[at + i] = to_tf32(here[at + i]); }
    });
    __syncthreads();
    buffer ^= 1;
    int next_round = round;
    int next_term = term + slab_terms;
    if (next_term >= terms) {
      next_term = 0;
      next_round = round + a.plan.units < a.hidden ? round + a.plan.units : 0;
    }
    start_slab(next_round, next_term, buffer);
    return here;
  }

  /// Computes the thread's numbers of one step's product: U times the states, or in the backward
  /// pass U transposed times the deltas. numbers: these states or deltas. round: first of the units
  /// that the block computes at once. buffer: index of the slab's buffer (finish_slab). Writes the
  /// products to `sums`. All threads must call it.
  __device__ __forceinline__ void multiply(const float* numbers, int round, int& buffer,
                                           TensorSums& sums) {
    CUDP_UNROLL for (int p = 0; p < kProducts; ++p) {
      CUDP_UNROLL for (int u = 0; u < kTensorUnits; ++u) {
        CUDP_UNROLL for (int n = 0; n < kTensorExamples; ++n) { sums[p][u][n] = 0.0f; }
      }
    }
    // If the thread's unit does not exist, the thread computes the last unit instead, and the
    // result is not used.
    const int units = a.plan.is_resident ? a.hidden : a.plan.units;
    const int here = (a.plan.is_resident ? round : 0) + unit;
    const int top = here < units ? here : units - 1;
    const int bottom = here + 8 < units ? here + 8 : units - 1;
    const int k = lane % 4;
    const float* const own_numbers = numbers + k * pitch + warp_example + lane / 4;
    for (int term = 0; term < terms; term += slab_terms) {
      const float* const w = a.plan.is_resident ? weights : finish_slab(round, term, buffer);
      if (round + warp_unit >= a.hidden) continue;
      const int count = terms - term < slab_terms ? terms - term : slab_terms;
      const float* const of_top = back ? w + k * weight_pitch + top : w + top * weight_pitch + k;
      const float* const of_bottom = of_top + (bottom - top) * (back ? 1 : weight_pitch);
      for (int step = 0; step < count; step += 8) {
        float y[2][2];
        CUDP_UNROLL for (int tile = 0; tile < 2; ++tile) {
          CUDP_UNROLL for (int i = 0; i < 2; ++i) {
            y[tile][i] = warp_example + 8 * tile < a.plan.examples
                             ? own_numbers[(term + step + 4 * i) * pitch + 8 * tile]
                             : 0.0f;
          }
        }
        CUDP_UNROLL for (int p = 0; p < kProducts; ++p) {
          const int first = p * units * weight_pitch + step * (back ? weight_pitch : 1);
          const int second = first + 4 * (back ? weight_pitch : 1);
          const float x[4] = {of_top[first], of_bottom[first], of_top[second], of_bottom[second]};
          CUDP_UNROLL for (int tile = 0; tile < 2; ++tile) {
            mma_tf32(&sums[p][0][2 * tile], &sums[p][1][2 * tile], x, y[tile]);
          }
        }
      }
    }
  }
};

// Forward pass of an LSTM or GRU with tensor cores. grid: groups of plan.examples texts,
// directions. block: one warp per 16 units of plan.units and 16 examples, at most 256 threads.
// dynamic smem: tensor_floats.
template <class Cell>
__global__ void __launch_bounds__(device::kRecurrentThreads, 1)
    tensor_recurrent_kernel(device::RecurrentPass a) {
  CUDP_DYNAMIC_SMEM(float, shared);
  if (static_cast<int>(blockIdx.x) * a.plan.examples >= live_examples(a.batch)) return;
  TensorBlock<Cell, false> b(a, shared);
  const int hidden = a.hidden;
  const int longest = b.begin();
  int buffer = 0;
  if (a.plan.is_resident)
    b.load_all();
  else if (longest > 0)
    b.start_slab(0, 0, buffer);
  __syncthreads();

  for (int s = 0; s < longest; ++s) {
    const float* const before = s % 2 == 0 ? b.steps[0] : b.steps[1];
    float* const after = s % 2 == 0 ? b.steps[1] : b.steps[0];
    for (int round = 0; round < hidden; round += a.plan.units) {
      // Reads global memory before it computes the sums, to hide the latency of the reads.
      float x[kTensorExamples][kTensorUnits][Cell::kGates];
      float total[kTensorExamples][kTensorUnits];
      int place[kTensorUnits];
      CUDP_UNROLL for (int u = 0; u < kTensorUnits; ++u) {
        place[u] = b.has_unit(round, u) ? b.unit_place(round + b.unit + 8 * u) : 0;
      }
      CUDP_UNROLL for (int n = 0; n < kTensorExamples; ++n) {
        const bool active = b.is_active(n, s);
        const float* const gates = a.gates + (active ? b.at_step(n, s, round, 4 * hidden) : 0);
        CUDP_UNROLL for (int u = 0; u < kTensorUnits; ++u) {
          const bool is_there = active && b.has_unit(round, u);
          CUDP_UNROLL for (int g = 0; g < Cell::kGates; ++g) {
            x[n][u][g] = is_there ? gates[8 * u + g * hidden] : 0.0f;
          }
          total[n][u] = is_there && s > 0 && a.output == device::StatesOut::mean
                            ? b.output_at(n, s)[place[u]]
                            : 0.0f;
        }
      }
      typename TensorBlock<Cell, false>::TensorSums sums;
      b.multiply(before, round, buffer, sums);
      CUDP_UNROLL for (int u = 0; u < kTensorUnits; ++u) {
        if (!b.has_unit(round, u)) continue;
        const int j = round + b.unit + 8 * u;
        float bias[Cell::kGates];
        float state_bias[Cell::kGates];
        CUDP_UNROLL for (int g = 0; g < Cell::kGates; ++g) {
          bias[g] = b.bias[g * hidden + j];
          state_bias[g] = Cell::kIsLstm ? 0.0f : b.state_bias[g * hidden + j];
        }
        CUDP_UNROLL for (int n = 0; n < kTensorExamples; ++n) {
          if (!b.is_active(n, s)) continue;
          const int length = b.own_length[n];
          float sum[Cell::kGates];
          CUDP_UNROLL for (int g = 0; g < Cell::kGates; ++g) { sum[g] = sums[g][u][n]; }
          const int at = j * b.pitch + b.own(n);
          float* const gates = a.gates + b.at_step(n, s, round, 4 * hidden) + 8 * u;
          float h = step_forward<Cell>(x[n][u], sum, bias, state_bias, b.carry[at], gates, hidden);
          after[at] = to_tf32(h);
          const int state = b.at_step(n, s, round, hidden) + 8 * u;
          if constexpr (Cell::kIsLstm) a.c[state] = b.carry[at];
          a.h[state] = h;
          if (a.output == device::StatesOut::mean) {
            // The output contains the sum of the states until the last step.
            h += total[n][u];
            if (s == length - 1) h /= static_cast<float>(length);
          }
          if (a.output != device::StatesOut::last || s == length - 1)
            b.output_at(n, s)[place[u]] = h;
        }
      }
    }
    __syncthreads();
  }
  wait_for_copies();  // the slab copied last is not used
  if (a.output == device::StatesOut::sequence) return;
  const int live = live_examples(a.batch);
  for (int round = 0; round < hidden; round += a.plan.units)
    CUDP_UNROLL for (int u = 0; u < kTensorUnits; ++u) {
      if (!b.has_unit(round, u)) continue;
      const int place = b.unit_place(round + b.unit + 8 * u);
      CUDP_UNROLL for (int n = 0; n < kTensorExamples; ++n) {
        const int e = b.own(n);
        if (e < a.plan.examples && b.first + e < live && b.own_length[n] == 0)
          b.output_at(n, 0)[place] = 0.0f;
      }
    }
}

// Backward pass of an LSTM or GRU with tensor cores. grid: groups of plan.examples texts,
// directions. block: at most 256.
template <class Cell>
__global__ void __launch_bounds__(device::kRecurrentThreads, 1)
    tensor_recurrent_backward_kernel(device::RecurrentPass a) {
  CUDP_DYNAMIC_SMEM(float, shared);
  if (static_cast<int>(blockIdx.x) * a.plan.examples >= live_examples(a.batch)) return;
  TensorBlock<Cell, true> b(a, shared);
  const int hidden = a.hidden;
  const int longest = b.begin();
  int buffer = 0;
  if (a.plan.is_resident)
    b.load_all();
  else if (longest > 0)
    b.start_slab(0, 0, buffer);
  __syncthreads();

  for (int s = longest - 1; s >= 0; --s) {
    const float* const behind = s % 2 == 0 ? b.steps[0] : b.steps[1];
    float* const here = s % 2 == 0 ? b.steps[1] : b.steps[0];
    for (int round = 0; round < hidden; round += a.plan.units) {
      // Reads global memory before it computes the sums, to hide the latency of the reads.
      float gate[kTensorExamples][kTensorUnits][4];
      float now[kTensorExamples][kTensorUnits];     // c
      float before[kTensorExamples][kTensorUnits];  // c or h of the previous step
      float dy[kTensorExamples][kTensorUnits];
      int place[kTensorUnits];
      CUDP_UNROLL for (int u = 0; u < kTensorUnits; ++u) {
        place[u] = b.has_unit(round, u) ? b.unit_place(round + b.unit + 8 * u) : 0;
      }
      CUDP_UNROLL for (int n = 0; n < kTensorExamples; ++n) {
        const bool active = b.is_active(n, s);
        const float* const gates = a.gates + (active ? b.at_step(n, s, round, 4 * hidden) : 0);
        const int state = active ? b.at_step(n, s, round, hidden) : 0;
        const bool has_before = active && s > 0;
        const int state_before = has_before ? b.at_step(n, s - 1, round, hidden) : 0;
        const bool has_output =
            active && (a.output != device::StatesOut::last || s == b.own_length[n] - 1);
        const float* const states = Cell::kIsLstm ? a.c : a.h;
        CUDP_UNROLL for (int u = 0; u < kTensorUnits; ++u) {
          const bool is_there = active && b.has_unit(round, u);
          CUDP_UNROLL for (int g = 0; g < 4; ++g) {
            gate[n][u][g] = is_there ? gates[8 * u + g * hidden] : 0.0f;
          }
          now[n][u] = Cell::kIsLstm && is_there ? a.c[state + 8 * u] : 0.0f;
          before[n][u] = has_before && is_there ? states[state_before + 8 * u] : 0.0f;
          dy[n][u] = has_output && is_there ? b.output_at(n, s)[place[u]] : 0.0f;
        }
      }
      typename TensorBlock<Cell, true>::TensorSums sums;
      b.multiply(behind, round, buffer, sums);
      if (b.must_wait()) __syncthreads();
      CUDP_UNROLL for (int u = 0; u < kTensorUnits; ++u) {
        if (!b.has_unit(round, u)) continue;
        CUDP_UNROLL for (int n = 0; n < kTensorExamples; ++n) {
          if (!b.is_active(n, s)) continue;
          float from_output = dy[n][u];
          if (a.output == device::StatesOut::mean)
            from_output /= static_cast<float>(b.own_length[n]);
          const int at = (round + b.unit + 8 * u) * b.pitch + b.own(n);
          step_back<Cell>(sums[0][u][n] + from_output, gate[n][u], before[n][u], now[n][u],
                          b.carry[at]);
          float* const gates = a.gates + b.at_step(n, s, round, 4 * hidden) + 8 * u;
          CUDP_UNROLL for (int g = 0; g < 4; ++g) { gates[g * hidden] = gate[n][u][g]; }
          CUDP_UNROLL for (int g = 0; g < Cell::kGates; ++g) {
            here[g * hidden * b.pitch + at] = to_tf32(gate[n][u][Cell::delta(g)]);
          }
        }
      }
    }
    __syncthreads();
  }
  wait_for_copies();
}

}  // namespace cudp::inline CUDP_SIMT
// NOLINTEND(bugprone-implicit-widening-of-multiplication-result)
