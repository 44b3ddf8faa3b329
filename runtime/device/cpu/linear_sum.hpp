#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu_kernels.hpp"
#include "runtime/base/aligned.hpp"
#include "runtime/base/threads.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/data/examples.hpp"
#include "runtime/device/cpu/layout.hpp"
#include "runtime/device/cpu/worker.hpp"
#include "runtime/device/engine.hpp"

namespace cudp::cpu {

/// Sums clipped gradients of linear models with one output. Replaces Worker, which supports any
/// network, for these models: calls a single kernel (kernels/fused/linear_sum.hpp) per group of
/// examples, which reads rows directly from the data set (floats, bytes, or numbers and codes).
class LinearSum {
 public:
  /// Returns whether the network is one dense layer with one output, and its loss depends on that
  /// output alone.
  static bool fits(const Network& network);

  /// class_weights: weight of each class (EngineSettings), or empty. Keeps references to its
  /// arguments.
  LinearSum(const Network& network, const CpuLayout& layout, const CpuKernels& kernels,
            std::span<const float> class_weights, int threads);

  /// Writes the sum of the examples' contributions to sum [Storage::packed], as integer multiples
  /// of the grid (1 / use.inverse_grid). The result does not depend on the number of threads. data:
  /// no texts. parameters: [d]. Adds the examples' private statistics to *diagnostics unless it is
  /// null.
  void add_up(const Dataset& data, std::span<const std::uint32_t> examples,
              std::span<const float> parameters, const AddClipped& use, ThreadTeam& team,
              std::int64_t* sum, Diagnostics* diagnostics);

 private:
  /// Sums of one thread: `units` of the current group of examples, `totals` of all groups. Both
  /// consist of three arrays, each padded to a multiple of 16: the sums of the weights' gradients,
  /// [features + 1]; from first_number_ on, the sums for features that rows in compact form
  /// (CodedRows) store as numbers; from bias_ on, that of the bias's gradient.
  struct Part {
    AlignedVector<std::int32_t> units;
    AlignedVector<std::int64_t> totals;
  };

  /// Chooses the layout of the threads' sums and copies the weights. coded: the format of rows in
  /// compact form; empty for other rows.
  void prepare(const CodedRows& coded, std::span<const float> parameters);
  /// Adds the contributions of one group of examples to a thread's Part::units.
  void add(const Dataset& data, const CodedRows& coded, const LinearExamples& of,
           std::int32_t* units) const;
  /// Adds up all threads' sums, writes the result to `sum`, and clears them.
  void collect(const CodedRows& coded, std::int64_t* sum);

  const Network& network_;
  const CpuLayout& layout_;
  const CpuKernels& kernels_;
  std::span<const float> class_weights_;
  std::int64_t first_number_ = 0;
  std::int64_t bias_ = 0;
  std::vector<Part> parts_;  ///< one per thread
  /// Copies of the examples that a thread processes, if their features are in a file; one per
  /// thread.
  std::vector<FetchedExamples> fetched_;
  AlignedVector<std::int64_t> all_;
  AlignedVector<float> weights_;         ///< [features + 1], zero from `features` on
  AlignedVector<float> number_weights_;  ///< [numbers], weight of each number's feature
  std::vector<LinearFacts> facts_;       ///< one per task
};

}  // namespace cudp::cpu
