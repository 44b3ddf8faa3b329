#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
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

/// Batches of the steps of an epoch, if examples are allocated to them.
struct AllocatedEpoch {
  std::uint64_t number = 0;
  std::uint64_t steps = 0;
  std::vector<std::size_t> first;       ///< [steps + 1], where each step's examples begin
  std::vector<std::uint32_t> examples;  ///< by step, ascending within each
};

/// Draws batches on the host. A batch depends on the key, on the step's number and, for importance
/// sampling, on stored norms alone, and is the one that a device draws.
class BatchDraws {
 public:
  /// Keeps references to `data` and `team`.
  BatchDraws(const Dataset& data, Generator generator, SharedKey key, ThreadTeam& team);

  const Numbering& numbering() const { return numbering_; }

  /// Draws the batch of a step: indices of examples, ascending, valid until the next call. norms:
  /// one per example, for importance sampling only.
  std::span<const std::uint32_t> draw(std::uint64_t step, const Draw& draw,
                                      std::span<const float> norms = {});

 private:
  RandomStream stream(Stream purpose, std::uint64_t step) const {
    return {generator_, key_.key(), purpose, step};
  }
  std::size_t draw_allocated(const Allocation& allocation, std::uint64_t step);
  /// Draws the batches of all steps of an epoch.
  void allocate(std::uint64_t number, std::uint64_t steps);

  Generator generator_;
  SharedKey key_;
  ThreadTeam& team_;
  const CpuKernels& k_;
  Numbering numbering_;
  /// [numbers of examples]. Drawing writes only the beginning of each thread's range, so most of it
  /// takes no physical memory.
  std::unique_ptr<std::uint32_t[]> drawn_;
  std::optional<AllocatedEpoch> epoch_;
};

}  // namespace cudp
