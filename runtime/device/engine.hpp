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
  /// Recipe that memory is laid out for. Steps may use other numbers, but not another kind of draw,
  /// contribution or optimizer.
  StepRecipe recipe;
  Generator generator = Generator::chacha20;
  SharedKey key;
  /// Expected number of examples in a batch, a public number; 0 if unknown. CUDA chooses the size
  /// of memory and of recorded steps by it. Results do not depend on it.
  double expected_batch = 0.0;
  /// Number of examples that the device processes at a time; 0 to choose automatically. Results do
  /// not depend on it.
  int micro_batch = 0;
  /// Precision of matrix products. tf32: for layers that gain from it; CUDA only.
  Precision precision = Precision::fp32;
  /// Kernels that compute predictions in an evaluation: this library's own or cuDNN's. CUDA only;
  /// cuDNN requires an engine that does not train.
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
  /// Release observer (runtime/gate/release_observer.hpp), or null. Must outlive the engine.
  ReleaseObserver* release_observer = nullptr;
  int device = 0;  ///< number of the device; CUDA only
  /// Ranks that share the training set. Each has a range of it (runtime/data/range.hpp), and all
  /// have the same state. Must outlive the engine.
  Ranks* ranks = &alone();
  SumBy sum_by = SumBy::automatic;  ///< how ranks add sums; CUDA only. Results do not depend on it.
  /// Receives a line about the device. May be empty.
  std::function<void(const std::string& line)> say = {};
};

/// Throws Error unless there are no class weights, or one in [0, 1] for each of the network's
/// classes.
void check_class_weights(const Network& network, const EngineSettings& settings);

/// Private statistics of the steps since they were last read. They never leave the process unless
/// the user passed --unsafe-diagnostics. A method that uses such counts adds noise first.
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

  /// Conversion to and from integers that ranks can add, [kWords].
  static constexpr int kWords = 5;
  void to_words(std::int64_t* words) const {
    words[0] = loss_units;
    words[1] = norm_units;
    words[2] = static_cast<std::int64_t>(clipped);
    words[3] = static_cast<std::int64_t>(examples);
    words[4] = static_cast<std::int64_t>(non_finite);
  }
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
  std::vector<StepScalars> scalars;        ///< scalars used in each step
  std::vector<std::int64_t> noisy_counts;  ///< noisy count of each step [ClipRule::grid]: released
  Diagnostics diagnostics;  ///< private statistics that Engine::diagnostics() does not include
};

/// Returns the clipping norm after the steps, computed from `clip`, the rule and the steps' noisy
/// counts. given: the scalars that the engine was given. Throws Error if a step did not use
/// exactly, to the last bit, the numbers that follow from the steps before it. Nothing from the run
/// may be used then.
float check_followed(const FollowedSteps& steps, const ClipRule& rule, float clip,
                     std::span<const StepScalars> given);

/// Gradients, norms and losses of single examples, for tests and for methods that need them.
struct PerExample {
  std::vector<float> gradients;      ///< [n, d]; empty if not requested
  std::vector<float> squared_norms;  ///< [n, groups]
  std::vector<float> losses;         ///< [n]
};

/// Returns whether the examples have the network's shape, words and word vectors.
bool fits(const Network& network, const Dataset& data);

/// Device with a network, a training set and an optimizer on it.
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
  /// engine may record a step once and replay it without the host. Returns when they are done. Each
  /// step
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
  /// `scalars`). count_noise, [steps]: noise of each step's count in grid steps, drawn by the gate
  /// for this. Requires flat clipping, an engine that collects statistics
  /// (EngineSettings::diagnostics) and no release observer. The caller must check the result with
  /// check_followed().
  virtual FollowedSteps run_following(const StepRecipe& recipe, std::uint64_t first,
                                      std::span<const StepScalars> scalars, const ClipRule& rule,
                                      float clip, std::span<const std::int64_t> count_noise);

  /// Computes every example's gradient at the present weights and stores its norm. Requires a
  /// recipe with importance sampling.
  virtual void measure_norms() = 0;
  /// Returns the stored norms of this rank's examples. Private.
  virtual std::vector<float> norms() = 0;
  /// Returns the sum of the stored norms of this rank's examples, in grid steps. Each is limited to
  /// max_norm and then rounded towards zero: norm_units() (kernels/contribution/norm_total.hpp).
  /// Private.
  virtual std::uint64_t norm_total(double max_norm, double grid);

  /// Returns the model's logits at the present parameters, [examples, outputs]. Not to be called
  /// during run().
  virtual std::vector<float> logits(const Dataset& examples) = 0;

  /// Computes the unclipped gradients, norms and losses of examples of the training set, given by
  /// their indices. gradients: whether to return PerExample::gradients. Private.
  virtual PerExample per_example(std::span<const std::uint32_t> examples, bool gradients) = 0;
  /// Returns the batch that a step of EngineSettings::recipe draws, in ascending order. Requires
  /// Poisson draws.
  virtual std::vector<std::uint32_t> sampled(std::uint64_t step) = 0;
  /// Returns the statistics and clears them.
  virtual Diagnostics diagnostics() = 0;
};

/// Makes an engine on the CPU. Throws Error if the model is too large for 32-bit offsets.
std::unique_ptr<Engine> make_cpu_engine(const Network& network, const EngineSettings& settings);
/// Makes an engine on a CUDA device. Throws Error if this build or machine has none that is usable.
std::unique_ptr<Engine> make_cuda_engine(const Network& network, const EngineSettings& settings);

}  // namespace cudp
