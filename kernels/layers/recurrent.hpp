#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/common/launch.hpp"

namespace cudp {

/// One step of an LSTM, of `rows` examples: example m's numbers lie at row[m] (elements) behind
/// each pointer. units: numbers a gate, a multiple of 16. All gates lie one after the other.
/// Forward: replaces gates [4 units], in the order i, f, g, o, by their values, from the
/// pre-activations W x + U h + b; writes c, its tanh, and h.
/// Backward: reads dh [units] = dL/dh_t, replaces dc [units] = dL/dc_t by dL/dc_{t-1}, and
/// overwrites `gates` with the gradients of the pre-activations.
struct LstmStep {
  const std::int32_t* row;  ///< [rows]
  int rows;
  int units;
  float* gates;
  const float* c_before;
  float* c;
  float* c_tanh;
  float* h;
  float* dh;
  float* dc;
};

/// One step of a GRU whose reset gate acts after the product.
/// Forward: gates [4 units] hold W_n x + b_n, the pre-activations of r and of z, and U_n h; bias
/// [3 units], in the order r, z, n, is added to the last three. They are replaced by n, r, z and
/// U_n h + bias_n; h is written.
/// Backward: the gradients of W_n x, of the pre-activations of r and z, and of U_n h overwrite
/// `gates`; dh [units] is replaced by the part that reaches h_{t-1} past the gates, z dh.
struct GruStep {
  const std::int32_t* row;  ///< [rows]
  int rows;
  int units;
  float* gates;
  const float* bias;
  const float* h_before;
  float* h;
  float* dh;
};

// --- CUDA ---

namespace device {

/// How a block shares the work of one direction of some texts (RecurrentPass). Results do not
/// depend on it.
struct RecurrentPlan {
  std::int32_t examples = 0;  ///< a block; a multiple of 4
  std::int32_t units = 0;     ///< whose sums are made at once: 4, 8, 16 or 32
  bool is_resident = false;   ///< U stays in shared memory; else slabs of it come and go
  std::size_t shared_bytes = 0;
};

/// What a recurrent layer's steps give: the state after the last, the mean over them, or all.
enum class StatesOut { last, mean, sequence };

/// One direction's parameters.
struct RecurrentWeights {
  const float* states = nullptr;      ///< U [gates hidden, hidden]
  const float* bias = nullptr;        ///< [gates hidden]
  const float* state_bias = nullptr;  ///< [gates hidden], of a GRU
};

/// All steps of an LSTM or GRU, forward or back, by both directions. Numbers lie by place of the
/// text, in whatever order the steps take them. What is beyond a text's own length is neither read
/// nor written, so that no example depends on the lengths of others.
/// gates: four numbers a unit. Forward: holds W x, is replaced by the gates' values. LSTM: i, f, g,
/// o. GRU: r, z, n, and U_n h + b'_n, which W x does not have. Backward: replaced by the gradients
/// of their pre-activations; of a GRU's the third is that of W_n x, the fourth that of U_n h.
struct RecurrentPass {
  Batch batch;
  const std::int32_t* length;  ///< [capacity]
  std::int32_t places;         ///< T
  std::int32_t hidden;
  std::int32_t directions;
  StatesOut output;
  RecurrentWeights forth;
  RecurrentWeights reverse;  ///< of two directions
  RecurrentPlan plan;
  float* gates;  ///< [capacity, T, directions, 4, hidden]
  float* c;      ///< [capacity, T, directions, hidden], of an LSTM
  float* h;      ///< [capacity, T, directions, hidden]
  float* out;    ///< forward: [capacity, planes.size()], written; backward: its gradient, read
  Planes planes;
};

// --- Shared memory, in floats ---

/// Terms of a product with the states, in fours.
CUDP_HD std::int64_t state_terms(std::int64_t hidden) { return (hidden + 3) / 4 * 4; }
/// From one row of U to the next: an odd number of fours, so that eight rows meet all banks.
CUDP_HD std::int64_t state_pitch(std::int64_t hidden) {
  const std::int64_t fours = (hidden + 3) / 4;
  return 4 * (fours % 2 == 0 ? fours + 1 : fours);
}
/// From one unit to the next of numbers that a block's examples have: likewise.
CUDP_HD std::int64_t example_pitch(std::int64_t examples) {
  return 4 * (examples / 4 % 2 == 0 ? examples / 4 + 1 : examples / 4);
}

/// U, or two slabs of it: forward the rows of some units, backward their columns.
inline std::int64_t weight_floats(const RecurrentPlan& p, int gates, int hidden, bool back) {
  const std::int64_t rows = std::int64_t{gates} * hidden;
  if (p.is_resident) return rows * state_pitch(hidden);
  return 2 * (back ? rows * p.units : std::int64_t{gates} * p.units * state_pitch(hidden));
}
/// Forward: the states of two steps, c, and the sum of the states. Backward: the deltas of two
/// steps, and what a step hands to the one before it.
inline std::int64_t step_floats(const RecurrentPlan& p, int gates, int hidden, bool back) {
  const std::int64_t units = back ? 2 * std::int64_t{gates} * hidden + hidden
                                  : 2 * state_terms(hidden) + 2 * std::int64_t{hidden};
  return units * example_pitch(p.examples);
}

inline constexpr int kRecurrentThreads = 256;

/// Fills in the bytes; returns whether a block may have them.
inline bool fits(RecurrentPlan& p, int gates, int hidden, bool back, std::size_t shared_bytes) {
  const std::int64_t floats = weight_floats(p, gates, hidden, back) +
                              step_floats(p, gates, hidden, back) + p.examples;  // their lengths
  p.shared_bytes = static_cast<std::size_t>(floats) * sizeof(float);
  return p.shared_bytes <= shared_bytes;
}

/// The widest plan that a device has shared memory for, and of those that fill it the one with the
/// most examples a block; `examples` is 0 where there is none. capacity: texts of a launch.
inline RecurrentPlan recurrent_plan(int gates, int hidden, bool back, int directions, int capacity,
                                    const DeviceLimits& limits) {
  const auto narrowed = [&](RecurrentPlan p) {  // until there is a block for every multiprocessor
    while (p.examples > 8 &&
           std::int64_t{divide_up(capacity, p.examples)} * directions < limits.multiprocessors)
      p.examples /= 2;
    fits(p, gates, hidden, back, limits.shared_bytes);
    return p;
  };
  for (const int examples : {32, 16, 8}) {
    RecurrentPlan p{.examples = examples, .units = 32, .is_resident = true};
    if (fits(p, gates, hidden, back, limits.shared_bytes)) return narrowed(p);
  }
  for (const int units : {32, 16, 8, 4})
    for (const int examples : {32, 16, 8, 4}) {
      RecurrentPlan p{.examples = examples, .units = units};
      if (fits(p, gates, hidden, back, limits.shared_bytes)) return narrowed(p);
    }
  return {};
}

inline void validate(const RecurrentPass& a) {
  validate(a.batch);
  expect(a.length && a.gates && a.h && a.out && a.forth.states && a.forth.bias &&
             (a.directions == 1 || (a.reverse.states && a.reverse.bias)),
         "recurrent: expected pointers");
  expect(a.places > 0 && a.hidden > 0 && (a.directions == 1 || a.directions == 2),
         "recurrent: expected sizes > 0 and one direction or two");
  expect(std::int64_t{a.batch.capacity} * a.places * a.directions * 4 * a.hidden < std::int64_t{1}
                                                                                       << 31,
         "recurrent: the micro-batch is too large for 32-bit offsets");
  expect(a.plan.examples > 0 && a.plan.examples % 4 == 0 && a.plan.units > 0 &&
             a.plan.units <= 32 && a.plan.examples / 4 * a.plan.units <= kRecurrentThreads,
         "recurrent: expected a plan");
}
/// Blocks of some texts, then directions. Four examples and a unit a thread.
inline LaunchShape launch_shape(const RecurrentPass& a) {
  const int threads = a.plan.examples / 4 * a.plan.units;
  return {
      .grid = {divide_up(a.batch.capacity, a.plan.examples), static_cast<unsigned>(a.directions)},
      .block = {divide_up(threads, 32) * 32},
      .shared_bytes = a.plan.shared_bytes};
}

}  // namespace device

}  // namespace cudp
