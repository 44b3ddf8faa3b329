#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/common/launch.hpp"
#include "kernels/common/precision.hpp"

namespace cudp {

/// One step t of an LSTM on the CPU for `rows` examples, forward or backward. The data of example m
/// start row[m] floats after each pointer. units: number of hidden units, padded to a multiple of
/// 16. The four gates of an example are contiguous: [4 units], in the order i, f, g, o.
///
/// Forward: on entry `gates` contains the pre-activations W x + U h_before + bias, with W and U the
/// weights of the input x and of the previous state. They are replaced with the gates' values.
/// Writes the cell state c, its tanh, and the state h.
///
/// Backward, with L the loss: reads dh [units] = dL/dh_t, replaces dc [units] = dL/dc_t with
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

/// One step t of a GRU on the CPU for `rows` examples, forward or backward. The data of example m
/// start row[m] floats after each pointer. units: number of hidden units, padded to a multiple of
/// 16. The gates are r (reset) and z (update), and n is the candidate state: with the input x and
/// the previous state h,
///   n = tanh(W_n x + b_n + r (U_n h + bias_n)),  next state = (1 - z) n + z h.
/// So n has two biases: b_n, which the caller has added, and bias_n, which this step adds.
///
/// Forward: on entry gates [4 units] contains W_n x + b_n, the pre-activations of r and of z, and
/// U_n h. bias [3 units], the biases of r, z and U_n h, is added to the last three. All four are
/// replaced with n, r, z and U_n h + bias_n, and h is written.
///
/// Backward: `gates` is overwritten with the gradients of W_n x, of the pre-activations of r and z,
/// and of U_n h. dh [units], the gradient of h_t, is replaced with z dh, the part that reaches
/// h_{t-1} past the gates.
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

/// How a thread block divides its work on one direction of an LSTM or GRU. U is the matrix of
/// weights that multiply the previous state. Results depend on `precision`, and with tensor cores
/// on `is_resident`, which follows from the number of units; they do not depend on the other
/// members.
struct RecurrentPlan {
  /// Number of texts per thread block: a multiple of 4; with tensor cores 8, 16 or 32. 0 means that
  /// not even the smallest number fits into shared memory.
  std::int32_t examples = 0;
  /// Number of hidden units that a block computes at once: 4 to 32; with tensor cores a multiple of
  /// 8.
  std::int32_t units = 0;
  /// Whether all of U, the weights of the states, is in shared memory. If not, parts of it (slabs)
  /// are loaded in turn. With tensor cores: in registers, or read from memory for every step.
  bool is_resident = false;
  Precision precision = Precision::fp32;
  std::size_t shared_bytes = 0;
};

/// Output of a recurrent layer: the state after the last step, the mean over steps, or all states.
enum class StatesOut { last, mean, sequence };

/// Weights and biases with which one direction of an LSTM or GRU computes a step. The weights W
/// that multiply the inputs are not among them, because W x is computed before the steps.
struct RecurrentWeights {
  /// U, the weights of the previous state h, [gates hidden, hidden].
  const float* states = nullptr;
  /// Biases that are added to W x, with W the weights of the inputs x, [gates hidden].
  const float* bias = nullptr;
  const float* state_bias = nullptr;  ///< biases added to U h, [gates hidden]; for a GRU only
};

/// All steps of an LSTM or GRU for a micro-batch of texts, forward or backward, in one direction or
/// both. Arrays are indexed by position in the text, also in the reverse direction. Positions past
/// a text's own length are neither read nor written, so no example depends on the lengths of
/// others.
///
/// `gates` has four numbers per hidden unit. Forward: on entry the parts W x of the inputs, on
/// return the gates' values. For an LSTM these are i, f, g, o. For a GRU they are r, z, n, and U_n
/// h + b'_n, the part of n that comes from the previous state, for which W x has no entry.
/// Backward: on entry the gates' values; on return the gradients of the pre-activations. For a GRU
/// the third is then the gradient of W_n x, and the fourth that of U_n h.
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
  float* gates;  ///< [capacity, T, directions, 4, hidden], the four numbers of each unit
  float* c;      ///< [capacity, T, directions, hidden], for an LSTM only
  float* h;      ///< [capacity, T, directions, hidden], states
  float* out;    ///< forward: [capacity, planes.size()], written; backward: its gradient, read
  Planes planes;
  /// [capacity, outputs], derivative of each text's loss by its logits. Tensor cores choose by it,
  /// backward, the power of two that they multiply a text's deltas by.
  const float* logit_gradients = nullptr;
  std::int32_t outputs = 0;
};

// --- Sizes in shared memory [floats] ---

/// Returns the number of summands in each element of U h, the weights of the states times the
/// state, in the forward pass: the number of hidden units, rounded up to a multiple of four.
CUDP_HD std::int64_t state_terms(std::int64_t hidden) { return (hidden + 3) / 4 * 4; }
/// Returns the distance between consecutive rows of U, the weights of the states, in shared memory
/// [floats]: an odd multiple of four, so that eight rows use all banks. hidden: number of hidden
/// units.
CUDP_HD std::int64_t state_pitch(std::int64_t hidden) {
  const std::int64_t fours = (hidden + 3) / 4;
  return 4 * (fours % 2 == 0 ? fours + 1 : fours);
}
/// Returns the distance in floats between the numbers of consecutive hidden units in an array in
/// shared memory that has one number per unit and text. `examples` is the number of texts of a
/// block. The distance is an odd multiple of four, which avoids bank conflicts.
CUDP_HD std::int64_t example_pitch(std::int64_t examples) {
  return 4 * (examples / 4 % 2 == 0 ? examples / 4 + 1 : examples / 4);
}

/// Returns the shared memory for U, the weights of the states: for all of it, or for two slabs
/// [floats]. A slab is the part of U that p.units hidden units need: in the forward pass its rows,
/// in the backward pass its columns. gates, hidden: numbers of gates per unit and of hidden units.
/// back: whether the pass is the backward one.
inline std::int64_t weight_floats(const RecurrentPlan& p, int gates, int hidden, bool back) {
  const std::int64_t rows = std::int64_t{gates} * hidden;
  if (p.is_resident) return rows * state_pitch(hidden);
  return 2 * (back ? rows * p.units : std::int64_t{gates} * p.units * state_pitch(hidden));
}
/// Returns the shared memory for values that one step passes to the next [floats]. Forward: the
/// states of two steps, the cell states c, and the sum of the states. Backward: the gradients of
/// the gates' pre-activations of two steps, and the gradient that a step passes to the previous
/// one. p: the plan of the pass. gates, hidden: numbers of gates per unit and of hidden units.
/// back: whether the pass is the backward one.
inline std::int64_t step_floats(const RecurrentPlan& p, int gates, int hidden, bool back) {
  const std::int64_t units = back ? 2 * std::int64_t{gates} * hidden + hidden
                                  : 2 * state_terms(hidden) + 2 * std::int64_t{hidden};
  return units * example_pitch(p.examples);
}

// --- Steps with tensor cores ---

/// Largest number of hidden units for which the weights of the states are kept in registers: of 13
/// warps, which have 128 registers a thread (tests/kernels/kernel_report_test.cpp).
inline constexpr int kResidentUnits = 104;

/// Returns the size of a slice, the summands of eight texts that a warp loads with one instruction.
CUDP_HD constexpr std::int64_t half_slice(bool back) { return back ? 32 : 16; }
/// Returns the number of summands in each product with U, the weights of the states, rounded up to
/// whole slices. Forward: one per hidden state. Backward: four per hidden unit, one for each gate's
/// delta. hidden: number of hidden units. back: whether the pass is the backward one.
CUDP_HD constexpr std::int64_t half_terms(std::int64_t hidden, bool back) {
  const std::int64_t slice = half_slice(back);
  return (hidden * (back ? 4 : 1) + slice - 1) / slice * slice;
}
/// Returns the distance between two texts in an array of summands in shared memory [fp16 numbers].
/// It is a slice more than a multiple of 64, which avoids bank conflicts. hidden, back: as above.
CUDP_HD constexpr std::int64_t half_pitch(std::int64_t hidden, bool back) {
  const std::int64_t slice = half_slice(back);
  return (half_terms(hidden, back) - slice + 63) / 64 * 64 + slice;
}
/// Returns the shared memory of a block [floats]: the summands of two steps, what steps pass on in
/// float32 (forward: and the sum of the states), and the lengths of the texts.
inline std::int64_t half_floats(const RecurrentPlan& p, int hidden, bool back) {
  return p.examples * (half_pitch(hidden, back) + std::int64_t{back ? 1 : 2} * hidden + 1);
}

/// Maximum number of threads per block of the kernels for recurrent layers, unless tensor cores
/// have their weights in registers.
inline constexpr int kRecurrentThreads = 256;

/// Computes p.shared_bytes, the shared memory that a block needs with plan p. Returns whether it is
/// at most shared_bytes, the limit for a block. gates, hidden: numbers of gates per unit and of
/// hidden units. back: whether the pass is the backward one.
inline bool fits(RecurrentPlan& p, int gates, int hidden, bool back, std::size_t shared_bytes) {
  const std::int64_t floats = p.precision == Precision::tf32
                                  ? half_floats(p, hidden, back)
                                  : weight_floats(p, gates, hidden, back) +
                                        step_floats(p, gates, hidden, back) +
                                        p.examples;  // lengths of the texts
  p.shared_bytes = static_cast<std::size_t>(floats) * sizeof(float);
  return p.shared_bytes <= shared_bytes;
}

/// Returns plan p with as many texts per block, up to its own number, as leave a block for every
/// multiprocessor, but at least 8. Other arguments: as for recurrent_plan().
inline RecurrentPlan narrowed(RecurrentPlan p, int gates, int hidden, bool back, int directions,
                              int capacity, const DeviceLimits& limits) {
  while (p.examples > 8 &&
         std::int64_t{divide_up(capacity, p.examples)} * directions < limits.multiprocessors)
    p.examples /= 2;
  fits(p, gates, hidden, back, limits.shared_bytes);
  return p;
}

/// Returns the plan whose blocks compute the most hidden units at once among those that fit into
/// shared memory. Among equals, it has the most texts per block for which every multiprocessor
/// still gets a block. If no plan fits, the result's `examples` is 0. capacity: number of texts per
/// launch. gates, hidden: numbers of gates per unit and of hidden units. back: whether the pass is
/// the backward one. directions: 1 or 2. limits: the device's shared memory and number of
/// multiprocessors.
inline RecurrentPlan recurrent_plan(int gates, int hidden, bool back, int directions, int capacity,
                                    const DeviceLimits& limits) {
  const auto plan = [&](const RecurrentPlan& p) {
    return narrowed(p, gates, hidden, back, directions, capacity, limits);
  };
  for (const int examples : {32, 16, 8}) {
    RecurrentPlan p{.examples = examples, .units = 32, .is_resident = true};
    if (fits(p, gates, hidden, back, limits.shared_bytes)) return plan(p);
  }
  for (const int units : {32, 16, 8, 4})
    for (const int examples : {32, 16, 8, 4}) {
      RecurrentPlan p{.examples = examples, .units = units};
      if (fits(p, gates, hidden, back, limits.shared_bytes)) return plan(p);
    }
  return {};
}

/// Returns the number of threads per block with plan p. With tensor cores a warp computes 8 units
/// at once; without them a thread computes one unit of four examples.
inline int recurrent_threads(const RecurrentPlan& p) {
  return p.precision == Precision::fp32 ? p.examples / 4 * p.units : p.units / 8 * 32;
}
/// Returns the maximum number of threads per block with plan p.
inline int max_recurrent_threads(const RecurrentPlan& p) {
  return p.precision == Precision::tf32 && p.is_resident ? kResidentUnits / 8 * 32
                                                         : kRecurrentThreads;
}

/// Returns the plan for tensor cores. Up to kResidentUnits units a block has 8 texts and all units
/// at once, with their weights in registers. With more, 64 units at once and up to 32 texts, for
/// which weights are read from memory. gates, hidden, back, directions, capacity, limits: as for
/// recurrent_plan().
inline RecurrentPlan half_recurrent_plan(int gates, int hidden, bool back, int directions,
                                         int capacity, const DeviceLimits& limits) {
  RecurrentPlan p{.units = static_cast<int>(divide_up(hidden, 8)) * 8,
                  .is_resident = hidden <= kResidentUnits,
                  .precision = Precision::tf32};
  if (!p.is_resident) p.units = 64;
  for (const int examples : {32, 16, 8}) {
    if (p.is_resident && examples > 8) continue;
    p.examples = examples;
    if (fits(p, gates, hidden, back, limits.shared_bytes))
      return narrowed(p, gates, hidden, back, directions, capacity, limits);
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
  const RecurrentPlan& p = a.plan;
  if (p.precision == Precision::tf32)
    expect((p.examples == 8 || (!p.is_resident && (p.examples == 16 || p.examples == 32))) &&
               p.units % 8 == 0 && p.units > 0 && p.units < a.hidden + 8 &&
               (!p.is_resident || p.units >= a.hidden) && a.logit_gradients != nullptr &&
               a.outputs > 0,
           "recurrent: expected a plan for tensor cores, and gradients of the logits");
  else
    expect(p.examples > 0 && p.examples % 4 == 0 && p.units > 0 && p.units <= 32,
           "recurrent: expected a plan");
  expect(recurrent_threads(p) <= max_recurrent_threads(p), "recurrent: expected fewer threads");
}
/// Returns the launch shape: grid.x counts blocks of texts, grid.y directions.
inline LaunchShape launch_shape(const RecurrentPass& a) {
  const int threads = recurrent_threads(a.plan);
  return {
      .grid = {divide_up(a.batch.capacity, a.plan.examples), static_cast<unsigned>(a.directions)},
      .block = {divide_up(threads, 32) * 32},
      .shared_bytes = a.plan.shared_bytes};
}

}  // namespace device

}  // namespace cudp
