#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "runtime/device/cuda/engine_parts.hpp"
#include "runtime/device/cuda/ranked_sum.hpp"
#include "runtime/device/cuda/step_sum.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Steps that are recorded once and replayed. Keeps references to what it is made of.
class RecordedSteps {
 public:
  RecordedSteps(EngineParts& parts, StepSum& sum)
      : p_(parts),
        sum_(sum),
        ranked_(parts.gpu, parts.settings, parts.end, parts.tally, parts.state.size()) {}

  /// To be called when another training set has been loaded.
  void start_anew();

  /// Makes room for micro-batches of so many examples.
  void reserve(std::int64_t examples);

  /// cursor: what is the same for all steps; the number of the first. Where the clipping norm
  /// moves, `steps` is what the device has made of them.
  void run(const StepRecipe& recipe, const StepCursor& cursor, std::span<ListedStep> steps);

  /// Statistics of training; reads and clears.
  Diagnostics take_diagnostics();

 private:
  struct Recorded {
    StepRecipe recipe;  ///< but for what lies in device memory
    std::int64_t room;  ///< examples of a batch at most
    Gpu::Recording recording;
  };
  /// A step of ranks: in two recordings, or in one where their devices add up.
  struct Joined {
    StepRecipe recipe;
    Gpu::Recording first;
    std::optional<Gpu::Recording> second;
  };

  bool is_alone() const { return p_.settings.ranks->alone(); }
  /// Examples that a batch of a recorded step has room for. Blocks without examples leave at once.
  std::int64_t room_of(const StepRecipe& recipe) const;
  void launch_step(const StepRecipe& recipe, std::int64_t room);
  /// Records a step, unless that has been done.
  void record(const StepRecipe& recipe);
  void record_joined(const StepRecipe& recipe);
  void run_alone(const StepRecipe& recipe, const StepCursor& cursor, std::span<ListedStep> steps);
  /// Steps whose sums the ranks add up. In one recording the devices do; in two the host does, in
  /// between. Either way it waits for each step: where a pair of normals is undecided, the next
  /// sum over ranks must not be made from what is left of this one.
  void run_joined(const StepRecipe& recipe, const StepCursor& cursor,
                  std::span<const ListedStep> steps);

  EngineParts& p_;
  StepSum& sum_;
  std::int64_t room_ = 0;  // that a batch was found to need
  std::optional<Recorded> recorded_;
  std::optional<Joined> joined_;
  RankedSum ranked_;  // where there are several ranks
};

}  // namespace cudp::cuda::inline CUDP_SIMT
