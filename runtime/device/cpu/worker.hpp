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
#include "runtime/device/cpu/layout.hpp"
#include "runtime/device/cpu/workspace.hpp"

namespace cudp::cpu {

// The use that is made of each example's gradient.

/// Its norm is taken, and nothing is added.
struct MeasureNorm {};
/// It is added as it is.
struct AddWhole {
  float* sum;  ///< [Storage::packed]
};
/// It is clipped, rounded to the grid and added in units of it.
struct AddClipped {
  ClipSettings clip;
  float inverse_grid;
};
/// Adds its direction, where the candidate is accepted. The worker that has an example reads its
/// norm, and writes the norm that it has now.
struct AddAccepted {
  ImportanceRule rule;
  RandomStream stream;  ///< Stream::acceptance
  float* norms;         ///< [examples of the data set]
  float inverse_grid;
};
/// It is transformed, clipped to norm 1, rounded and added.
struct AddTransformed {
  Coordinates coordinates;
  ClipSettings clip;
  float inverse_grid;
};
using GradientUse = std::variant<MeasureNorm, AddWhole, AddClipped, AddAccepted, AddTransformed>;

/// The facts about one example after its backward pass. They are private.
struct ExampleRecord {
  float loss = 0.0f;
  float squared_norm = 0.0f;
  bool clipped = false;
  bool finite = true;
};

/// One thread, and the passes over a chunk of examples in its memory.
class Worker {
 public:
  /// class_weights: of EngineSettings. Keeps the references.
  Worker(const CpuLayout& layout, const CpuKernels& kernels,
         std::span<const float> class_weights = {});

  /// Adds what `examples` contribute, at most CpuLayout::chunk of them, to units() and totals().
  /// use: one that adds by the grid. records: [examples.size()], or null.
  void add(const Dataset& data, std::span<const std::uint32_t> examples, const Weights& weights,
           const GradientUse& use, ExampleRecord* records);

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
  /// All passes over the examples in flight.
  void run_part(int count, const GradientUse& use, ExampleRecord* records);
  /// The sum that it adds to; nothing for one that does not.
  std::optional<GradientSum> sum_of(const GradientUse& use);
  void backward_together(int count);
  void backward_example(int example);
  /// The example's loss, and its gradient by the logits: for a use that has no bound of its own to
  /// put the weight behind, that of the weighted loss.
  float begin_backward(int example, const GradientUse& use);
  float class_weight(int example) const;
  /// Chooses an example's factors; weights are in them where the gradient is clipped. Fills in
  /// what the record says of its norm.
  void choose_factors(int example, const GradientUse& use, ExampleRecord& record);
  float squared_norm(int example);
  void add_example(int example, const GradientSum& sum);
  void add_together(int count, const GradientSum& sum);

  float* logits_of(int example) { return w_.value(layout_.edges.back(), example); }
  int groups() const { return layout_.network->groups; }

  const CpuLayout& layout_;
  std::span<const float> class_weights_;
  Workspace w_;
  AlignedVector<std::int32_t> units_;
  AlignedVector<std::int64_t> totals_;
  std::size_t in_units_ = 0;  ///< examples that were added to units_ and are not in totals_
};

}  // namespace cudp::cpu
