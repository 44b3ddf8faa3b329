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
/// weights that multiply the previous state. Results depend on `precision` only, not on the other
/// members.
struct RecurrentPlan {
  /// Number of texts per thread block: a multiple of 4; with tensor cores 8, 16 or 32. 0 means that
  /// not even the smallest number fits into shared memory.
  std::int32_t examples = 0;
  /// Number of hidden units that a block computes at once: 4 to 32; with tensor cores a multiple of
  /// 16.
  std::int32_t units = 0;
  /// Whether all of U, the weights of the states, is in shared memory. If not, parts of it (slabs)
  /// are loaded in turn.
  bool is_resident = false;
  /// Number of columns of U (backward: of rows) in a slab, the part of U that is loaded at a time:
  /// 8, 16, 32 or 64. Used with tensor cores only.
  std::int32_t terms = 0;
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

// --- Sizes in shared memory of steps with tensor cores [floats] ---

CUDP_HD std::int64_t rounded_up_to_8(std::int64_t n) { return (n + 7) / 8 * 8; }
/// Returns the number of summands in each product with U, rounded up to a multiple of eight, as
/// tensor cores need. Forward: one per hidden state. Backward: one per gradient of a gate's
/// pre-activation. gates, hidden: numbers of gates per unit and of hidden units. back: whether the
/// pass is the backward one.
CUDP_HD std::int64_t tensor_terms(int gates, std::int64_t hidden, bool back) {
  return rounded_up_to_8(back ? gates * hidden : hidden);
}
/// Returns the number of rows of U (the weights of the states) in shared memory, all rows or those
/// of a slab, the part that is loaded at a time. Forward: one row per gate and unit. Backward: one
/// row per gradient of a gate's pre-activation. p: the plan of the pass. gates, hidden: numbers of
/// gates per unit and of hidden units. back: whether the pass is the backward one.
CUDP_HD std::int64_t tensor_lines(const RecurrentPlan& p, int gates, std::int64_t hidden,
                                  bool back) {
  if (!back) return gates * (p.is_resident ? hidden : p.units);
  return p.is_resident ? tensor_terms(gates, hidden, true) : p.terms;
}
/// Returns the distance in floats between consecutive rows of U, the weights of the states, in
/// shared memory. A warp reads 4 neighbouring floats of 8 rows at once in the forward pass, and 8
/// neighbouring floats of 4 rows in the backward pass. With this distance all banks are used
/// evenly. p: the plan of the pass. hidden: number of hidden units. back: whether the pass is the
/// backward one.
CUDP_HD std::int64_t tensor_pitch(const RecurrentPlan& p, std::int64_t hidden, bool back) {
  if (!back) return (p.is_resident ? rounded_up_to_8(hidden) : p.terms) + 4;
  const std::int64_t width = rounded_up_to_8(p.is_resident ? hidden : p.units);
  return width / 8 % 2 == 0 ? width + 8 : width;
}
/// Returns the distance in floats between two consecutive rows of an array in shared memory.
/// Forward: a row is one hidden state for each of the block's `examples` texts. Backward: a row is
/// the gradient of one pre-activation for each of them. The distance avoids bank conflicts: it is
/// examples + 8, or 8 if there are 8 texts.
CUDP_HD std::int64_t tensor_example_pitch(std::int64_t examples) {
  return examples == 8 ? 8 : examples + 8;
}
/// Returns how many copies shared memory has of the states of a step (backward: of the gradients of
/// its gates' pre-activations). Usually there are two, one that the step reads and one that it
/// writes. In the backward pass one is enough if all units are computed at once, because a value is
/// then replaced only after all threads have read it. p: the plan of the pass. hidden: number of
/// hidden units. back: whether the pass is the backward one.
CUDP_HD int tensor_buffers(const RecurrentPlan& p, std::int64_t hidden, bool back) {
  return back && hidden <= p.units ? 1 : 2;
}
/// Returns the number of text lengths in shared memory: at least 16, because the threads of a warp
/// index 16 texts even if the block has fewer.
CUDP_HD int tensor_lengths(int examples) { return examples < 16 ? 16 : examples; }

inline std::int64_t tensor_floats(const RecurrentPlan& p, int gates, int hidden, bool back) {
  const std::int64_t slab = tensor_lines(p, gates, hidden, back) * tensor_pitch(p, hidden, back);
  const std::int64_t lines =
      tensor_buffers(p, hidden, back) * tensor_terms(gates, hidden, back) + hidden;
  return (p.is_resident ? 1 : 2) * slab + lines * tensor_example_pitch(p.examples) +
         tensor_lengths(p.examples);
}

/// Maximum number of threads per block of the kernels for recurrent layers.
inline constexpr int kRecurrentThreads = 256;

/// Computes p.shared_bytes, the shared memory that a block needs with plan p. Returns whether it is
/// at most shared_bytes, the limit for a block. gates, hidden: numbers of gates per unit and of
/// hidden units. back: whether the pass is the backward one.
inline bool fits(RecurrentPlan& p, int gates, int hidden, bool back, std::size_t shared_bytes) {
  const std::int64_t floats = p.precision == Precision::tf32
                                  ? tensor_floats(p, gates, hidden, back)
                                  : weight_floats(p, gates, hidden, back) +
                                        step_floats(p, gates, hidden, back) +
                                        p.examples;  // lengths of the texts
  p.shared_bytes = static_cast<std::size_t>(floats) * sizeof(float);
  return p.shared_bytes <= shared_bytes;
}

/// Returns the plan whose blocks compute the most hidden units at once among those that fit into
/// shared memory. Among equals, it has the most texts per block for which every multiprocessor
/// still gets a block. If no plan fits, the result's `examples` is 0. capacity: number of texts per
/// launch. gates, hidden: numbers of gates per unit and of hidden units. back: whether the pass is
/// the backward one. directions: 1 or 2. limits: the device's shared memory and number of
/// multiprocessors.
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

/// Returns the number of threads per block with plan p. With tensor cores a warp computes 16 units
/// of 16 examples; without them a thread computes one unit of four examples.
inline int recurrent_threads(const RecurrentPlan& p) {
  if (p.precision == Precision::fp32) return p.examples / 4 * p.units;
  return static_cast<int>(divide_up(p.examples, 16)) * (p.units / 16) * 32;
}

/// Returns the plan for tensor cores, with which a warp computes 16 units of 16 examples. All of U,
/// the weights of the states, is in shared memory if it fits. Otherwise parts of it (slabs) are
/// loaded in turn, as large as fits. With 8 examples per block, half of each matrix product is
/// unused. gates, hidden: numbers of gates per unit and of hidden units. back: whether the pass is
/// the backward one. directions: 1 or 2. capacity: number of texts per launch. limits: the device's
/// shared memory and number of multiprocessors.
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
