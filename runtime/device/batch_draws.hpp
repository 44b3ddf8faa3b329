#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/cpu_kernels.hpp"
#include "kernels/random/random.hpp"
#include "kernels/step/recipe.hpp"
#include "runtime/base/random_key.hpp"
#include "runtime/base/threads.hpp"
#include "runtime/data/numbering.hpp"

namespace cudp {

/// Batches of consecutive steps of one epoch, under random allocation: each example is drawn in
/// exactly one step of the epoch.
struct AllocatedSteps {
  std::uint64_t number = 0;  ///< index of the epoch
  std::uint64_t steps = 0;   ///< number of steps of the epoch
  std::uint64_t begin = 0;   ///< first of these steps, counted from the epoch's first
  std::vector<std::vector<std::uint32_t>> batches;  ///< [step - begin], ascending indices

  bool has(std::uint64_t epoch, std::uint64_t epoch_steps, std::uint64_t step) const {
    return number == epoch && steps == epoch_steps && step >= begin &&
           step - begin < batches.size();
  }
};

/// Draws batches on the host. A batch depends only on the random key, the step's number and, for
/// importance sampling, the stored gradient norms. A CUDA device draws the same batches.
class BatchDraws {
 public:
  /// Maximum total number of examples in the batches of several steps that allocate() draws at once
  /// (64 MB). The batch of a single step may be larger.
  static constexpr std::uint64_t kMaxAllocated = std::uint64_t{1} << 24;

  /// Prepares to draw from the examples of a data set. Keeps references to `data` and `team`.
  /// generator: kind of random generator. key: the run's random key. team: threads that draw.
  BatchDraws(const Dataset& data, Generator generator, SharedKey key, ThreadTeam& team);

  const Numbering& numbering() const { return numbering_; }

  /// Draws the batch of a step. Returns the indices of its examples, ascending; they stay valid
  /// until the next call. norms: stored gradient norm of every example, needed for importance
  /// sampling only. draw: how the batch is drawn.
  std::span<const std::uint32_t> draw(std::uint64_t step, const Draw& draw,
                                      std::span<const float> norms = {});

 private:
  RandomStream stream(Stream purpose, std::uint64_t step) const {
    return {generator_, key_.key(), purpose, step};
  }
  void draw_each(std::uint64_t step, const Draw& draw, std::span<const float> norms);
  void draw_allocated(const Allocation& allocation, std::uint64_t step);
  /// Draws batches of consecutive steps of an epoch by random allocation, and stores them in
  /// epoch_. Draws all steps of the epoch if there are at most kMaxBatches steps, and their batches
  /// are expected to have at most kMaxAllocated examples together. Otherwise draws as many steps
  /// from `begin` on as these two limits allow, but at least one. number: index of the epoch.
  /// steps: number of steps of the epoch. begin: first step that must be drawn, counted from the
  /// epoch's first step.
  void allocate(std::uint64_t number, std::uint64_t steps, std::uint64_t begin);

  Generator generator_;
  SharedKey key_;
  ThreadTeam& team_;
  const CpuKernels& k_;
  Numbering numbering_;
  std::vector<std::uint32_t> drawn_;                 // the batch
  std::vector<std::vector<std::uint32_t>> parts_;    // [task], part of the batch
  std::vector<std::vector<std::uint32_t>> scratch_;  // [thread], drawn examples of one range
  std::optional<AllocatedSteps> epoch_;
};

}  // namespace cudp
