#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/common/precision.hpp"
#include "kernels/random/random.hpp"
#include "kernels/step/clip_rule.hpp"
#include "kernels/step/recipe.hpp"
#include "kernels/step/tally.hpp"
#include "models/model.hpp"
#include "runtime/base/random_key.hpp"
#include "runtime/config/evaluate_with.hpp"
#include "runtime/config/sum_by.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/device/audit_tap.hpp"
#include "runtime/ranks/ranks.hpp"

namespace cudp {

class ReleaseObserver;

/// State of a training: everything that its steps change. parameters: [d]. The other arrays: [d] or
/// empty.
struct TrainState {
  std::vector<float> parameters;
  std::vector<float> moment1;  ///< momentum buffer or Adam's first moment
  std::vector<float> moment2;  ///< Adam's second moment
  std::vector<float> average;  ///< EMA of the parameters
  double step_size_sum = 0.0;  ///< b^2 of the adaptive step size (StepRecipe::step_size)
  std::vector<float> mean;     ///< m and s of TransformedGradient
  std::vector<float> deviation;
  /// Norm of every example's gradient when it was last computed, [examples] or empty. Private: it
  /// must not leave a checkpoint.
  std::vector<float> norms;
};

/// Message if a batch exceeds the memory that a device has for it. The probability is below 1e-30
/// for any data.
inline constexpr const char* kBatchTooLarge =
    "a batch was larger than the device has memory for: the run cannot be used";

struct EngineSettings {
  /// Recipe that memory is laid out for. Steps may use a recipe with other numbers, but with the
  /// same kinds of draw, contribution and optimizer.
  StepRecipe recipe;
  Generator generator = Generator::chacha20;
  SharedKey key;
  /// Expected number of examples in a batch, a public number; 0 if unknown. CUDA computes from it
  /// how much memory to allocate and the largest batch of a CUDA graph. Results do not depend on
  /// it.
  double expected_batch = 0.0;
  /// Number of examples that the device processes at a time; 0 to choose automatically. Results do
  /// not depend on it.
  int micro_batch = 0;
  /// Precision of matrix products. tf32 is used for sufficiently large layers, on CUDA only.
  Precision precision = Precision::fp32;
  /// Whether evaluations on CUDA use cudp's own kernels or cuDNN's. An engine that uses cuDNN can
  /// evaluate a model, but not train it.
  EvaluateWith evaluate_with = EvaluateWith::ours;
  int threads = 0;  ///< number of CPU threads; 0 for all cores. Results do not depend on it.
  bool diagnostics = false;  ///< collect private statistics (--unsafe-diagnostics)
  /// Weight of each class in [0, 1], [classes]; empty if all are 1. An example of class c
  /// adds its clipped gradient times weight c, so it changes the sum by no more than without
  /// weights. Only its unweighted gradient decides whether it counts as clipped. With importance
  /// sampling or transformed gradients, where the bound follows from the gradient itself, the
  /// gradient is that of the loss times weight c.
  std::vector<float> class_weights = {};
  /// Canaries of an audit; null in every other training.
  std::shared_ptr<const AuditTap> audit = nullptr;
  /// Object that receives every released value (runtime/gate/release_observer.hpp); null if nothing
  /// does. Must outlive the engine.
  ReleaseObserver* release_observer = nullptr;
  int device = 0;  ///< number of the device; CUDA only
  /// Ranks (processes) that train one model together. Each has its own range of the training set
  /// (runtime/data/range.hpp), and all have the same parameters. Must outlive the engine.
  Ranks* ranks = &alone();
  SumBy sum_by = SumBy::automatic;  ///< how ranks add sums; CUDA only. Results do not depend on it.
  /// Receives a line about the device. May be empty.
  std::function<void(const std::string& line)> say = {};
};

/// Throws Error unless there are no class weights, or one in [0, 1] for each of the network's
/// classes.
void check_class_weights(const Network& network, const EngineSettings& settings);

/// Private statistics of the steps since they were last read. They never leave the process unless
/// the user passed --unsafe-diagnostics. A method that uses these numbers must add noise to them
/// first.
struct Diagnostics {
  std::int64_t loss_units = 0;   ///< sum of losses of the sampled examples [kTallyUnit]
  std::int64_t norm_units = 0;   ///< sum of gradient norms before clipping [kTallyUnit]
  std::uint64_t clipped = 0;     ///< number of finite gradients that were clipped
  std::uint64_t examples = 0;    ///< number of sampled examples
  std::uint64_t non_finite = 0;  ///< number of examples whose gradient is not finite

  double loss() const { return kTallyUnit * static_cast<double>(loss_units); }
  double norm() const { return kTallyUnit * static_cast<double>(norm_units); }

  Diagnostics& operator+=(const Diagnostics& d) {
    loss_units += d.loss_units;
    norm_units += d.norm_units;
    clipped += d.clipped;
    examples += d.examples;
    non_finite += d.non_finite;
    return *this;
  }

  /// Number of integers that to_words() writes.
  static constexpr int kWords = 5;
  /// Writes the statistics as integers, which ranks can add up, to words [kWords].
  void to_words(std::int64_t* words) const {
    words[0] = loss_units;
    words[1] = norm_units;
    words[2] = static_cast<std::int64_t>(clipped);
    words[3] = static_cast<std::int64_t>(examples);
    words[4] = static_cast<std::int64_t>(non_finite);
  }
  /// Returns the statistics that to_words() wrote, or a sum of several, [kWords].
  static Diagnostics of_words(const std::int64_t* words) {
    return {.loss_units = words[0],
            .norm_units = words[1],
            .clipped = static_cast<std::uint64_t>(words[2]),
            .examples = static_cast<std::uint64_t>(words[3]),
            .non_finite = static_cast<std::uint64_t>(words[4])};
  }
};

/// Results of steps whose clipping norm changed from step to step.
struct FollowedSteps {
  std::vector<StepScalars> scalars;  ///< scalars used in each step
  /// Released noisy count of the unclipped gradients of each step, in multiples of ClipRule::grid.
  std::vector<std::int64_t> noisy_counts;
  /// Private statistics of these steps, which Engine::diagnostics() does not include.
  Diagnostics diagnostics;
};

/// Returns the clipping norm after the steps: starts at `clip` and applies `rule` to the noisy
/// count of each step. given: the argument `scalars` of Engine::run_following(). Throws Error
/// unless each step used, to the last bit, the scalars that follow from the steps before it. If it
/// throws, no result of these steps may be used.
float check_followed(const FollowedSteps& steps, const ClipRule& rule, float clip,
                     std::span<const StepScalars> given);

/// Gradients, norms and losses of single examples, for tests and for methods that need them.
struct PerExample {
  std::vector<float> gradients;      ///< [n, d]; empty if not requested
  std::vector<float> squared_norms;  ///< [n, groups]
  std::vector<float> losses;         ///< [n]
};

/// Returns whether the examples have the input shape that the network expects and, for texts, its
/// vocabulary and word vectors.
bool fits(const Network& network, const Dataset& data);

/// Trains one network on one device: has the network's parameters, the training set and the
/// optimizer's state there.
class Engine {
 public:
  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  virtual ~Engine() = default;

  /// Loads the training set, which must outlive the engine, into the device's memory. Throws
  /// InputError if it does not fit the network.
  virtual void load(const Dataset& train) = 0;

  /// Sets the state of the training. An empty `norms` keeps the stored norms. Throws Error if the
  /// arrays' sizes do not fit the network and the optimizer.
  virtual void set_state(const TrainState& state) = 0;
  /// Returns a copy of the state. Private: it includes the stored norms.
  virtual TrainState state() = 0;

  /// Runs steps first, first + 1, ... of one recipe, a step for each element of `scalars`. An
  /// engine may record a step as a CUDA graph and replay it without the host. Returns when all
  /// steps are done. Each step
  ///   draws its batch by recipe.draw,
  ///   sums the examples' contributions by recipe.contribution (0 if one is not finite),
  ///   releases the sum: noise is added, and the sum is no longer private,
  ///   with recipe.step_size, increases b^2 by |g~|^2, then divides the learning rate by b,
  ///   takes the optimizer's step with g~ = the released sum / expected batch. For transformed
  ///   gradients g~ is first transformed back, and updates mean and deviation.
  ///
  /// Throws std::invalid_argument on a number out of range. Throws Error on a recipe that the
  /// memory was not laid out for, or (kBatchTooLarge) if a batch is too large.
  virtual void run(const StepRecipe& recipe, std::uint64_t first,
                   std::span<const StepScalars> scalars) = 0;

  /// Runs steps as run() does, and changes the clipping norm by `rule` after each step, starting
  /// with `clip`. The scalars of a step are scalars_at(rule, its clipping norm, its element of
  /// `scalars`). count_noise, [steps]: noise on each step's count of unclipped gradients, in
  /// multiples of rule.grid; the gate (runtime/gate/gate.hpp) draws it. Requires flat clipping, an
  /// engine that collects statistics (EngineSettings::diagnostics) and no release observer. The
  /// caller must check the result with check_followed().
  virtual FollowedSteps run_following(const StepRecipe& recipe, std::uint64_t first,
                                      std::span<const StepScalars> scalars, const ClipRule& rule,
                                      float clip, std::span<const std::int64_t> count_noise);

  /// Computes and stores the gradient norm of every training example at the current parameters.
  /// Requires a recipe with importance sampling.
  virtual void measure_norms() = 0;
  /// Returns the stored norms of this rank's examples. Private.
  virtual std::vector<float> norms() = 0;
  /// Returns the sum of the stored norms of this rank's examples, as a multiple of `grid`. Each
  /// norm is limited to max_norm and then rounded down to a multiple of `grid`: norm_units()
  /// (kernels/contribution/norm_total.hpp). Private.
  virtual std::uint64_t norm_total(double max_norm, double grid);

  /// Returns the model's logits at the current parameters, [examples, outputs]. Not to be called
  /// during run().
  virtual std::vector<float> logits(const Dataset& examples) = 0;

  /// Computes the unclipped gradients, norms and losses of examples of the training set, given by
  /// their indices. gradients: whether to return PerExample::gradients. Private.
  virtual PerExample per_example(std::span<const std::uint32_t> examples, bool gradients) = 0;
  /// Returns the batch that a step of EngineSettings::recipe draws, in ascending order. Requires
  /// Poisson draws.
  virtual std::vector<std::uint32_t> sampled(std::uint64_t step) = 0;
  /// Returns the private statistics of the steps since the last call, and clears them.
  virtual Diagnostics diagnostics() = 0;
};

/// Makes an engine on the CPU. Throws Error if the model is too large for 32-bit offsets.
std::unique_ptr<Engine> make_cpu_engine(const Network& network, const EngineSettings& settings);
/// Makes an engine on a CUDA device. Throws Error if this build or machine has none that is usable.
std::unique_ptr<Engine> make_cuda_engine(const Network& network, const EngineSettings& settings);

}  // namespace cudp
