#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "kernels/contribution/importance.hpp"
#include "kernels/cpu_kernels.hpp"
#include "runtime/base/aligned.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/data/examples.hpp"
#include "runtime/device/cpu/layout.hpp"
#include "runtime/device/cpu/workspace.hpp"

namespace cudp::cpu {

// Ways to use an example's gradient: alternatives of GradientUse.

/// Tells a Worker what to do with an example's gradient: compute its norm, and add nothing to a
/// sum.
struct MeasureNorm {};
/// Tells a Worker what to do with an example's gradient: add it to an array, without clipping or
/// rounding.
struct AddWhole {
  float* sum;  ///< array of Storage::packed floats to which the gradient is added
};
/// Tells a Worker what to do with an example's gradient: clip it, multiply it by inverse_grid,
/// round it to integers and add these to a sum. The integers are multiples of the grid, 1 /
/// inverse_grid.
struct AddClipped {
  ClipSettings clip;
  float inverse_grid;
};
/// Tells a Worker what to do with an example's gradient in importance sampling (DPIS). The example
/// was drawn with a probability that follows from its stored, older gradient norm. The worker
/// accepts or rejects it by its current norm, and stores that norm. An accepted gradient is divided
/// by its norm, multiplied by inverse_grid, rounded to integers and added to a sum.
struct AddAccepted {
  ImportanceRule rule;
  RandomStream stream;  ///< random stream that decides the acceptance
  float* norms;         ///< [examples of the data set], norm stored for each
  float inverse_grid;
};
/// Tells a Worker what to do with an example's gradient in coordinate-wise clipping (AdaCliP):
/// transform it to (gradient - m) / scale, clip the result to norm 1, multiply it by inverse_grid,
/// round it to integers and add these to a sum.
struct AddTransformed {
  Coordinates coordinates;
  ClipSettings clip;
  float inverse_grid;
};
using GradientUse = std::variant<MeasureNorm, AddWhole, AddClipped, AddAccepted, AddTransformed>;

/// Loss and gradient norm (before clipping) of one example, and whether its gradient was clipped
/// and is finite. These have no noise, and must not be published.
struct ExampleRecord {
  float loss = 0.0f;
  float squared_norm = 0.0f;
  bool clipped = false;
  bool finite = true;
};

/// Runs the forward and backward passes of the examples that one thread processes, in memory of its
/// own. If the features are in a file, each call copies the features of its examples once, and
/// computes both norms and contributions from that copy.
class Worker {
 public:
  /// Allocates the memory of a worker. Keeps references to its arguments. layout: memory layout of
  /// the network. kernels: kernels for this CPU. class_weights: weight of each class, by which an
  /// example's gradient is multiplied; empty if there are no weights.
  Worker(const CpuLayout& layout, const CpuKernels& kernels,
         std::span<const float> class_weights = {});

  /// Computes the contributions of `examples` (indices in the data set), at most CpuLayout::chunk
  /// of them, and adds them to this worker's sums, units() and totals(). use: one of AddClipped,
  /// AddAccepted, AddTransformed. Unless `records` is null, writes each example's loss, norm etc.
  /// to records [examples.size()].
  void add(const Dataset& data, std::span<const std::uint32_t> examples, const Weights& weights,
           const GradientUse& use, ExampleRecord* records);

  /// Computes the gradient norms of `examples` (indices in the data set), at most CpuLayout::chunk
  /// of them. Writes them to out [examples.size()]; 0 for a gradient that is not finite.
  void norms(const Dataset& data, std::span<const std::uint32_t> examples, const Weights& weights,
             float* out);

  /// Computes the logits of `examples` (indices in the data set), at most CpuLayout::chunk of them.
  /// Writes them to out [examples.size()][outputs], without padding.
  void logits(const Dataset& data, std::span<const std::uint32_t> examples, const Weights& weights,
              float* out);

  /// Computes one example's unclipped gradient and writes it to `out`, an array of Storage::packed
  /// floats in the order of the packed weights. Writes the squared norm of each trained layer's
  /// part of the gradient to squared_norms, one number per trained layer. Returns the example's
  /// loss.
  float gradient(const Dataset& data, std::uint32_t example, const Weights& weights, float* out,
                 float* squared_norms);

  // Two arrays of Storage::packed integers, whose sum totals()[i] + units()[i] is the sum of all
  // contributions since the arrays were last set to 0, as a multiple of the grid. The caller adds
  // the two and sets both to 0 (SumUnits).
  std::int64_t* totals() { return totals_.data(); }
  std::int32_t* units() { return units_.data(); }

 private:
  /// Divides `examples` (indices in the data set) into parts that fit the workspace, and processes
  /// one part after the other: sets up the workspace, then calls body(first, count) for the `count`
  /// examples that begin at examples[first].
  template <class Body>
  void for_each_part(const Dataset& data, std::span<const std::uint32_t> examples,
                     const Weights& weights, const Body& body);
  void forward(int count);
  /// Runs the forward and backward passes of the first `count` examples of the workspace at once,
  /// and treats their gradients as `use` requires, e.g. adds them to the sum. Unless `records` is
  /// null, writes the loss, norm etc. of example e of the workspace to records[e], e < count.
  void run_part(int count, const GradientUse& use, ExampleRecord* records);
  /// Returns the array to which gradients are added; nullopt for MeasureNorm, which adds none. use:
  /// how gradients are added.
  std::optional<GradientSum> sum_of(const GradientUse& use);
  void backward_together(int count);
  void backward_example(int example);
  /// Computes the loss of example number `example` of the workspace, and its gradient with respect
  /// to the logits. Returns the loss. Multiplies the gradient by the weight of the example's class,
  /// with two exceptions: for AddClipped, choose_factors() applies the weight after clipping, and
  /// AddWhole uses no weights. use: how gradients are added.
  float begin_backward(int example, const GradientUse& use);
  float class_weight(int example) const;
  /// Computes the factors by which the gradient of example number `example` of the workspace is
  /// multiplied in the sum, one per layer, as `use` requires; for AddClipped they include the
  /// weight of the example's class. Writes to `record` the gradient's squared norm, whether it is
  /// finite, and whether one of the factors (before class weights) is below 1.
  void choose_factors(int example, const GradientUse& use, ExampleRecord& record);
  float squared_norm(int example);
  void add_example(int example, const GradientSum& sum);
  void add_together(int count, const GradientSum& sum);

  float* logits_of(int example) { return w_.value(layout_.edges.back(), example); }
  int groups() const { return layout_.network->groups; }

  const CpuLayout& layout_;
  std::span<const float> class_weights_;
  Workspace w_;
  /// Copies of the examples of one call, if their features are in a file.
  FetchedExamples fetched_;
  /// Indices in the data set of the examples that are being processed. If the features are in
  /// memory, Workspace::examples has the same indices. If they are in a file, Workspace::examples
  /// has the examples' indices in fetched_ instead.
  std::span<const std::uint32_t> numbers_;
  AlignedVector<std::int32_t> units_;
  AlignedVector<std::int64_t> totals_;
  /// Number of examples whose contributions are in the 32-bit sums units_ but not yet in the 64-bit
  /// sums totals_. When it reaches a limit, units_ is added to totals_ and set to 0.
  std::size_t in_units_ = 0;
};

}  // namespace cudp::cpu
