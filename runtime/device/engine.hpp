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

struct RowUse;
class ReleaseObserver;

/// State of a training: everything that its steps change. parameters has one element per trained
/// parameter, [d]. Each of the other arrays is [d], or empty if the optimizer or the kind of
/// clipping does not need it.
struct TrainState {
  std::vector<float> parameters;
  std::vector<float> moment1;  ///< momentum buffer or Adam's first moment
  std::vector<float> moment2;  ///< Adam's second moment
  std::vector<float> average;  ///< EMA of the parameters
  double step_size_sum = 0.0;  ///< b^2 of the adaptive step size (StepRecipe::step_size)
  std::vector<float> mean;     ///< m and s of TransformedGradient
  std::vector<float> deviation;
  /// Norm of every example's gradient when it was last computed, [examples]; empty unless
  /// importance sampling is used. Private: the norms may be saved in checkpoints, but must not be
  /// published.
  std::vector<float> norms;
};

/// Error message if a batch is larger than the memory that a device has for it. The probability of
/// such a batch is below 1e-30, whatever the data are.
inline constexpr const char* kBatchTooLarge =
    "a batch was larger than the device has memory for: the run cannot be used";

/// Settings with which an engine is made for a training.
struct EngineSettings {
  /// Recipe of the steps (how a batch is drawn, how gradients are clipped and added, the
  /// optimizer). The engine allocates memory for it. A step may use a recipe with other numbers,
  /// but of the same kinds of draw, contribution and optimizer.
  StepRecipe recipe;
  Generator generator = Generator::chacha20;
  SharedKey key;
  /// Expected number of examples in a batch, a public number; 0 if unknown. On CUDA it determines
  /// how much memory is allocated, and the largest batch that a CUDA graph can process. Results do
  /// not depend on it.
  double expected_batch = 0.0;
  /// Number of examples that the device processes at a time (a micro-batch); 0 to choose it
  /// automatically. Results do not depend on it.
  int micro_batch = 0;
  /// Precision of matrix products. tf32 is used on CUDA only, and there for sufficiently large
  /// layers.
  Precision precision = Precision::fp32;
  /// Whether evaluations on CUDA use cudp's own kernels, or cuDNN's. An engine that uses cuDNN can
  /// evaluate a model, but cannot train it.
  EvaluateWith evaluate_with = EvaluateWith::ours;
  int threads = 0;  ///< number of CPU threads; 0 for all cores. Results do not depend on it.
  bool diagnostics = false;  ///< collect private statistics (--unsafe-diagnostics)
  /// Weight of each class in [0, 1], [classes]; empty if all are 1. The clipped gradient of an
  /// example is multiplied by the weight of its class, which cannot increase the sensitivity. A
  /// gradient counts as clipped if its clip factor before this multiplication is below 1.
  /// Exception: with importance sampling or transformed gradients, the loss is multiplied by the
  /// weight instead, before the gradient's norm is computed.
  std::vector<float> class_weights = {};
  /// Canaries of an audit (examples with a chosen gradient); null in every training that is not
  /// audited.
  std::shared_ptr<const AuditTap> audit = nullptr;
  /// Object that is called with every value that the engine releases, e.g. to record it; null if
  /// there is none. Must outlive the engine.
  ReleaseObserver* release_observer = nullptr;
  int device = 0;  ///< number of the device; CUDA only
  /// Ranks (processes) that train one model together. Each has its own range of the training set,
  /// and all have the same parameters. Must outlive the engine.
  Ranks* ranks = &alone();
  SumBy sum_by = SumBy::automatic;  ///< how ranks add sums; CUDA only. Results do not depend on it.
  /// Function that is called with lines for the user about the device. May be empty.
  std::function<void(const std::string& line)> say = {};
  /// Number of steps of the whole training, a public number; 0 if unknown. On the CPU, rows of
  /// coming steps may then be read in advance. Results do not depend on it.
  std::uint64_t steps = 0;
};

/// Throws Error unless settings.class_weights is empty, or has one weight in [0, 1] for each class
/// of the network.
void check_class_weights(const Network& network, const EngineSettings& settings);

/// Totals of losses, gradient norms and counts over the steps since the last reading. They have no
/// noise and never leave the process, unless the user passed --unsafe-diagnostics. A training
/// method that uses them must add noise to them first.
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

  /// Number of integers into which to_words() converts these totals.
  static constexpr int kWords = 5;
  /// Writes the totals to words [kWords] as integers, so that the totals of several ranks
  /// (processes) can be added up.
  void to_words(std::int64_t* words) const {
    words[0] = loss_units;
    words[1] = norm_units;
    words[2] = static_cast<std::int64_t>(clipped);
    words[3] = static_cast<std::int64_t>(examples);
    words[4] = static_cast<std::int64_t>(non_finite);
  }
  /// Returns the totals that to_words() wrote to words [kWords]. The words may also be sums over
  /// the words of several ranks (processes).
  static Diagnostics of_words(const std::int64_t* words) {
    return {.loss_units = words[0],
            .norm_units = words[1],
            .clipped = static_cast<std::uint64_t>(words[2]),
            .examples = static_cast<std::uint64_t>(words[3]),
            .non_finite = static_cast<std::uint64_t>(words[4])};
  }
};

/// Results of steps that ran with an adaptive clipping norm, which may change after every step.
struct FollowedSteps {
  std::vector<StepScalars> scalars;  ///< scalars used in each step
  /// Noisy count, released by each step, of the gradients that were not clipped; as a multiple of
  /// ClipRule::grid.
  std::vector<std::int64_t> noisy_counts;
  /// Totals of losses, norms and counts of the steps that ran with the adaptive clipping norm;
  /// Engine::diagnostics() does not include them. They have no noise, and must not be published.
  Diagnostics diagnostics;
};

/// Checks the steps of Engine::run_following(), which ran with an adaptive clipping norm, and
/// returns the clipping norm after them. The check repeats the adaptation: starting with `clip`, it
/// applies `rule` to the noisy count of each step. given: the argument `scalars` of
/// run_following(). Throws Error unless each step used, to the last bit, the scalars that follow
/// from the steps before it; the results of the steps must then not be used.
float check_followed(const FollowedSteps& steps, const ClipRule& rule, float clip,
                     std::span<const StepScalars> given);

/// Gradients, gradient norms and losses of single examples, for tests and for methods that need
/// them. They have no noise, and must not be published.
struct PerExample {
  std::vector<float> gradients;      ///< [n, d]; empty if not requested
  std::vector<float> squared_norms;  ///< [n, groups]
  std::vector<float> losses;         ///< [n]
};

/// Returns whether the examples have the input shape that the network expects. For texts, also
/// whether they have the vocabulary and the word vectors that it expects.
bool fits(const Network& network, const Dataset& data);

/// Trains one network on one device. It keeps the network's parameters, the training set and the
/// optimizer's state there.
class Engine {
 public:
  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  virtual ~Engine() = default;

  /// Loads `train`, the training set, into the device's memory. The training set must outlive the
  /// engine. Throws InputError if its examples do not have the shape that the network expects.
  virtual void load(const Dataset& train) = 0;

  /// Sets the state of the training. If state.norms is empty, the stored norms stay as they are.
  /// Throws Error if an array does not have the size that the network and the optimizer need.
  virtual void set_state(const TrainState& state) = 0;
  /// Returns a copy of the state of the training. Private, because it includes the stored gradient
  /// norms.
  virtual TrainState state() = 0;

  /// Runs steps number first, first + 1, ... of one recipe, one step for each element of `scalars`,
  /// and returns when all are done. An engine may record a step as a CUDA graph and replay it
  /// without the host. A step has five parts:
  ///  1. The engine draws the batch as recipe.draw requires.
  ///  2. It sums the examples' contributions, which recipe.contribution defines. A contribution
  ///     that is not finite counts as 0.
  ///  3. It adds noise to the sum. The noisy sum counts as released, i.e. it may be published. In
  ///     the following, g~ is the released sum / expected batch size.
  ///  4. If recipe.step_size is set, it divides the learning rate by b, where b^2 grows with |g~|^2
  ///     in each step (StepSizeSettings).
  ///  5. It makes the optimizer's update with g~. For transformed gradients, g~ is first
  ///     transformed back, and also updates their mean and standard deviation.
  ///
  /// Throws std::invalid_argument if a number is out of range. Throws Error if memory was not
  /// allocated for this kind of recipe, or, with the message kBatchTooLarge, if a batch is too
  /// large.
  virtual void run(const StepRecipe& recipe, std::uint64_t first,
                   std::span<const StepScalars> scalars) = 0;

  /// Runs steps as run() does, but changes the clipping norm after each step by `rule`. clip:
  /// clipping norm of the first step. scalars: scalars s of each step before the adaptation; the
  /// step uses scalars_at(rule, c, s), where c is its clipping norm. count_noise: for each step the
  /// noise on its count of unclipped gradients, in multiples of rule.grid; runtime/gate/gate.hpp
  /// draws it. Requires flat clipping, EngineSettings::diagnostics, and no release observer. The
  /// caller must check the result with check_followed().
  virtual FollowedSteps run_following(const StepRecipe& recipe, std::uint64_t first,
                                      std::span<const StepScalars> scalars, const ClipRule& rule,
                                      float clip, std::span<const std::int64_t> count_noise);

  /// Computes the gradient norm of every training example at the current parameters, and stores it
  /// for later steps. Requires a recipe with importance sampling.
  virtual void measure_norms() = 0;
  /// Returns the stored gradient norms of this rank's (process's) examples. They have no noise, and
  /// must not be published.
  virtual std::vector<float> norms() = 0;
  /// Returns the sum of the stored gradient norms of this rank's (process's) examples, as an
  /// integer multiple of `grid`. Each norm is limited to max_norm and rounded down to a multiple of
  /// `grid` before it is added. The sum has no noise, and must not be published.
  virtual std::uint64_t norm_total(double max_norm, double grid);

  /// Returns the model's logits for the examples at the current parameters, [examples, outputs].
  /// Must not be called during run().
  virtual std::vector<float> logits(const Dataset& examples) = 0;

  /// Computes the losses, the norms of the unclipped gradients and, if `gradients` is set, the
  /// gradients themselves of the training examples with these indices. They have no noise, and must
  /// not be published.
  virtual PerExample per_example(std::span<const std::uint32_t> examples, bool gradients) = 0;
  /// Returns the indices, ascending, of the examples that step number `step` draws with the recipe
  /// of EngineSettings. Requires Poisson sampling.
  virtual std::vector<std::uint32_t> sampled(std::uint64_t step) = 0;
  /// Returns the totals of losses, gradient norms and counts over the steps since the last call,
  /// and sets them to 0. They are exact, without noise, so they must not be published.
  virtual Diagnostics diagnostics() = 0;

  /// Reads all rows of the training set from their file once, in order, and passes them to `use`.
  /// Does so only if the engine can copy the rows of its first steps in the same pass. Returns
  /// whether all rows were read and copied. If not, `use` may have received some of the rows, and
  /// the first steps read their rows without such a copy. Call it before the first step. step:
  /// number of the first step. draw: how the steps draw their batches. Results do not depend on
  /// this call.
  virtual bool read_all_rows(std::uint64_t /*step*/, const Draw& /*draw*/, const RowUse& /*use*/) {
    return false;
  }
};

/// Makes an engine on the CPU. Throws Error if the model is too large for 32-bit offsets.
std::unique_ptr<Engine> make_cpu_engine(const Network& network, const EngineSettings& settings);
/// Makes an engine on a CUDA device. Throws Error if this build does not support CUDA, or this
/// machine has no device that can be used.
std::unique_ptr<Engine> make_cuda_engine(const Network& network, const EngineSettings& settings);

}  // namespace cudp
