#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "kernels/common/precision.hpp"
#include "kernels/contribution/clip.hpp"
#include "kernels/contribution/coordinates.hpp"
#include "kernels/contribution/importance.hpp"
#include "kernels/random/random.hpp"
#include "kernels/step/step_size.hpp"
#include "kernels/step/update.hpp"
#include "models/model.hpp"
#include "runtime/base/random_key.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/device/audit_tap.hpp"

namespace cudp {

/// Everything that training changes. Sizes: parameters [d]; the others [d] or empty.
struct TrainState {
  std::vector<float> parameters;
  std::vector<float> moment1;  ///< momentum buffer or Adam's first moment
  std::vector<float> moment2;  ///< Adam's second moment
  std::vector<float> average;  ///< EMA of the parameters
  double step_size_sum = 0.0;  ///< b^2 of Engine::adapt_learning_rate
  std::vector<float> mean;     ///< of EngineSettings::coordinates
  std::vector<float> deviation;
  /// [examples] or empty: the norm of every example's gradient as it was last seen. Private: it
  /// must not leave a checkpoint.
  std::vector<float> norms;
};

/// Where a batch is larger than PrivacyPlan::largest_sum, or than the device holds.
inline constexpr const char* kBatchTooLarge =
    "a batch was larger than the plan allows for: the run cannot be used";

struct EngineSettings {
  ClipSettings clip;
  OptimizerSettings optimizer;
  StepSizeSettings step_size;  ///< of adapt_learning_rate
  /// Coordinate-wise clipping; the clipping norm is then 1, flat.
  CoordinateSettings coordinates;
  bool importance = false;    ///< keep norms, for importance sampling
  bool keep_average = false;  ///< EMA of the weights, TrainState::average
  Generator generator = Generator::chacha20;
  SharedKey key;
  std::uint64_t sampling_threshold = 0;  ///< see PrivacyPlan
  /// A public bound on the examples of a sum; see PrivacyPlan.
  std::uint64_t largest_sum = std::uint64_t{1} << 16;
  /// Examples in flight on the device; 0 chooses. Results do not depend on it.
  int micro_batch = 0;
  /// tf32: layers that gain from it, on CUDA; the CPU has fp32 alone.
  Precision precision = Precision::fp32;
  int threads = 0;           ///< CPU only; 0 takes every core. Results do not depend on it.
  bool diagnostics = false;  ///< keep private statistics (--unsafe-diagnostics)
  /// Null in every training; CPU only.
  std::shared_ptr<const AuditTap> audit = nullptr;
};

/// Private statistics of the steps since they were last read. Never leaves the process unless the
/// user asked with --unsafe-diagnostics; a method that counts by them adds noise first.
struct Diagnostics {
  double loss = 0.0;             ///< sum over sampled examples
  double norm = 0.0;             ///< sum of raw gradient norms
  std::uint64_t clipped = 0;     ///< of those that are finite
  std::uint64_t examples = 0;    ///< sampled
  std::uint64_t non_finite = 0;  ///< whose gradient is not finite

  Diagnostics& operator+=(const Diagnostics& d) {
    loss += d.loss;
    norm += d.norm;
    clipped += d.clipped;
    examples += d.examples;
    non_finite += d.non_finite;
    return *this;
  }
};

struct Accuracy {
  std::uint64_t correct = 0;
  std::uint64_t total = 0;
  double mean_loss = 0.0;
  double value() const {
    return total ? static_cast<double>(correct) / static_cast<double>(total) : 0.0;
  }
};

/// For tests and for methods that need single examples.
struct PerExample {
  std::vector<float> gradients;      ///< [n, d], or empty if not asked for
  std::vector<float> squared_norms;  ///< [n, groups]
  std::vector<float> losses;         ///< [n]
};

/// One device with a network, a training set and an optimizer on it. A method composes
/// the verbs of a step; `run` may record them once and replay them without the host.
class Engine {
 public:
  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  virtual ~Engine() = default;

  /// Makes the training set resident. Throws InputError if it does not fit the network.
  virtual void load(const Dataset& train) = 0;

  virtual void set_state(const TrainState& state) = 0;
  virtual TrainState state() = 0;

  /// Runs steps first, first + 1, ... with the given scalars; `step` is called with this engine and
  /// says what a step does. Returns when they are done.
  virtual void run(std::uint64_t first, std::span<const StepScalars> scalars,
                   const std::function<void(Engine&)>& step) = 0;

  /// The clipping norm of the steps that follow, in place of EngineSettings::clip's; finite, > 0.
  /// The sum's grid follows it. Outside `run`.
  virtual void set_clip_norm(float max_norm) = 0;

  // Importance sampling (kernels/contribution/importance.hpp), outside `run`.

  /// Makes every example's gradient at the present weights and keeps its norm.
  virtual void measure_norms() = 0;
  /// The norms as last seen. Private.
  virtual std::vector<float> norms() = 0;
  /// For the steps that follow.
  virtual void set_importance(const ImportanceRule& rule) = 0;

  // The verbs; to be called inside `run` only.

  /// Poisson: every example independently with the plan's rate. An empty batch is legal.
  virtual void sample_batch() = 0;
  /// Every example independently with its own probability, by the norm last seen.
  virtual void sample_candidates() = 0;
  /// sum <- sum of gradient / norm over the candidates that are accepted by their norm now. All
  /// candidates' norms are kept.
  virtual void sum_accepted_directions() = 0;
  /// sum <- sum over the batch of clip(gradient). A non-finite example contributes nothing.
  virtual void sum_clipped_gradients() = 0;
  /// sum <- sum over the batch of clip((gradient - mean) / scale); see coordinates.hpp.
  virtual void sum_coordinate_clipped_gradients() = 0;
  /// Divides the step's learning rate by b, after b^2 has grown by the squared norm of g~, which
  /// is what add_noise_and_update is about to release; see step_size.hpp.
  virtual void adapt_learning_rate() = 0;
  /// Adds noise to the sum, divides by the expected batch, and takes the optimizer's step.
  virtual void add_noise_and_update() = 0;
  /// The same for a sum of transformed gradients, which is brought back first: g~ = scale (sum +
  /// noise) / b + mean. Afterwards mean and deviation follow g~.
  virtual void add_noise_restore_and_update() = 0;

  /// Test accuracy and mean loss, with the averaged weights if asked for and kept.
  virtual Accuracy evaluate(const Dataset& test, bool averaged) = 0;

  virtual PerExample per_example(std::span<const std::uint32_t> examples, bool gradients) = 0;
  /// The batch that `step` draws, ascending.
  virtual std::vector<std::uint32_t> sampled(std::uint64_t step) = 0;
  /// Reads and clears.
  virtual Diagnostics diagnostics() = 0;
};

std::unique_ptr<Engine> make_cpu_engine(const Network& network, const EngineSettings& settings);
/// Throws Error if this build or machine has no usable CUDA device, InputError for an audit.
std::unique_ptr<Engine> make_cuda_engine(const Network& network, const EngineSettings& settings);

}  // namespace cudp
