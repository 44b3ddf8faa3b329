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

/// Computes sums of clipped gradients for linear models with one output, in place of the code for
/// general networks. A single kernel call per group of examples reads the rows directly from the
/// data set: floats, bytes, or the compact form with numbers and codes (CodedRows). Symbols in this
/// class: `features` is the number of features, `numbers` is the number of features that CodedRows
/// stores as numbers, and d = features + 1 is the number of parameters: the weights, then the bias.
class LinearSum {
 public:
  /// Returns whether this class supports the network: a single dense layer with one output, and a
  /// loss that depends on that output only.
  static bool fits(const Network& network);

  /// Allocates the partial sums of the threads. Keeps references to its arguments. network: the
  /// linear model. layout: memory layout of the network. kernels: kernels for this CPU.
  /// class_weights: weight of each class, in [0, 1]; empty if all are 1. threads: number of threads
  /// that will call the kernels.
  LinearSum(const Network& network, const CpuLayout& layout, const CpuKernels& kernels,
            std::span<const float> class_weights, int threads);

  /// Computes the sum of the clipped gradients of a batch, and writes it to `sum`: Storage::packed
  /// integers in the order of the packed weights, which are multiples of the grid, the power of two
  /// 1 / use.inverse_grid. The result does not depend on the number of threads. data: any data set
  /// without texts. examples: indices of the batch's examples. parameters: [d], weights and bias.
  /// diagnostics: if not null, the examples' losses, gradient norms and counts, which are private,
  /// are added to it. team: threads that compute.
  void add_up(const Dataset& data, std::span<const std::uint32_t> examples,
              std::span<const float> parameters, const AddClipped& use, ThreadTeam& team,
              std::int64_t* sum, Diagnostics* diagnostics);

 private:
  /// One thread's partial sums of gradients. `units` has 32-bit sums over the current group of
  /// examples, `totals` 64-bit sums over all earlier groups. Both arrays have the same three
  /// sections, each padded to a multiple of 16 numbers. From index 0 on: the sums for all weights,
  /// [features + 1]. From index first_number_ on: the sums for those features that table rows in
  /// compact form (CodedRows) store as numbers. At index bias_: the sum for the bias.
  struct Part {
    AlignedVector<std::int32_t> units;
    AlignedVector<std::int64_t> totals;
  };

  /// Prepares the sum of a batch: chooses the layout of the threads' partial sums, and copies the
  /// weights. coded: description of table rows in compact form; empty if rows are stored as floats
  /// or bytes. parameters: [d], weights and bias.
  void prepare(const CodedRows& coded, std::span<const float> parameters);
  /// Adds the clipped gradients of one group of examples to a thread's 32-bit sums. of: the
  /// examples, and how they are clipped. units: the thread's sums. coded: description of table rows
  /// in compact form; empty if rows are stored as floats or bytes.
  void add(const Dataset& data, const CodedRows& coded, const LinearExamples& of,
           std::int32_t* units) const;
  /// Adds up the sums of all threads, writes the result to `sum`, and sets the threads' sums to 0.
  /// coded: description of table rows in compact form; empty if rows are stored as floats or bytes.
  void collect(const CodedRows& coded, std::int64_t* sum);

  const Network& network_;
  const CpuLayout& layout_;
  const CpuKernels& kernels_;
  std::span<const float> class_weights_;
  std::int64_t first_number_ = 0;
  std::int64_t bias_ = 0;
  std::vector<Part> parts_;  ///< one per thread
  /// Copies of the examples that each thread is processing, one object per thread; used only if the
  /// features are in a file.
  std::vector<FetchedExamples> fetched_;
  AlignedVector<std::int64_t> all_;
  AlignedVector<float> weights_;  ///< [features + 1, padded], weights; zero from `features` on
  /// Copies of the weights of those features that table rows in compact form store as numbers, in
  /// the order of these numbers, padded to whole SIMD registers.
  AlignedVector<float> number_weights_;
  /// Losses, gradient norms and counts of each group of examples (one group per kernel call); empty
  /// without diagnostics.
  std::vector<LinearFacts> facts_;
};

}  // namespace cudp::cpu
