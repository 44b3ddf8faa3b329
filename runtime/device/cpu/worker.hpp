#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/contribution/clip.hpp"
#include "kernels/contribution/importance.hpp"
#include "kernels/cpu_kernels.hpp"
#include "runtime/base/aligned.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/device/cpu/layout.hpp"
#include "runtime/device/cpu/workspace.hpp"

namespace cudp::cpu {

/// The rule that candidates are accepted by, in place of clipping. Each example's norm is read and
/// written by the worker that has the example.
struct Acceptance {
  ImportanceRule rule;
  RandomStream stream;  ///< Stream::acceptance
  float* norms;         ///< [examples of the data set]
};

/// What is known of one example after its backward pass. Private.
struct ExampleRecord {
  float loss = 0.0f;
  float squared_norm = 0.0f;
  bool clipped = false;
  bool finite = true;
};

/// One thread, and the passes over a chunk of examples in its memory.
class Worker {
 public:
  Worker(const CpuLayout& layout, const CpuKernels& kernels);

  /// Adds the clipped gradients of `examples`, at most CpuLayout::chunk of them, to units() and
  /// totals(). coordinates: null for the gradients as they are.
  /// acceptance: null for clipping.
  /// records: [examples.size()], or null.
  void add_clipped(const Dataset& data, std::span<const std::uint32_t> examples,
                   const Weights& weights, const ClipSettings& clip, const Coordinates* coordinates,
                   const Acceptance* acceptance, float inverse_grid, ExampleRecord* records);

  /// Norms of the gradients of at most CpuLayout::chunk examples, [examples.size()], 0 for one that
  /// is not finite.
  void norms(const Dataset& data, std::span<const std::uint32_t> examples, const Weights& weights,
             float* out);

  /// Logits of at most CpuLayout::chunk examples, [examples.size()][outputs] without padding.
  void logits(const Dataset& data, std::span<const std::uint32_t> examples, const Weights& weights,
              float* out);

  /// One example's gradient, packed, unclipped, into `out` [Storage::packed], with its squared norm
  /// in each parametric layer, [groups], and its loss.
  float gradient(const Dataset& data, std::uint32_t example, const Weights& weights, float* out,
                 float* squared_norms);

  // Together the sum in units of the grid since they were last cleared, [Storage::packed].
  std::int64_t* totals() { return totals_.data(); }
  std::int32_t* units() { return units_.data(); }

 private:
  /// Calls body(first, count) with `count` of the examples in flight, from number `first` on, until
  /// all have been.
  template <class Body>
  void for_each_part(const Dataset& data, std::span<const std::uint32_t> examples,
                     const Weights& weights, const Body& body);
  void forward(int count);
  /// All passes over the examples in flight. clip and acceptance: at most one; without, gradients
  /// are added as they are. sum: null for none.
  void run_part(int count, const ClipSettings* clip, const Acceptance* acceptance,
                const GradientSum* sum, ExampleRecord* records);
  void backward_together(int count);
  void backward_example(int example);
  /// Returns the example's squared norm.
  float choose_factors(int example, const ClipSettings* clip, const Acceptance* acceptance);
  float squared_norm(int example);
  void add_example(int example, const GradientSum& sum);
  void add_together(int count, const GradientSum& sum);

  float* logits_of(int example) { return w_.value(layout_.edges.back(), example); }
  int groups() const { return layout_.network->groups; }

  const CpuLayout& layout_;
  Workspace w_;
  AlignedVector<std::int32_t> units_;
  AlignedVector<std::int64_t> totals_;
  std::size_t in_units_ = 0;  ///< examples that were added to units_ and are not in totals_
};

}  // namespace cudp::cpu
