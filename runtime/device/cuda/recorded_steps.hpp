#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "runtime/device/cuda/engine_parts.hpp"
#include "runtime/device/cuda/ranked_sum.hpp"
#include "runtime/device/cuda/step_sum.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Records (captures) a training step as a CUDA graph and replays it for every step of a run. Keeps
/// references to the constructor's arguments.
class RecordedSteps {
 public:
  RecordedSteps(EngineParts& parts, StepSum& sum)
      : p_(parts),
        sum_(sum),
        ranked_(parts.gpu, parts.settings, parts.end, parts.tally, parts.state.size()) {}

  /// Discards the recorded CUDA graphs. Call it after another training set has been loaded.
  void reset();

  /// Allocates memory for steps with batches of up to `examples` examples. If this changes an
  /// address that the recorded CUDA graph uses, discards the graph.
  void reserve(std::int64_t examples);

  /// Runs steps.size() steps. cursor: the number of the first step, and the values that are the
  /// same for all steps. steps: the scalars of each step, such as learning rate and noise. If the
  /// clipping norm is adaptive, the device's clipping norm and noisy count of unclipped gradients
  /// of each step are written to `steps`. recipe: recipe of the steps.
  void run(const StepRecipe& recipe, const StepCursor& cursor, std::span<ListedStep> steps);

  /// Returns the totals of losses, gradient norms and counts of examples since the last call, and
  /// sets them to 0.
  Diagnostics take_diagnostics();

 private:
  /// A training step of a single rank (process), recorded as CUDA graphs; replaying them runs the
  /// step.
  struct Recorded {
    StepRecipe recipe;      ///< without the numbers that a CUDA graph reads from device memory
    std::int64_t capacity;  ///< largest batch that the CUDA graph can process [examples]
    /// CUDA graphs of the step: one or, if rows are streamed from the host, one for each buffer of
    /// rows.
    std::vector<Gpu::Recording> recordings;
    /// CUDA graphs that only start a step, i.e. provide its batch and its scalars; one for each of
    /// `recordings`. If there are none, each graph in `recordings` starts its own step. If there
    /// are, each graph in `recordings` also starts the following step. `starts` are then needed
    /// only for steps that the step before has not started: the first step of a run, of the batches
    /// drawn ahead, and of a buffer of rows, and the step after one that the host has completed
    /// (StepEnd::complete()).
    std::vector<Gpu::Recording> starts;
  };
  /// CUDA graphs of a step if there are several ranks (processes). If the devices add up the ranks'
  /// sums, `first` is the whole step. If the host adds them, `first` is the part of the step before
  /// this addition, and `second` the part after it. `first` has one graph, or one for each buffer
  /// of streamed rows.
  struct Joined {
    StepRecipe recipe;
    std::vector<Gpu::Recording> first;
    std::optional<Gpu::Recording> second;
  };

  bool is_alone() const { return p_.settings.ranks->alone(); }
  /// Returns the largest batch that the CUDA graphs of a step with this recipe must be able to
  /// process [examples]. An estimate that is too large costs little, because thread blocks without
  /// examples return at once.
  std::int64_t capacity_for(const StepRecipe& recipe) const;
  /// Launches a step. If batches are drawn in advance, requires that this step has been started;
  /// the last launch of this step then starts the next step. Otherwise the first launch starts this
  /// step. capacity: the largest batch that the launches can process [examples]. rows: device
  /// addresses of the batches and rows.
  void launch_step(const StepRecipe& recipe, std::int64_t capacity, const StepRows& rows);
  /// Records the launches of work(rows) as a CUDA graph and returns it. If rows are streamed from
  /// the host, returns one graph for each buffer of rows, with `rows` the addresses in that buffer.
  /// recipe: recipe of the steps.
  std::vector<Gpu::Recording> record_for_rows(const StepRecipe& recipe,
                                              const std::function<void(const StepRows&)>& work);
  /// Runs steps first, first + 1, ... on rows that are streamed from the host: copies their rows to
  /// the next buffer and replays the CUDA graphs for each step. Runs as many steps as fit into the
  /// buffer, at most `steps`, and returns their number. recipe: recipe of the steps.
  std::size_t replay_streamed(const StepRecipe& recipe, std::uint64_t first, std::size_t steps);
  /// Replays the CUDA graph that only starts a step (Recorded::starts), if there is one. Call it
  /// for a step that the step before it has not started. buffer: index of the buffer that has the
  /// step's rows; 0 if rows are not streamed.
  void replay_start(std::size_t buffer);
  /// Allocates ahead_, the memory for drawing the batches of several steps at once, if this is
  /// possible. It is not possible with importance sampling, where a batch depends on the results of
  /// earlier steps, and if rows are streamed from the host; ahead_ is then left empty. recipe:
  /// recipe of the steps.
  void prepare_ahead(const StepRecipe& recipe);
  /// Call before a graph of step number `step` is replayed: draws its batch and those of the steps
  /// after it, or prepares what the step itself needs to draw its batch. Does nothing and returns
  /// false if the batch has been drawn already, by this or an earlier call of run(). wanted: number
  /// of steps that will be replayed, from `step` on.
  bool draw_ahead(const Draw& draw, std::uint64_t step, std::size_t wanted);
  /// Records a step as CUDA graphs, unless there are graphs already for a recipe of the same kind
  /// that can process the largest batch seen so far.
  void record(const StepRecipe& recipe);
  void record_joined(const StepRecipe& recipe);
  void run_alone(const StepRecipe& recipe, const StepCursor& cursor, std::span<ListedStep> steps);
  /// Runs steps if there are several ranks, whose sums are added up by the devices or by the host.
  /// Waits after each step, because the host may have to compute some of the step's noise before
  /// the next step can begin. recipe: recipe of the steps. cursor: the number of the first step,
  /// and the values that are the same for all steps. steps: the scalars of each step.
  void run_joined(const StepRecipe& recipe, const StepCursor& cursor,
                  std::span<const ListedStep> steps);

  EngineParts& p_;
  StepSum& sum_;
  std::int64_t capacity_ = 0;  // smallest capacity that the batches seen so far require [examples]
  std::optional<DrawnAhead>
      ahead_;  // batches of several steps, drawn at once and kept over runs; recorded_ reads them
  std::optional<Recorded> recorded_;
  std::optional<Joined> joined_;
  RankedSum ranked_;  // used with several ranks
};

}  // namespace cudp::cuda::inline CUDP_SIMT
