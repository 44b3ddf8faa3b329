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

class Witness;

/// Everything that training changes. Sizes: parameters [d]; the others [d] or empty.
struct TrainState {
  std::vector<float> parameters;
  std::vector<float> moment1;  ///< momentum buffer or Adam's first moment
  std::vector<float> moment2;  ///< Adam's second moment
  std::vector<float> average;  ///< EMA of the parameters
  double step_size_sum = 0.0;  ///< b^2 of StepRecipe::step_size
  std::vector<float> mean;     ///< m and s of a TransformedGradient
  std::vector<float> deviation;
  /// [examples] or empty: the norm of every example's gradient as it was last seen. Private: it
  /// must not leave a checkpoint.
  std::vector<float> norms;
};

/// The message if a batch is larger than the memory that a device has for it, which has a
/// probability below 1e-30 whatever the data.
inline constexpr const char* kBatchTooLarge =
    "a batch was larger than the device has memory for: the run cannot be used";

struct EngineSettings {
  /// Memory is laid out for it: the steps that are run may have other numbers, but not another kind
  /// of draw, contribution or optimizer.
  StepRecipe recipe;
  Generator generator = Generator::chacha20;
  SharedKey key;
  /// Examples that a batch is expected to have, a public number; 0 where it is not known. How much
  /// room CUDA has for candidates at first; results do not depend on it.
  double expected_batch = 0.0;
  /// Examples in flight on the device; 0 chooses. Results do not depend on it.
  int micro_batch = 0;
  /// tf32: layers that gain from it, on CUDA; the CPU has fp32 alone.
  Precision precision = Precision::fp32;
  /// CUDA only. cudnn: an engine that evaluates and does not train.
  EvaluateWith evaluate_with = EvaluateWith::ours;
  int threads = 0;           ///< CPU only; 0 takes every core. Results do not depend on it.
  bool diagnostics = false;  ///< keep private statistics (--unsafe-diagnostics)
  /// [classes], each in 0..1, or empty: all 1; CPU only. An example of class c adds its clipped
  /// gradient times weight c, so it moves the sum no farther than without weights, and counts as
  /// clipped by its gradient alone. Of candidates and transformed gradients, whose bound follows
  /// from the gradient itself, the gradient is that of the loss times weight c.
  std::vector<float> class_weights = {};
  /// Null in every training; CPU only.
  std::shared_ptr<const AuditTap> audit = nullptr;
  /// Who is shown what leaves each step (runtime/gate/witness.hpp), or null; outlives the engine.
  Witness* witness = nullptr;
  int device = 0;  ///< CUDA only: its number
  /// With whom the training set is shared: each has a range of it (runtime/data/range.hpp), and all
  /// the same state. Outlives the engine.
  Ranks* ranks = &alone();
  SumBy sum_by = SumBy::automatic;  ///< CUDA only. Results do not depend on it.
  /// Who is told a line about the device, or nobody.
  std::function<void(const std::string& line)> say = {};
};

/// Private statistics of the steps since they were last read. Never leaves the process unless the
/// user asked with --unsafe-diagnostics; a method that counts by them adds noise first.
struct Diagnostics {
  std::int64_t loss_units = 0;   ///< sum over sampled examples, in units of kTallyUnit
  std::int64_t norm_units = 0;   ///< sum of raw gradient norms
  std::uint64_t clipped = 0;     ///< of those that are finite
  std::uint64_t examples = 0;    ///< sampled
  std::uint64_t non_finite = 0;  ///< whose gradient is not finite

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

  /// As ranks add them up.
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

/// Steps that were made while the clipping norm moved.
struct FollowedSteps {
  std::vector<StepScalars> scalars;        ///< as each step had them
  std::vector<std::int64_t> noisy_counts;  ///< of each step, in units of ClipRule::grid: released
  Diagnostics seen;                        ///< private: what Engine::diagnostics() does not have
};

/// The clipping norm after the steps, by the rule and what they have released, from `clip` on.
/// given: what the engine was given. Throws Error where a step did not have, to the last bit, the
/// numbers that follow from the steps before it: nothing that comes of the run may be used then.
float check_followed(const FollowedSteps& steps, const ClipRule& rule, float clip,
                     std::span<const StepScalars> given);

/// For tests and for methods that need single examples.
struct PerExample {
  std::vector<float> gradients;      ///< [n, d], or empty if not asked for
  std::vector<float> squared_norms;  ///< [n, groups]
  std::vector<float> losses;         ///< [n]
};

/// Whether the examples are of the network's shape, words and word vectors.
bool fits(const Network& network, const Dataset& data);

/// One device with a network, a training set and an optimizer on it.
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

  /// Makes steps first, first + 1, ... of one recipe, a step for each element of `scalars`; an
  /// engine may record a step once and replay it without the host. Returns when they are done. Each
  ///   draws its batch by recipe.draw,
  ///   sums what the batch's examples add, by recipe.contribution; one that is not finite adds 0,
  ///   releases the sum: noise is added, and the sum is no longer private,
  ///   with recipe.step_size divides the learning rate by b, after b^2 has grown by |g~|^2,
  ///   takes the optimizer's step with g~ = the released sum / expected batch; of transformed
  ///   gradients g~ is brought back first, and moves mean and deviation.
  /// Throws std::invalid_argument on a number out of range, Error on a recipe that the memory was
  /// not laid out for, or (kBatchTooLarge) where a batch is too large.
  virtual void run(const StepRecipe& recipe, std::uint64_t first,
                   std::span<const StepScalars> scalars) = 0;

  /// Makes steps as run() does, whose clipping norm, from `clip` on, moves by `rule` after each. A
  /// step's numbers are scalars_at(rule, its clipping norm, its element of `scalars`).
  /// count_noise, [steps]: noise of each step's count, in units of the grid, drawn by the gate for
  /// this. For flat clipping by an engine that keeps statistics (EngineSettings::diagnostics) and
  /// has no witness. What it returns is for the caller to check by the rule.
  virtual FollowedSteps run_following(const StepRecipe& recipe, std::uint64_t first,
                                      std::span<const StepScalars> scalars, const ClipRule& rule,
                                      float clip, std::span<const std::int64_t> count_noise);

  /// Makes every example's gradient at the present weights and keeps its norm. For candidates.
  virtual void measure_norms() = 0;
  /// The norms as last seen, of this rank's examples. Private.
  virtual std::vector<float> norms() = 0;
  /// The sum of the norms as last seen in units of a grid, each cut to max_norm and then towards
  /// zero: norm_units (kernels/contribution/norm_total.hpp); of this rank's examples. Private.
  virtual std::uint64_t norm_total(double max_norm, double grid);

  /// The model's logits at the present parameters, [examples, outputs]; outside `run`.
  virtual std::vector<float> logits(const Dataset& examples) = 0;

  virtual PerExample per_example(std::span<const std::uint32_t> examples, bool gradients) = 0;
  /// The batch that a step of EngineSettings::recipe draws where that is Poisson's, ascending.
  virtual std::vector<std::uint32_t> sampled(std::uint64_t step) = 0;
  /// Reads and clears.
  virtual Diagnostics diagnostics() = 0;
};

std::unique_ptr<Engine> make_cpu_engine(const Network& network, const EngineSettings& settings);
/// Throws Error if this build or machine has no usable CUDA device, InputError for an audit.
std::unique_ptr<Engine> make_cuda_engine(const Network& network, const EngineSettings& settings);

}  // namespace cudp
