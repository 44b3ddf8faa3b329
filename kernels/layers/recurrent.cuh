#pragma once
// LSTM and GRU: a block takes some texts of one direction through all their steps. W x for whole
// texts is made before, and the inputs' gradient after, by products of their own.
#include "kernels/common/copy_async.cuh"
#include "kernels/common/lanes.hpp"
#include "kernels/common/simt.cuh"
#include "kernels/layers/recurrent.hpp"
#include "kernels/layers/recurrent_math.hpp"

namespace cudp::inline CUDP_SIMT {

struct LstmCell {
  static constexpr int kGates = 4;
  static constexpr bool kIsLstm = true;
  /// Where the gradient by the g-th gate's product with states lies, of the four numbers a unit.
  static __device__ __forceinline__ int delta(int g) { return g; }
};
struct GruCell {
  static constexpr int kGates = 3;
  static constexpr bool kIsLstm = false;
  static __device__ __forceinline__ int delta(int g) { return g == 2 ? 3 : g; }
};

/// Examples of a thread.
inline constexpr int kExamplesOfThread = 4;

/// A thread's part of a block, and where its numbers lie.
template <class Cell, bool back>
struct RecurrentBlock {
  const device::RecurrentPass& a;
  bool is_reverse;
  const float* from;        ///< the direction's U
  const float* bias;        ///< [gates hidden]
  const float* state_bias;  ///< [gates hidden], of a GRU
  int first;                ///< the block's first example
  int group;                ///< the thread's examples begin at 4 group
  int lane;                 ///< its unit among those that are at work
  bool works;               ///< some threads of the last warp do not
  int terms;                ///< of U h, in fours
  int row_pitch;            ///< of U
  int pitch;                ///< of numbers that examples have
  float* weights;           ///< shared: U, or two slabs
  float* steps[2];  ///< forward: [terms][pitch], states; backward: [gates hidden][pitch], deltas
  float* carry;     ///< [hidden][pitch]: c, or what is handed to the step before
  float* total;     ///< [hidden][pitch], forward: the sum of the states
  std::int32_t* length;  ///< [examples]

  __device__ __forceinline__ RecurrentBlock(const device::RecurrentPass& pass, float* shared)
      : a(pass), is_reverse(blockIdx.y == 1) {
    from = is_reverse ? a.reverse.states : a.forth.states;
    bias = is_reverse ? a.reverse.bias : a.forth.bias;
    state_bias = is_reverse ? a.reverse.state_bias : a.forth.state_bias;
    const auto thread = static_cast<int>(threadIdx.x);
    first = static_cast<int>(blockIdx.x) * a.plan.examples;
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

  /// All of shared memory but U to 0, and the lengths. Returns the most steps of an example.
  __device__ __forceinline__ int begin() {
    const int live = live_examples(a.batch);
    const auto threads = static_cast<int>(blockDim.x);
    const auto floats = static_cast<int>(reinterpret_cast<float*>(length) - steps[0]);
    for (auto i = static_cast<int>(threadIdx.x); i < floats; i += threads) steps[0][i] = 0.0f;
    for (auto i = static_cast<int>(threadIdx.x); i < a.plan.examples; i += threads)
      length[i] = first + i < live ? a.length[first + i] : 0;
    __syncthreads();
    int longest = 0;
    for (int i = 0; i < a.plan.examples; ++i) longest = length[i] > longest ? length[i] : longest;
    return longest;
  }

  /// All of U to shared memory. Behind a row's end are zeros.
  __device__ __forceinline__ void load_all() {
    const int all = Cell::kGates * a.hidden * row_pitch;
    for (auto i = static_cast<int>(threadIdx.x); i < all; i += static_cast<int>(blockDim.x)) {
      const int row = i / row_pitch;
      const int k = i - row * row_pitch;
      weights[i] = k < a.hidden ? from[row * a.hidden + k] : 0.0f;
    }
  }

  /// The slab of the units from `unit` on, to slab number `to`: forward their rows, gate by gate;
  /// backward their columns. It arrives with finish_slab().
  __device__ __forceinline__ void start_slab(int unit, int to) {
    float* const slab = weights + to * slab_floats();
    const int width = back ? a.plan.units : row_pitch;
    const int fours = slab_floats() / 4;
    const bool in_fours =
        a.hidden % 4 == 0 && reinterpret_cast<std::uintptr_t>(from) % sizeof(Four) == 0;
    for (auto i = static_cast<int>(threadIdx.x); i < fours; i += static_cast<int>(blockDim.x)) {
      const int line = 4 * i / width;
      const int within = 4 * i - line * width;
      // Forward, line l is gate l / units of unit l % units; backward, row l of U.
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

  /// The slab that was started before has come, for all threads; starts the next one, of the units
  /// from `next` on. Returns the one that is there.
  __device__ __forceinline__ const float* finish_slab(int next, int& turn) {
    wait_for_copies();
    __syncthreads();
    const float* const here = weights + turn * slab_floats();
    turn ^= 1;
    start_slab(next, turn);
    return here;
  }

  // The thread's n-th example.

  __device__ __forceinline__ int own(int n) const { return kExamplesOfThread * group + n; }
  /// The place of step s in the text.
  __device__ __forceinline__ int place(int n, int s) const {
    return is_reverse ? length[own(n)] - 1 - s : s;
  }
  /// The line of a step in arrays [capacity, T, directions].
  __device__ __forceinline__ int line(int n, int s) const {
    return ((first + own(n)) * a.places + place(n, s)) * a.directions + (is_reverse ? 1 : 0);
  }
  /// Where unit j of the example's outputs lies; s: of a sequence alone.
  __device__ __forceinline__ float* output(int n, int s, int j) const {
    const int channel = (is_reverse ? a.hidden : 0) + j;
    const int at = a.output == device::StatesOut::sequence
                       ? place(n, s) * a.directions * a.hidden + channel
                       : a.planes.pixel_offset(channel);
    return a.out + static_cast<std::int64_t>(first + own(n)) * a.planes.size() + at;
  }
};

// grid: groups of plan.examples texts, directions. block: a thread a unit of plan.units and four
// examples, 256 at most. dynamic smem: as step_floats and weight_floats have it. A multiprocessor
// holds 512 threads.
template <class Cell>
__global__ void __launch_bounds__(device::kRecurrentThreads, 2)
    recurrent_kernel(device::RecurrentPass a) {
  CUDP_DYNAMIC_SMEM(float, shared);
  if (static_cast<int>(blockIdx.x) * a.plan.examples >= live_examples(a.batch)) return;
  RecurrentBlock<Cell, false> b(a, shared);
  const int hidden = a.hidden;
  const int longest = b.begin();
  int turn = 0;
  if (a.plan.is_resident)
    b.load_all();
  else if (longest > 0)
    b.start_slab(0, turn);
  __syncthreads();
  const int gate_rows = a.plan.is_resident ? hidden : a.plan.units;

  for (int s = 0; s < longest; ++s) {
    const float* const before = s % 2 == 0 ? b.steps[0] : b.steps[1];
    float* const after = s % 2 == 0 ? b.steps[1] : b.steps[0];
    for (int unit = 0; unit < hidden; unit += a.plan.units) {
      const float* rows = b.weights + unit * b.row_pitch;
      if (!a.plan.is_resident) {
        const int next = unit + a.plan.units;
        rows = b.finish_slab(next < hidden ? next : 0, turn);
      }
      const int j = unit + b.lane;
      if (!b.works || j >= hidden) continue;
      // What comes from afar is asked for before the sums.
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
        float h = 0.0f;
        if constexpr (Cell::kIsLstm) {
          LstmUnit<float> u{x[0][n] + sum[0][n] + bias[0], x[1][n] + sum[1][n] + bias[1],
                            x[2][n] + sum[2][n] + bias[2], x[3][n] + sum[3][n] + bias[3]};
          u.activate();
          const float c = u.state(b.carry[at]);
          h = u.output(tanh_of(c));
          b.carry[at] = c;
          a.c[line * hidden + j] = c;
          gates[0] = u.i;
          gates[hidden] = u.f;
          gates[2 * hidden] = u.g;
          gates[3 * hidden] = u.o;
        } else {
          GruUnit<float> u{x[2][n] + bias[2], x[0][n] + sum[0][n] + bias[0] + state_bias[0],
                           x[1][n] + sum[1][n] + bias[1] + state_bias[1],
                           sum[2][n] + state_bias[2]};
          u.activate();
          h = u.state(before[at]);
          gates[0] = u.r;
          gates[hidden] = u.z;
          gates[2 * hidden] = u.n;
          gates[3 * hidden] = u.product;
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
  wait_for_copies();  // of a slab that nobody needs
  if (a.output == device::StatesOut::sequence || !b.works) return;
  const int live = live_examples(a.batch);
  for (int j = b.lane; j < hidden; j += a.plan.units)
    CUDP_UNROLL for (int n = 0; n < kExamplesOfThread; ++n) {
      if (b.first + b.own(n) < live && b.length[b.own(n)] == 0) *b.output(n, 0, j) = 0.0f;
    }
}

// The same launch.
template <class Cell>
__global__ void __launch_bounds__(device::kRecurrentThreads, 2)
    recurrent_backward_kernel(device::RecurrentPass a) {
  CUDP_DYNAMIC_SMEM(float, shared);
  if (static_cast<int>(blockIdx.x) * a.plan.examples >= live_examples(a.batch)) return;
  RecurrentBlock<Cell, true> b(a, shared);
  const int hidden = a.hidden;
  const int longest = b.begin();
  int turn = 0;
  if (a.plan.is_resident)
    b.load_all();
  else if (longest > 0)
    b.start_slab(0, turn);
  __syncthreads();
  const int width = a.plan.is_resident ? b.row_pitch : a.plan.units;

  for (int s = longest - 1; s >= 0; --s) {
    const float* const behind = s % 2 == 0 ? b.steps[0] : b.steps[1];
    float* const here = s % 2 == 0 ? b.steps[1] : b.steps[0];
    for (int unit = 0; unit < hidden; unit += a.plan.units) {
      const float* columns = b.weights + unit;
      if (!a.plan.is_resident) {
        const int next = unit + a.plan.units;
        columns = b.finish_slab(next < hidden ? next : 0, turn);
      }
      const int j = unit + b.lane;
      if (!b.works || j >= hidden) continue;
      // What comes from afar is asked for before the sums. The deltas of an example whose last step
      // this is are 0 still.
      float gate[4][kExamplesOfThread];
      float now[kExamplesOfThread];     // c
      float before[kExamplesOfThread];  // c or h of the step before
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
        float delta[4];
        if constexpr (Cell::kIsLstm) {
          LstmUnit<float> u{gate[0][n], gate[1][n], gate[2][n], gate[3][n]};
          u.backward(dh[n], b.carry[at], before[n], tanh_of(now[n]));
          delta[0] = u.i;
          delta[1] = u.f;
          delta[2] = u.g;
          delta[3] = u.o;
        } else {
          GruUnit<float> u{gate[2][n], gate[0][n], gate[1][n], gate[3][n]};
          float through = dh[n] + b.carry[at];
          u.backward(through, before[n]);
          b.carry[at] = through;
          delta[0] = u.r;
          delta[1] = u.z;
          delta[2] = u.n;
          delta[3] = u.product;
        }
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
