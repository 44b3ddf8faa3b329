#pragma once
// Steps of an LSTM or GRU in the fused kernel for texts, forward and backward. A warp computes 8
// units of one direction for all texts of the group. The rows of its matrix product are the gates
// of these units, the columns are the texts. So a lane has all gates of one unit, for two texts, in
// its own registers. The warps of a direction exchange states (forward) or deltas (backward;
// gradients of the gates' pre-activations) once per step.
#include <type_traits>

#include "kernels/common/named_barrier.cuh"
#include "kernels/fused/recurrent_block.cuh"
#include "kernels/layers/recurrent_math.hpp"

// Offsets in shared memory are computed in 32 bits. They are below 2^18, so no product overflows.
// NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result)

namespace cudp::fused::inline CUDP_SIMT {

/// A lane's share of the steps: unit `unit` of one direction, for texts a and a + 1 of the group.
/// As an operand of a matrix product, the lane loads numbers of text `column`. P: the kernel's
/// TextPlan for one network.
template <class P>
struct StepLane {
  Lane l;
  int direction, unit, a, column;
  int length[2];
  int longest;

  __device__ __forceinline__ StepLane(const TextSpace<P>& s, const Texts<P>& t)
      : direction(warp_number() / P::kStepWarps),
        unit(warp_number() % P::kStepWarps * 8 + l.g),
        a(2 * l.t),
        column(l.g < t.count ? l.g : t.count - 1),
        length{s.length[a], s.length[a + 1]},
        longest(0) {
    CUDP_UNROLL for (int e = 0; e < kMaxTexts; ++e) {
      longest = s.length[e] > longest ? s.length[e] : longest;
    }
  }
  __device__ __forceinline__ bool has_steps() const { return direction < P::kDirections; }
  /// Returns the number in the group of the lane's text a + i (i = 0, 1). If the group has fewer
  /// texts, returns that of its last text. t: the group's texts.
  __device__ __forceinline__ int text(const Texts<P>& t, int i) const {
    return a + i < t.count ? a + i : t.count - 1;
  }
  /// Returns the position in text a + i that step `step` of this direction processes.
  __device__ __forceinline__ int position(int i, int step) const {
    return direction == 0 ? step : length[i] - 1 - step;
  }
  __device__ __forceinline__ void meet() const { named_barrier<P::kStepThreads>(1 + direction); }
  /// Returns the row of [W U] for gate number `gate` of unit number `of`.
  __device__ __forceinline__ int row(int of, int gate) const {
    return direction * P::kGates + 4 * of + gate;
  }
};

/// One step of a unit. The gates are in the order of the rows of [W U]. forward() replaces their
/// pre-activations with their values; backward() replaces the values with the gradients of the
/// pre-activations. `kept` is the number that a step passes to the next one: the cell state c of an
/// LSTM, the state h of a GRU. P: the kernel's TextPlan for one network.
template <class P>
struct UnitStep {
  std::conditional_t<P::kIsGru, GruUnit<float>, LstmUnit<float>> unit;

  __device__ __forceinline__ explicit UnitStep(const float (&gates)[4])
      : unit{gates[0], gates[1], gates[2], gates[3]} {}
  __device__ __forceinline__ void get(float (&gates)[4]) const {
    const auto& [a, b, c, d] = unit;
    gates[0] = a, gates[1] = b, gates[2] = c, gates[3] = d;
  }
  /// Returns the unit's state h, and updates `kept`.
  __device__ __forceinline__ float forward(float& kept) {
    unit.activate();
    kept = unit.state(kept);
    if constexpr (P::kIsGru)
      return kept;
    else
      return unit.output(tanh_of(kept));
  }
  /// Backward pass of the step. dh: gradient of the unit's state h. Replaces `carry`, the gradient
  /// that goes to the previous step without passing the gates. before: `kept` of the previous step.
  /// kept: `kept` of this step.
  __device__ __forceinline__ void backward(float dh, float& carry, float before, float kept) {
    if constexpr (P::kIsGru) {
      carry += dh;
      unit.backward(carry, before);
    } else {
      unit.backward(dh, carry, before, tanh_of(kept));
    }
  }
};

/// Returns the four gates of a unit, rounded to fp16.
__device__ __forceinline__ UnitGates rounded(const float (&gates)[4]) {
  return {{halves(gates[0], gates[1]), halves(gates[2], gates[3])}};
}

/// Computes all steps forward, for the texts of the group. The product W x of a step, with x its
/// input, is computed during the step before it. P: the kernel's TextPlan for one network. s: the
/// block's shared memory. t: the group's texts.
template <class P>
__device__ __forceinline__ void steps_forward(const FusedSum& args, TextSpace<P>& s,
                                              const Texts<P>& t) {
  const StepLane<P> w(s, t);
  if (!w.has_steps()) return;
  const Lane& l = w.l;
  // Loads W and U as operands of tensor-core products. Tile j has gates 2 j and 2 j + 1 of the
  // warp's units. Of every 32 columns, the lane with index t in its group of four has columns 8 t
  // .. 8 t + 7. The other operand, of which a lane loads 8 fp16 numbers with one instruction, has
  // the same order.
  constexpr int kParts = P::kHidden / 32;
  u32 wx[2][2][4], wh[kParts][2][2][4];
  float bias[2][4];
  CUDP_UNROLL for (int j = 0; j < 2; ++j) {
    CUDP_UNROLL for (int half = 0; half < 2; ++half) {
      const int gate = 2 * j + half, row = w.row(w.unit, gate);
      const auto take = [&](u32(&to)[2][4], int first) {
        const int at = P::gate_parameter(row, first);
        const float* const from = args.parameters + at + 8 * l.t;
        const Four a = at < 0 ? Four{} : load_four(from), b = at < 0 ? Four{} : load_four(from + 4);
        to[0][half] = halves(a.v[0], a.v[1]);
        to[0][half + 2] = halves(a.v[2], a.v[3]);
        to[1][half] = halves(b.v[0], b.v[1]);
        to[1][half + 2] = halves(b.v[2], b.v[3]);
      };
      take(wx[j], 0);
      CUDP_UNROLL for (int m = 0; m < kParts; ++m) { take(wh[m][j], P::kWords + 32 * m); }
      const float* const biases =
          args.parameters + P::bias_parameter(w.direction * P::kGateBiases) + w.unit;
      float b = P::kIsGru && gate == 3 ? 0.0f : biases[P::gate_line(gate) * P::kHidden];
      if (P::kIsGru && gate > 0) b += biases[(2 + gate) * P::kHidden];  // a GRU's biases of U h
      bias[j][2 * half] = b;
      bias[j][2 * half + 1] = b;
    }
  }
  const auto multiply = [](float(&to)[2][4], const u32(&by)[2][2][4], const Chunk& v) {
    CUDP_UNROLL for (int k = 0; k < 2; ++k) {
      const u32 terms[2] = {v.word[2 * k], v.word[2 * k + 1]};
      CUDP_UNROLL for (int j = 0; j < 2; ++j) { multiply_add(to[j], by[j][k], terms); }
    }
  };
  const int own = s.length[w.column];
  const unsigned char* const column = t.row(w.column, 0) + 16 * l.t;
  const int states = 2 * P::kWords + w.direction * 2 * P::kHidden;
  // row_at(): row of a step's input; `before`: distance from it to the row with the states before
  // the step. Past the end of a text these rows contain numbers of another text, or any bits. They
  // affect only the product's column for that text, and results past the end of a text are not
  // stored.
  const auto row_at = [&](int step) {
    return w.direction == 0 ? step + 1 : own - step > 0 ? own - step : 0;
  };
  const int before = w.direction == 0 ? -P::kRow : P::kRow;
  const auto chunk_at = [&](int row, int byte) {
    return *reinterpret_cast<const Chunk*>(column + row * P::kRow + byte);
  };
  float sums[2][4];
  const auto begin_sums = [&](int row) {
    CUDP_UNROLL for (int j = 0; j < 2; ++j) {
      CUDP_UNROLL for (int i = 0; i < 4; ++i) { sums[j][i] = bias[j][i]; }
    }
    multiply(sums, wx, chunk_at(row, 0));
  };
  begin_sums(row_at(0));
  Chunk h[kParts];
  const auto load_states = [&](int row) {
    CUDP_UNROLL for (int m = 0; m < kParts; ++m) { h[m] = chunk_at(row, before + states + 64 * m); }
  };
  load_states(row_at(0));
  float kept[2] = {0.0f, 0.0f};
  u32* const cells = t.cells(w.direction) + thread_number() % P::kStepThreads;
  for (int step = 0; step < w.longest; ++step) {
    CUDP_UNROLL for (int m = 0; m < kParts; ++m) { multiply(sums, wh[m], h[m]); }
    float gates[2][4];
    CUDP_UNROLL for (int j = 0; j < 2; ++j) {
      CUDP_UNROLL for (int i = 0; i < 4; ++i) { gates[i % 2][2 * j + i / 2] = sums[j][i]; }
    }
    const int row = row_at(step + 1);
    begin_sums(row);
    CUDP_UNROLL for (int i = 0; i < 2; ++i) {
      UnitStep<P> unit(gates[i]);
      const float out = unit.forward(kept[i]);
      unit.get(gates[i]);
      if (step < w.length[i])
        *reinterpret_cast<std::uint16_t*>(t.row(w.a + i, w.position(i, step) + 1) + states +
                                          2 * w.unit) =
            static_cast<std::uint16_t>(halves(out, 0.0f));
    }
    w.meet();
    load_states(row);
    CUDP_UNROLL for (int i = 0; i < 2; ++i) {
      if (step < w.length[i])
        t.gates(w.a +
                i)[w.position(i, step) * (P::kGateRows / 4) + w.direction * P::kHidden + w.unit] =
            rounded(gates[i]);
    }
    if constexpr (!P::kIsGru) cells[step * P::kStepThreads] = halves(kept[0], kept[1]);
  }
}

/// Computes all steps backward, for the texts of the group. Writes deltas, the gradients of the
/// gates' pre-activations, over the gates. P: the kernel's TextPlan for one network. s: the block's
/// shared memory. t: the group's texts.
template <class P>
__device__ __forceinline__ void steps_backward(const FusedSum& args, TextSpace<P>& s,
                                               const Texts<P>& t) {
  const StepLane<P> w(s, t);
  if (!w.has_steps()) return;
  const Lane& l = w.l;
  // Loads the transpose of U as an operand: rows 0 to 7 are the warp's units, rows 8 to 15 are 0.
  // The summands are all gates of each unit, in the order in which a lane loads the deltas, 8 fp16
  // numbers with one instruction.
  constexpr int kSteps = P::kGates / 16;
  u32 back[kSteps][4];
  CUDP_UNROLL for (int k = 0; k < kSteps; ++k) {
    const int from = 8 * (k / 2) + 2 * l.t + k % 2;
    const auto weight = [&](int gate) {
      const int at = P::gate_parameter(w.row(from, gate), P::kWords + w.unit);
      return at < 0 ? 0.0f : args.parameters[at];
    };
    back[k][0] = halves(weight(0), weight(1));
    back[k][1] = 0;
    back[k][2] = halves(weight(2), weight(3));
    back[k][3] = 0;
  }
  unsigned char* const exchange = s.deltas + w.direction * 2 * P::kExchange;
  const unsigned char* const read = exchange + P::exchange_column(l.g) + 16 * l.t;
  const auto delta_at = [&](int i, int buffer) -> UnitGates& {
    return *reinterpret_cast<UnitGates*>(exchange + buffer * P::kExchange +
                                         P::exchange_column(w.a + i) + 8 * w.unit);
  };
  float last[2], carry[2] = {0.0f, 0.0f}, sum[2][4];
  CUDP_UNROLL for (int i = 0; i < 2; ++i) {
    delta_at(i, 0) = UnitGates{};
    last[i] =
        w.length[i] > 0 ? s.text[w.a + i][P::kText.back + w.direction * P::kHidden + w.unit] : 0.0f;
    clear(sum[i]);
  }
  // The gates and `kept` (UnitStep) of one step, loaded four steps before they are used.
  struct Saved {
    UnitGates gates[2];
    float kept[2];
  };
  Saved saved[4];
  const u32* const cells = t.cells(w.direction) + thread_number() % P::kStepThreads;
  const auto place_of = [&](int i, int step) {
    return t.gates(w.text(t, i)) + w.position(i, step) * (P::kGateRows / 4) +
           w.direction * P::kHidden + w.unit;
  };
  const auto state_at = [&](int i, int step) {
    const unsigned char* const row = t.row(w.text(t, i), w.position(i, step) + 1);
    return low_half(*reinterpret_cast<const std::uint16_t*>(
        row + 2 * (P::kWords + w.direction * P::kHidden + w.unit)));
  };
  const auto fetch = [&](Saved& to, int step) {
    const bool has_cells = !P::kIsGru && step >= 0 && step < w.longest;
    const u32 both = has_cells ? cells[step * P::kStepThreads] : 0u;
    CUDP_UNROLL for (int i = 0; i < 2; ++i) {
      // Past the end of a text the gates and `kept` are 0, so the deltas are 0 too.
      const bool has = step >= 0 && step < w.length[i];
      to.gates[i] = has ? *place_of(i, step) : UnitGates{};
      to.kept[i] = !has        ? 0.0f
                   : P::kIsGru ? state_at(i, step)
                   : i == 0    ? low_half(both)
                               : high_half(both);
    }
  };
  const int end = (w.longest + 3) / 4 * 4;
  CUDP_UNROLL for (int k = 0; k < 4; ++k) { fetch(saved[k], end - 1 - k); }
  w.meet();
  for (int top = end - 1; top >= 0; top -= 4) {
    CUDP_UNROLL for (int k = 0; k < 4; ++k) {
      const int step = top - k;
      float product[4][4];
      CUDP_UNROLL for (int j = 0; j < kSteps / 2; ++j) {
        const Chunk v = *reinterpret_cast<const Chunk*>(read + k % 2 * P::kExchange + 64 * j);
        const u32 first[2] = {v.word[0], v.word[1]}, second[2] = {v.word[2], v.word[3]};
        if (j < 4) clear(product[j]);
        multiply_add(product[j % 4], back[2 * j], first);
        multiply_add(product[j % 4], back[2 * j + 1], second);
      }
      UnitGates delta[2];
      CUDP_UNROLL for (int i = 0; i < 2; ++i) {
        const u32(&word)[2] = saved[k].gates[i].word;
        float gates[4] = {low_half(word[0]), high_half(word[0]), low_half(word[1]),
                          high_half(word[1])};
        const float more = step == w.length[i] - 1 ? last[i] : 0.0f;
        const float dh = ((product[0][i] + product[1][i]) + (product[2][i] + product[3][i])) + more;
        UnitStep<P> unit(gates);
        unit.backward(dh, carry[i], saved[(k + 1) % 4].kept[i], saved[k].kept[i]);
        unit.get(gates);
        delta[i] = rounded(gates);
        delta_at(i, (k + 1) % 2) = delta[i];
        CUDP_UNROLL for (int gate = 0; gate < 4; ++gate) { sum[i][gate] += gates[gate]; }
      }
      w.meet();
      CUDP_UNROLL for (int i = 0; i < 2; ++i) {
        if (step < w.length[i]) *place_of(i, step) = delta[i];
      }
      fetch(saved[k], step - 4);
    }
  }
  CUDP_UNROLL for (int i = 0; i < 2; ++i) {
    if (w.a + i < t.count)
      *reinterpret_cast<Four*>(t.delta_sums(w.a + i) + w.direction * P::kGates + 4 * w.unit) =
          Four{{sum[i][0], sum[i][1], sum[i][2], sum[i][3]}};
  }
}

}  // namespace cudp::fused::inline CUDP_SIMT
// NOLINTEND(bugprone-implicit-widening-of-multiplication-result)
