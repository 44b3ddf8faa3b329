#pragma once
// The CUDA engine. A step is recorded once as a CUDA graph and replayed for many steps, after which
// the host waits once. The host must also wait if double precision cannot decide how to round a
// pair of noise numbers: it then computes the pair itself (step_end.hpp). With a release observer
// (runtime/gate/release_observer.hpp) steps are launched one by one, and the host reads the
// released values after each step.
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/device/cuda/engine_parts.hpp"
#include "runtime/device/cuda/evaluation.hpp"
#include "runtime/device/cuda/norms.hpp"
#include "runtime/device/cuda/recorded_steps.hpp"
#include "runtime/device/cuda/step_sum.hpp"
#include "runtime/device/engine.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Engine on a CUDA device. Steps are recorded as CUDA graphs and replayed. With a release
/// observer, or in an audit, the host reads every released value, so steps are launched one by one
/// without graphs.
class DeviceEngine final : public Engine {
 public:
  DeviceEngine(Gpu gpu, const Network& network, const EngineSettings& settings,
               std::int64_t large_dense = kLargeDense, bool may_be_fused = true);

  /// Returns whether sums of gradients are computed by a fused kernel (the whole network in one
  /// launch), and not layer by layer.
  bool is_fused() const { return p_.fused.has_value(); }

  void load(const Dataset& train) override;
  void set_state(const TrainState& s) override { p_.set_train_state(s); }
  TrainState state() override { return p_.train_state(); }
  void run(const StepRecipe& recipe, std::uint64_t first,
           std::span<const StepScalars> scalars) override;
  /// Runs scalars.size() steps, from number `first` on, with an adaptive clipping norm. The device
  /// computes the clipping norm of the next step itself, so that the host need not wait after every
  /// step. rule: how the clipping norm is adapted. clip: clipping norm of the first step. scalars:
  /// learning rate, noise etc. of each step, before scalars_at() changes them for the step's
  /// clipping norm. count_noise: for each step, the noise that is added to its count of unclipped
  /// gradients.
  FollowedSteps run_following(const StepRecipe& recipe, std::uint64_t first,
                              std::span<const StepScalars> scalars, const ClipRule& rule,
                              float clip, std::span<const std::int64_t> count_noise) override;
  void measure_norms() override;
  std::vector<float> norms() override { return p_.norms.download(); }
  std::uint64_t norm_total(double max_norm, double grid) override;
  std::vector<float> logits(const Dataset& examples) override;
  PerExample per_example(std::span<const std::uint32_t> examples, bool gradients) override;
  std::vector<std::uint32_t> sampled(std::uint64_t step) override;
  Diagnostics diagnostics() override { return recorded_.take_diagnostics(); }

 private:
  /// Converts the scalars of each step (learning rate, noise, ...) to the struct that kernels read.
  /// Throws std::invalid_argument if a scalar is out of range. recipe: recipe of the steps.
  std::vector<ListedStep> listed(const StepRecipe& recipe, std::span<const StepScalars> scalars);

  /// Copy in device memory of the rows of some training examples, and the indices of these examples
  /// in the copy.
  struct RowsOfSome {
    std::vector<std::uint32_t> indices;
    DeviceData data;
    DeviceTrainingSet copies;  ///< owner of `data` if rows are streamed; otherwise empty
  };
  RowsOfSome rows_of(std::span<const std::uint32_t> examples);

  EngineParts p_;
  StepSum sum_;
  RecordedSteps recorded_;
  DeviceNorms norms_;
  DeviceEvaluation evaluation_;
  bool is_loaded_ = false;
};

}  // namespace cudp::cuda::inline CUDP_SIMT
