#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/common/launch.hpp"
#include "kernels/common/precision.hpp"

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

/// How a block shares the work of one direction of some texts (RecurrentPass). Results depend on
/// its precision alone.
struct RecurrentPlan {
  std::int32_t examples = 0;  ///< a block; a multiple of 4, and 8, 16 or 32 by tensor cores
  std::int32_t units = 0;    ///< whose sums are made at once: 4, 8, 16 or 32; of 16 by tensor cores
  bool is_resident = false;  ///< U stays in shared memory; else slabs of it come and go
  std::int32_t terms = 0;    ///< of a slab's products, by tensor cores: 8, 16, 32 or 64
  Precision precision = Precision::fp32;
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

// --- Shared memory of steps by tensor cores, in floats ---

CUDP_HD std::int64_t in_eights(std::int64_t n) { return (n + 7) / 8 * 8; }
/// Terms of a product: with the states, or back with the deltas.
CUDP_HD std::int64_t tensor_terms(int gates, std::int64_t hidden, bool back) {
  return in_eights(back ? gates * hidden : hidden);
}
/// Lines of U, or of a slab of it: forward a line is a row, backward it is a term.
CUDP_HD std::int64_t tensor_lines(const RecurrentPlan& p, int gates, std::int64_t hidden,
                                  bool back) {
  if (!back) return gates * (p.is_resident ? hidden : p.units);
  return p.is_resident ? tensor_terms(gates, hidden, true) : p.terms;
}
/// From one line to the next. A warp reads 8 lines of 4 neighbours forward, 4 lines of 8 neighbours
/// backward, and they meet all banks.
CUDP_HD std::int64_t tensor_pitch(const RecurrentPlan& p, std::int64_t hidden, bool back) {
  if (!back) return (p.is_resident ? in_eights(hidden) : p.terms) + 4;
  const std::int64_t width = in_eights(p.is_resident ? hidden : p.units);
  return width / 8 % 2 == 0 ? width + 8 : width;
}
/// From one term to the next of numbers that a block's examples have: likewise.
CUDP_HD std::int64_t tensor_example_pitch(std::int64_t examples) {
  return examples == 8 ? 8 : examples + 8;
}
/// Backward, where all units are at work at once, deltas are replaced when all have read them.
CUDP_HD int tensor_buffers(const RecurrentPlan& p, std::int64_t hidden, bool back) {
  return back && hidden <= p.units ? 1 : 2;
}
/// Whose lengths are kept: those that threads have a place for.
CUDP_HD int tensor_lengths(int examples) { return examples < 16 ? 16 : examples; }

inline std::int64_t tensor_floats(const RecurrentPlan& p, int gates, int hidden, bool back) {
  const std::int64_t slab = tensor_lines(p, gates, hidden, back) * tensor_pitch(p, hidden, back);
  const std::int64_t lines =
      tensor_buffers(p, hidden, back) * tensor_terms(gates, hidden, back) + hidden;
  return (p.is_resident ? 1 : 2) * slab + lines * tensor_example_pitch(p.examples) +
         tensor_lengths(p.examples);
}

inline constexpr int kRecurrentThreads = 256;

/// Fills in the bytes; returns whether a block may have them.
inline bool fits(RecurrentPlan& p, int gates, int hidden, bool back, std::size_t shared_bytes) {
  const std::int64_t floats = p.precision == Precision::tf32
                                  ? tensor_floats(p, gates, hidden, back)
                                  : weight_floats(p, gates, hidden, back) +
                                        step_floats(p, gates, hidden, back) +
                                        p.examples;  // their lengths
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

/// Four examples and a unit a thread, or 16 of each a warp.
inline int recurrent_threads(const RecurrentPlan& p) {
  if (p.precision == Precision::fp32) return p.examples / 4 * p.units;
  return static_cast<int>(divide_up(p.examples, 16)) * (p.units / 16) * 32;
}

/// The same by tensor cores: a warp has 16 units of 16 examples. U is resident where it can be;
/// else slabs have as many terms as they can. With 8 examples half of a product is idle.
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
/// Blocks of some texts, then directions.
inline LaunchShape launch_shape(const RecurrentPass& a) {
  const int threads = recurrent_threads(a.plan);
  return {
      .grid = {divide_up(a.batch.capacity, a.plan.examples), static_cast<unsigned>(a.directions)},
      .block = {divide_up(threads, 32) * 32},
      .shared_bytes = a.plan.shared_bytes};
}

}  // namespace device

}  // namespace cudp
