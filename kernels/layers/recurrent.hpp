#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/common/launch.hpp"
#include "kernels/common/precision.hpp"

namespace cudp {

/// One step t of an LSTM on the CPU for `rows` examples, forward or backward. The numbers of
/// example m start row[m] floats after each pointer. units: numbers per gate, a multiple of 16. The
/// four gates of an example are contiguous. L is the loss. Forward: replaces gates [4 units], in
/// the order i, f, g, o, with their values, computed from the pre-activations W x + U h + b; writes
/// c, its tanh, and h. Backward: reads dh [units] = dL/dh_t, replaces dc [units] = dL/dc_t with
/// dL/dc_{t-1}, and overwrites `gates` with the gradients of the pre-activations.
struct LstmStep {
  const std::int32_t* row;  ///< [rows], offset of each example's numbers
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

/// One step t of a GRU on the CPU, whose reset gate acts after the product U_n h, for `rows`
/// examples, forward or backward. Pointers and units are as in LstmStep. Forward: gates [4 units]
/// contain W_n x + b_n, the pre-activations of r and of z, and U_n h. bias [3 units], in the order
/// r, z, n, is added to the last three. They are replaced with n, r, z and U_n h + bias_n, and h is
/// written. Backward: the gradients of W_n x, of the pre-activations of r and z, and of U_n h
/// overwrite `gates`. dh [units] is replaced with z dh, the part that reaches h_{t-1} past the
/// gates.
struct GruStep {
  const std::int32_t* row;  ///< [rows], offset of each example's numbers
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

/// How a block divides the work of an LSTM or GRU in one direction (RecurrentPass). U are the
/// weights of the states. Results depend on `precision` only.
struct RecurrentPlan {
  /// Number of texts per block: a multiple of 4, with tensor cores 8, 16 or 32; 0: none fits.
  std::int32_t examples = 0;
  /// Number of units per block at once: 4 to 32, with tensor cores a multiple of 16.
  std::int32_t units = 0;
  /// Whether all of U is in shared memory. If not, parts of it (slabs) are loaded in turn.
  bool is_resident = false;
  /// Only with tensor cores: number of columns (backward: rows) of U per slab, 8, 16, 32 or 64.
  std::int32_t terms = 0;
  Precision precision = Precision::fp32;
  std::size_t shared_bytes = 0;
};

/// Output of a recurrent layer: the state after the last step, the mean over steps, or all states.
enum class StatesOut { last, mean, sequence };

/// Parameters of the states of one direction of an LSTM or GRU; those of the inputs, W, are
/// separate.
struct RecurrentWeights {
  const float* states = nullptr;      ///< U [gates hidden, hidden]
  const float* bias = nullptr;        ///< [gates hidden], added to W x
  const float* state_bias = nullptr;  ///< [gates hidden], for a GRU only
};

/// All steps of an LSTM or GRU for a micro-batch of texts, forward or backward, in one direction or
/// both. Arrays are indexed by position of the text, in whatever order the steps visit them.
/// Positions past a text's own length are neither read nor written, so no example depends on the
/// lengths of others.
///
/// gates: four numbers per unit. Forward: contains W x, which is replaced with the gates' values.
/// LSTM: i, f, g, o. GRU: r, z, n, and U_n h + b'_n, which W x does not include. Backward: replaced
/// with the gradients of their pre-activations; for a GRU the third is the gradient of W_n x, the
/// fourth that of U_n h.
struct RecurrentPass {
  Batch batch;
  const std::int32_t* length;  ///< [capacity], number of words of each text
  std::int32_t places;         ///< T, number of positions that each text has space for
  std::int32_t hidden;
  std::int32_t directions;
  StatesOut output;
  RecurrentWeights forth;
  RecurrentWeights reverse;  ///< used with two directions only
  RecurrentPlan plan;
  float* gates;  ///< [capacity, T, directions, 4, hidden], see above
  float* c;      ///< [capacity, T, directions, hidden], for an LSTM only
  float* h;      ///< [capacity, T, directions, hidden], states
  float* out;    ///< forward: [capacity, planes.size()], written; backward: its gradient, read
  Planes planes;
};

// --- Sizes in shared memory [floats] ---

/// Number of terms per sum of U h (forward): hidden, rounded up to a multiple of four.
CUDP_HD std::int64_t state_terms(std::int64_t hidden) { return (hidden + 3) / 4 * 4; }
/// Distance between consecutive rows of U in shared memory [floats]: an odd multiple of four, so
/// that eight rows use all banks.
CUDP_HD std::int64_t state_pitch(std::int64_t hidden) {
  const std::int64_t fours = (hidden + 3) / 4;
  return 4 * (fours % 2 == 0 ? fours + 1 : fours);
}
/// Distance between consecutive units in arrays with one number per example of the block [floats]:
/// an odd multiple of four, to avoid bank conflicts.
CUDP_HD std::int64_t example_pitch(std::int64_t examples) {
  return 4 * (examples / 4 % 2 == 0 ? examples / 4 + 1 : examples / 4);
}

/// Shared memory for all of U, or for two of its slabs [floats]. A slab is the part of U that
/// p.units units need: in the forward pass its rows, in the backward pass its columns.
inline std::int64_t weight_floats(const RecurrentPlan& p, int gates, int hidden, bool back) {
  const std::int64_t rows = std::int64_t{gates} * hidden;
  if (p.is_resident) return rows * state_pitch(hidden);
  return 2 * (back ? rows * p.units : std::int64_t{gates} * p.units * state_pitch(hidden));
}
/// Shared memory for the numbers of the steps [floats]. Forward: the states of two steps, c, and
/// the sum of the states. Backward: the deltas (gradients of the gates' pre-activations) of two
/// steps, and the gradient that a step passes to the previous one.
inline std::int64_t step_floats(const RecurrentPlan& p, int gates, int hidden, bool back) {
  const std::int64_t units = back ? 2 * std::int64_t{gates} * hidden + hidden
                                  : 2 * state_terms(hidden) + 2 * std::int64_t{hidden};
  return units * example_pitch(p.examples);
}

// --- Sizes in shared memory of steps with tensor cores [floats] ---

CUDP_HD std::int64_t rounded_up_to_8(std::int64_t n) { return (n + 7) / 8 * 8; }
/// Number of terms of each sum, rounded up to a multiple of eight. Forward: a sum is over the
/// states; backward: over the deltas (gradients of the gates' pre-activations).
CUDP_HD std::int64_t tensor_terms(int gates, std::int64_t hidden, bool back) {
  return rounded_up_to_8(back ? gates * hidden : hidden);
}
/// Number of rows of U in shared memory, all or those of a slab. Forward: a row per gate of the
/// units; backward: a row per delta (gradient of a gate's pre-activation).
CUDP_HD std::int64_t tensor_lines(const RecurrentPlan& p, int gates, std::int64_t hidden,
                                  bool back) {
  if (!back) return gates * (p.is_resident ? hidden : p.units);
  return p.is_resident ? tensor_terms(gates, hidden, true) : p.terms;
}
/// Distance between consecutive lines of U in shared memory [floats]. A warp reads 8 lines of 4
/// neighbours forward and 4 lines of 8 neighbours backward; with this distance it uses all banks.
CUDP_HD std::int64_t tensor_pitch(const RecurrentPlan& p, std::int64_t hidden, bool back) {
  if (!back) return (p.is_resident ? rounded_up_to_8(hidden) : p.terms) + 4;
  const std::int64_t width = rounded_up_to_8(p.is_resident ? hidden : p.units);
  return width / 8 % 2 == 0 ? width + 8 : width;
}
/// Distance between consecutive states or deltas in arrays with one number per example of the block
/// [floats], without bank conflicts.
CUDP_HD std::int64_t tensor_example_pitch(std::int64_t examples) {
  return examples == 8 ? 8 : examples + 8;
}
/// Number of buffers for the states or deltas (gradients of the gates' pre-activations) of a step.
/// In the backward pass one is enough if all units are computed at once: deltas are replaced after
/// all threads have read them.
CUDP_HD int tensor_buffers(const RecurrentPlan& p, std::int64_t hidden, bool back) {
  return back && hidden <= p.units ? 1 : 2;
}
/// Number of lengths in shared memory: at least 16, because a warp's threads index 16 texts.
CUDP_HD int tensor_lengths(int examples) { return examples < 16 ? 16 : examples; }

inline std::int64_t tensor_floats(const RecurrentPlan& p, int gates, int hidden, bool back) {
  const std::int64_t slab = tensor_lines(p, gates, hidden, back) * tensor_pitch(p, hidden, back);
  const std::int64_t lines =
      tensor_buffers(p, hidden, back) * tensor_terms(gates, hidden, back) + hidden;
  return (p.is_resident ? 1 : 2) * slab + lines * tensor_example_pitch(p.examples) +
         tensor_lengths(p.examples);
}

inline constexpr int kRecurrentThreads = 256;

/// Computes p.shared_bytes. Returns whether it is at most shared_bytes, the limit for a block.
inline bool fits(RecurrentPlan& p, int gates, int hidden, bool back, std::size_t shared_bytes) {
  const std::int64_t floats = p.precision == Precision::tf32
                                  ? tensor_floats(p, gates, hidden, back)
                                  : weight_floats(p, gates, hidden, back) +
                                        step_floats(p, gates, hidden, back) +
                                        p.examples;  // their lengths
  p.shared_bytes = static_cast<std::size_t>(floats) * sizeof(float);
  return p.shared_bytes <= shared_bytes;
}

/// Returns the plan that has the most units per block that fit into shared memory. Among those
/// plans, it has the most texts per block for which every multiprocessor still has a block.
/// examples = 0 if none fits. capacity: texts per launch.
inline RecurrentPlan recurrent_plan(int gates, int hidden, bool back, int directions, int capacity,
                                    const DeviceLimits& limits) {
  const auto narrowed =
      [&](RecurrentPlan p) {  // tries fewer texts until every multiprocessor has a block
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

/// Number of threads per block: a thread has four examples of one unit or, with tensor cores, a
/// warp has 16 examples of 16 units.
inline int recurrent_threads(const RecurrentPlan& p) {
  if (p.precision == Precision::fp32) return p.examples / 4 * p.units;
  return static_cast<int>(divide_up(p.examples, 16)) * (p.units / 16) * 32;
}

/// Returns the plan for tensor cores, with which a warp computes 16 units of 16 examples. All of U
/// is in shared memory if it fits; otherwise slabs (parts of it) are as large as fits. With 8
/// examples, half of each product is not used.
inline RecurrentPlan tensor_recurrent_plan(int gates, int hidden, bool back, int directions,
                                           int capacity, const DeviceLimits& limits) {
  const int units = static_cast<int>(divide_up(hidden, 16)) * 16;
  const auto plan = [&](int examples, int widest, int terms) {
    RecurrentPlan p{.examples = examples,
                    .units = units < widest ? units : widest,
                    .is_resident = terms == 0,
                    .terms = terms,
                    .precision = Precision::tf32};
    return fits(p, gates, hidden, back, limits.shared_bytes) ? p : RecurrentPlan{};
  };
  const bool fills_device =
      std::int64_t{divide_up(capacity, 32)} * directions >= limits.multiprocessors;
  for (const int terms : {0, 64, 32, 16, 8})
    for (const int examples : {32, 16}) {
      if (examples == 32 && !fills_device) continue;
      const RecurrentPlan p = plan(examples, examples == 32 ? 64 : 128, terms);
      if (p.examples > 0) return p;
    }
  for (const int terms : {64, 32, 16, 8}) {
    const RecurrentPlan p = plan(8, 128, terms);
    if (p.examples > 0) return p;
  }
  return plan(8, 16, 8);
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
  const RecurrentPlan& p = a.plan;
  if (p.precision == Precision::tf32)
    expect((p.examples == 8 || p.examples == 16 || p.examples == 32) && p.units > 0 &&
               p.units % 16 == 0 && (p.is_resident || p.terms % 8 == 0),
           "recurrent: expected a plan for tensor cores");
  else
    expect(p.examples > 0 && p.examples % 4 == 0 && p.units > 0 && p.units <= 32,
           "recurrent: expected a plan");
  expect(recurrent_threads(p) <= kRecurrentThreads, "recurrent: expected fewer threads");
}
/// Launch shape: grid.x is blocks of texts, grid.y directions.
inline LaunchShape launch_shape(const RecurrentPass& a) {
  const int threads = recurrent_threads(a.plan);
  return {
      .grid = {divide_up(a.batch.capacity, a.plan.examples), static_cast<unsigned>(a.directions)},
      .block = {divide_up(threads, 32) * 32},
      .shared_bytes = a.plan.shared_bytes};
}

}  // namespace device

}  // namespace cudp
