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

/// Sums clipped gradients of linear models with one output. It replaces the workers, which support
/// any network, by one kernel per task of examples (kernels/fused/linear_sum.hpp). The kernel reads
/// coded rows, floats or bytes directly from the data set.
class LinearSum {
 public:
  /// Returns whether the network is one dense layer with one output and a loss of one score.
  static bool fits(const Network& network);

  /// Keeps the references. class_weights: see EngineSettings.
  LinearSum(const Network& network, const CpuLayout& layout, const CpuKernels& kernels,
            std::span<const float> class_weights, int threads);

  /// Writes the sum of the examples' contributions, in grid steps, to sum [Storage::packed]. The
  /// result does not depend on the number of threads. data: no texts. parameters: [d]. Adds the
  /// examples' private statistics to *diagnostics unless it is null.
  void add_up(const Dataset& data, std::span<const std::uint32_t> examples,
              std::span<const float> parameters, const AddClipped& use, ThreadTeam& team,
              std::int64_t* sum, Diagnostics* diagnostics);

 private:
  /// Sums of one thread, in three arrays that are each padded to a multiple of 16: of the features
  /// (codes, for coded rows), [features + 1]; from first_number_ on, of the numbers of coded rows;
  /// from bias_ on, of the bias.
  struct Part {
    AlignedVector<std::int32_t> units;
    AlignedVector<std::int64_t> totals;
  };

  /// Lays out the parts and copies the weights. coded: the format of coded rows; empty for other
  /// rows.
  void prepare(const CodedRows& coded, std::span<const float> parameters);
  /// Adds the contributions of one task to a thread's sums.
  void add(const Dataset& data, const CodedRows& coded, const LinearExamples& of,
           std::int32_t* units) const;
  /// Writes the sum of all parts to `sum`, and clears the parts.
  void collect(const CodedRows& coded, std::int64_t* sum);

  const Network& network_;
  const CpuLayout& layout_;
  const CpuKernels& kernels_;
  std::span<const float> class_weights_;
  std::int64_t first_number_ = 0;
  std::int64_t bias_ = 0;
  std::vector<Part> parts_;  ///< one per thread
  /// Copies of the examples of a task, if their features are in a file; one per thread.
  std::vector<FetchedExamples> fetched_;
  AlignedVector<std::int64_t> all_;
  AlignedVector<float> weights_;         ///< [features + 1], zero from `features` on
  AlignedVector<float> number_weights_;  ///< [numbers]
  std::vector<LinearFacts> facts_;       ///< one per task
};

}  // namespace cudp::cpu
