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

/// Sums clipped gradients of linear models with one output. For these models it replaces the code
/// for general networks. It calls a single kernel per group of examples, which reads rows directly
/// from the data set: floats, bytes, or the compact form with numbers and codes (CodedRows).
class LinearSum {
 public:
  /// Returns whether this class supports the network: a single dense layer with one output, and a
  /// loss that depends on that output only.
  static bool fits(const Network& network);

  /// class_weights: weight of each class, in [0, 1]; empty if all are 1. Keeps references to its
  /// arguments.
  LinearSum(const Network& network, const CpuLayout& layout, const CpuKernels& kernels,
            std::span<const float> class_weights, int threads);

  /// Computes the sum of the examples' clipped gradients and writes it to sum [Storage::packed], as
  /// integer multiples of the grid, the power of two 1 / use.inverse_grid. The result does not
  /// depend on the number of threads. data: any data set without texts. examples: indices of the
  /// batch's examples. parameters: [d]. Adds the examples' losses, gradient norms and counts, which
  /// are private, to *diagnostics unless that pointer is null.
  void add_up(const Dataset& data, std::span<const std::uint32_t> examples,
              std::span<const float> parameters, const AddClipped& use, ThreadTeam& team,
              std::int64_t* sum, Diagnostics* diagnostics);

 private:
  /// Sums of one thread. `units` are 32-bit sums of the current group of examples, `totals` 64-bit
  /// sums of all groups. Both consist of three arrays, each padded to a multiple of 16. The first
  /// has the sums of the weights' gradients, [features + 1]. The second, from first_number_ on, has
  /// the sums for features that table rows in compact form (CodedRows) store as numbers. The third,
  /// from bias_ on, has the sum of the bias's gradient.
  struct Part {
    AlignedVector<std::int32_t> units;
    AlignedVector<std::int64_t> totals;
  };

  /// Chooses the layout of the threads' sums and copies the weights. coded: description of table
  /// rows in compact form; empty if rows are stored as floats or bytes.
  void prepare(const CodedRows& coded, std::span<const float> parameters);
  /// Adds the clipped gradients of one group of examples, described by `of`, to a thread's 32-bit
  /// sums.
  void add(const Dataset& data, const CodedRows& coded, const LinearExamples& of,
           std::int32_t* units) const;
  /// Adds up the sums of all threads, writes the result to `sum`, and sets the threads' sums to 0.
  void collect(const CodedRows& coded, std::int64_t* sum);

  const Network& network_;
  const CpuLayout& layout_;
  const CpuKernels& kernels_;
  std::span<const float> class_weights_;
  std::int64_t first_number_ = 0;
  std::int64_t bias_ = 0;
  std::vector<Part> parts_;  ///< one per thread
  /// If features are in a file: copies of the examples that a thread is processing, one object per
  /// thread.
  std::vector<FetchedExamples> fetched_;
  AlignedVector<std::int64_t> all_;
  AlignedVector<float> weights_;         ///< [features + 1], zero from `features` on
  AlignedVector<float> number_weights_;  ///< [numbers], weight of each number's feature
  std::vector<LinearFacts> facts_;       ///< one per task
};

}  // namespace cudp::cpu
