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

/// Computes the norm of the gradient and adds nothing.
struct MeasureNorm {};
/// Adds the gradient unchanged.
struct AddWhole {
  float* sum;  ///< [Storage::packed], gradient is added to it
};
/// Clips the gradient, multiplies it by inverse_grid, rounds it to integers and adds these.
struct AddClipped {
  ClipSettings clip;
  float inverse_grid;
};
/// Importance sampling (DPIS): an example was drawn by its stored, older gradient norm. Accepts or
/// rejects it by the current norm, adds an accepted gradient divided by its norm, and stores the
/// current norm.
struct AddAccepted {
  ImportanceRule rule;
  RandomStream stream;  ///< random stream that decides the acceptance
  float* norms;         ///< [examples of the data set], norm stored for each
  float inverse_grid;
};
/// Coordinate-wise clipping (AdaCliP): transforms the gradient, clips it to norm 1, multiplies it
/// by inverse_grid, rounds it to integers and adds these.
struct AddTransformed {
  Coordinates coordinates;
  ClipSettings clip;
  float inverse_grid;
};
using GradientUse = std::variant<MeasureNorm, AddWhole, AddClipped, AddAccepted, AddTransformed>;

/// Private statistics of one example: loss and gradient norm before clipping.
struct ExampleRecord {
  float loss = 0.0f;
  float squared_norm = 0.0f;
  bool clipped = false;
  bool finite = true;
};

/// Runs the forward and backward passes of one thread's examples, in memory of its own. If the
/// features are in a file, each call copies them once, and computes norms and contributions from
/// that copy.
class Worker {
 public:
  /// class_weights: weight of each class (EngineSettings), or empty. Keeps references to its
  /// arguments.
  Worker(const CpuLayout& layout, const CpuKernels& kernels,
         std::span<const float> class_weights = {});

  /// Adds the contributions of `examples`, at most CpuLayout::chunk of them, to the sum in units()
  /// and totals(). use: one of AddClipped, AddAccepted, AddTransformed. Writes records
  /// [examples.size()] unless null.
  void add(const Dataset& data, std::span<const std::uint32_t> examples, const Weights& weights,
           const GradientUse& use, ExampleRecord* records);

  /// Computes the norms of the gradients of at most CpuLayout::chunk examples, [examples.size()]; 0
  /// for a gradient that is not finite.
  void norms(const Dataset& data, std::span<const std::uint32_t> examples, const Weights& weights,
             float* out);

  /// Computes the logits of at most CpuLayout::chunk examples, [examples.size()][outputs] without
  /// padding.
  void logits(const Dataset& data, std::span<const std::uint32_t> examples, const Weights& weights,
              float* out);

  /// Computes one example's unclipped gradient, packed, into `out` [Storage::packed], and its
  /// squared norm in each layer with parameters, [groups]. Returns its loss.
  float gradient(const Dataset& data, std::uint32_t example, const Weights& weights, float* out,
                 float* squared_norms);

  // Sum of the contributions since it was last cleared, as multiples of its grid,
  // [Storage::packed]. It is the sum of these two arrays, which the caller must add.
  std::int64_t* totals() { return totals_.data(); }
  std::int32_t* units() { return units_.data(); }

 private:
  /// Splits the examples into groups that fit the workspace. For each group, `count` examples from
  /// index `first` on, makes them the examples in flight and calls body(first, count).
  template <class Body>
  void for_each_part(const Dataset& data, std::span<const std::uint32_t> examples,
                     const Weights& weights, const Body& body);
  void forward(int count);
  /// Runs all passes over `count` examples, processed at once, and adds their gradients.
  void run_part(int count, const GradientUse& use, ExampleRecord* records);
  /// Returns the array to which gradients are added for this use; nullopt for MeasureNorm, which
  /// adds none.
  std::optional<GradientSum> sum_of(const GradientUse& use);
  void backward_together(int count);
  void backward_example(int example);
  /// Returns the example's loss, and computes the loss's gradient with respect to the logits.
  /// Multiplies that gradient by the class weight, except for AddClipped, where choose_factors()
  /// applies the weight after clipping, and AddWhole.
  float begin_backward(int example, const GradientUse& use);
  float class_weight(int example) const;
  /// Computes the factors of an example's gradient in the sum, including the class weight for
  /// clipped gradients, and sets the norm in its record.
  void choose_factors(int example, const GradientUse& use, ExampleRecord& record);
  float squared_norm(int example);
  void add_example(int example, const GradientSum& sum);
  void add_together(int count, const GradientSum& sum);

  float* logits_of(int example) { return w_.value(layout_.edges.back(), example); }
  int groups() const { return layout_.network->groups; }

  const CpuLayout& layout_;
  std::span<const float> class_weights_;
  Workspace w_;
  FetchedExamples fetched_;  ///< copies of the examples of a chunk, if their features are in a file
  /// Indices in the whole data set of the examples in flight. Workspace::examples are their indices
  /// in fetched_, if that is used.
  std::span<const std::uint32_t> numbers_;
  AlignedVector<std::int32_t> units_;
  AlignedVector<std::int64_t> totals_;
  /// Number of examples added to units_ since it was last added to totals_ and cleared.
  std::size_t in_units_ = 0;
};

}  // namespace cudp::cpu
