#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu_kernels.hpp"
#include "runtime/base/aligned.hpp"
#include "runtime/base/threads.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/device/cpu/layout.hpp"
#include "runtime/device/cpu/worker.hpp"
#include "runtime/device/engine.hpp"

namespace cudp::cpu {

/// Sums of clipped gradients of linear models with one output: in place of the workers, which take
/// any network, one kernel for a whole task of examples (kernels/fused/linear_sum.hpp), on rows of
/// a table by their codes, on floats and bytes as they lie in the data set.
class LinearSum {
 public:
  /// Whether the network is one dense layer with one output and a loss of one score.
  static bool fits(const Network& network);

  /// Keeps the references. class_weights: of EngineSettings.
  LinearSum(const Network& network, const CpuLayout& layout, const CpuKernels& kernels,
            std::span<const float> class_weights, int threads);

  /// sum <- what the examples add, in units of the grid, [Storage::packed]: the same whatever the
  /// number of threads. data: no texts; parameters [d]. Their private statistics are added to
  /// *diagnostics where it is not null.
  void add_up(const Dataset& data, std::span<const std::uint32_t> examples,
              std::span<const float> parameters, const AddClipped& use, ThreadTeam& team,
              std::int64_t* sum, Diagnostics* diagnostics);

 private:
  /// A thread's sums: first those of features, [features + 1] (of coded rows by their codes), from
  /// first_number_ those of coded rows' numbers, from bias_ the bias's. Every part is padded to 16.
  struct Part {
    AlignedVector<std::int32_t> units;
    AlignedVector<std::int64_t> totals;
  };

  /// Lays out the parts, and copies the weights. coded: without numbers where rows are not coded.
  void prepare(const CodedRows& coded, std::span<const float> parameters);
  /// Units of one task, added to a thread's.
  void add(const Dataset& data, const CodedRows& coded, const LinearExamples& of,
           std::int32_t* units) const;
  /// sum <- all parts, which are cleared.
  void collect(const CodedRows& coded, std::int64_t* sum);

  const Network& network_;
  const CpuLayout& layout_;
  const CpuKernels& kernels_;
  std::span<const float> class_weights_;
  std::int64_t first_number_ = 0;
  std::int64_t bias_ = 0;
  std::vector<Part> parts_;  ///< one a thread
  AlignedVector<std::int64_t> all_;
  AlignedVector<float> weights_;         ///< [features + 1], zeros from the last one on
  AlignedVector<float> number_weights_;  ///< [numbers]
  std::vector<LinearFacts> facts_;       ///< one a task
};

}  // namespace cudp::cpu
