#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/clipping/clip.hpp"
#include "kernels/cpu_kernels.hpp"
#include "kernels/random/importance.hpp"
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

  /// Adds the clipped gradients of `examples`, at most CpuLayout::chunk of them, to the float32
  /// partial sum, and rounds it into totals(). coordinates: null for the gradients as they are.
  /// acceptance: null for clipping.
  /// records: [examples.size()], or null.
  void add_clipped(const Dataset& data, std::span<const std::uint32_t> examples,
                   const Weights& weights, const ClipSettings& clip, const Coordinates* coordinates,
                   const Acceptance* acceptance, double inverse_grid, ExampleRecord* records);

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

  /// Sum of what was rounded, in units of the grid, [Storage::packed].
  double* totals() { return totals_.data(); }

 private:
  /// Calls body(first, count) with `count` of the examples in flight, from number `first` on, until
  /// all have been.
  template <class Body>
  void for_each_part(const Dataset& data, std::span<const std::uint32_t> examples,
                     const Weights& weights, const Body& body);
  void forward(int count);
  /// All passes over the examples in flight. clip and acceptance: at most one; without, gradients
  /// are added as they are. sum: [Storage::packed], or null.
  void run_part(int count, const ClipSettings* clip, const Acceptance* acceptance, float* sum,
                ExampleRecord* records);
  void backward_together(int count);
  void backward_example(int example);
  /// Returns the example's squared norm.
  float choose_factors(int example, const ClipSettings* clip, const Acceptance* acceptance);
  float squared_norm(int example);
  void add_example(int example, float* sum);
  void add_together(int count, float* sum);

  float* logits_of(int example) { return w_.value(layout_.edges.back(), example); }
  int groups() const { return layout_.network->groups; }

  const CpuLayout& layout_;
  Workspace w_;
  AlignedVector<float> partial_;
  AlignedVector<double> totals_;
};

}  // namespace cudp::cpu
