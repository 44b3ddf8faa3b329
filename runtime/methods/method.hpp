#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/model.hpp"
#include "privacy/certificate/promise.hpp"
#include "privacy/count_split.hpp"
#include "privacy/ledger.hpp"
#include "privacy/memo.hpp"
#include "runtime/base/random_key.hpp"
#include "runtime/config/config.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/gate/gate.hpp"
#include "runtime/gate/privacy_budget.hpp"
#include "runtime/methods/outcome.hpp"
#include "runtime/methods/training_size.hpp"

namespace cudp {

/// Public properties of a run from which a method is made, before the data are read.
struct MethodContext {
  TrainConfig config;
  Network network;
  TrainingSize size;
  Arithmetic arithmetic;
  /// Releases that are charged to the same budget before training starts: the noisy number of
  /// examples (unless it has its own part of the budget), and the noisy statistics from which
  /// features are computed (principal components, or means and variances of channels).
  std::vector<privacy::Release> before;
  /// Whether the run's random key was ever lost. Steps are then repeated, and the user, who has
  /// seen released values, decides when. So the number of steps may depend on released values.
  bool key_was_lost = false;
  /// Division of the run's budget into a part for releasing the noisy number of examples and a part
  /// for training. The epsilon and delta in `config` are then those for training. nullopt if the
  /// budget is not divided.
  std::optional<privacy::CountSplit> split = {};
  /// Number of steps per epoch; if empty, it is computed from the number of examples. It is set
  /// only to compute a bound on the cost of other plans, never for a training.
  std::optional<std::uint64_t> epoch_steps = {};
  /// Cache of the accountant's results in this run; null: no cache.
  std::shared_ptr<privacy::AccountantMemo> memo = {};

  std::uint64_t steps_per_epoch() const {
    return epoch_steps.value_or(size.steps_per_epoch(config.batch));
  }
};

/// Data, random key and devices that a method trains with. They outlive the method.
struct TrainingInputs {
  const Dataset& train;
  const Backend& backend;
  SharedKey key;
  Gate& gate;  ///< charges releases, and adds noise that it draws from `key` to sums on the host
  /// Processes that train one model together; `train` is this process's range of the data.
  Ranks* ranks = &alone();
  /// Public pre-trained weights to start from, one for each trained parameter; the entry NaN means
  /// that the weight is drawn at random. Empty: all are drawn.
  std::span<const float> initial = {};
};

/// State of a training method between two steps, which a checkpoint stores.
struct MethodState {
  nlohmann::ordered_json numbers;
  std::vector<std::pair<std::string, std::vector<float>>> arrays;

  /// Returns the array of that name; an empty array if there is none.
  const std::vector<float>& array(const std::string& name) const;
};

/// Names of those arrays of a MethodState that have one number per example of this rank's range of
/// the data. These depend on private rows and were never released. All other arrays are computed
/// from released values, and are the same on all ranks.
inline constexpr std::array kPerExampleArrays = {"norms"};
inline bool is_per_example(const std::string& array) {
  return std::ranges::find(kPerExampleArrays, array) != kPerExampleArrays.end();
}

/// Returns the state without the arrays that have one number per example (kPerExampleArrays). If a
/// run is resumed with another random key, only this part of its state is used, because the
/// training data may have changed.
MethodState released_part(MethodState state);

/// A training algorithm. Each method is one file with its options, state, privacy plan and part of
/// the certificate, and one row of methods/registry.cpp. A method is constructed before the data
/// are read, and throws InputError or BudgetError if the settings and the number of examples do not
/// allow the training. After that start() or restore() is called, then train().
class Method {
 public:
  /// Value of steps() for a method that trains until its budget ends.
  static constexpr std::uint64_t kOpenEnded = std::numeric_limits<std::uint64_t>::max();

  Method() = default;
  Method(const Method&) = delete;
  Method& operator=(const Method&) = delete;
  virtual ~Method() = default;

  // The privacy guarantee, known before the data are read.

  virtual double epsilon() const = 0;
  virtual double delta() const = 0;
  /// Returns the budget of a privacy filter. With a filter, every release must be admitted by it
  /// before it is made. Returns nullopt if the method needs no filter, because its releases are
  /// known in advance to stay within epsilon.
  virtual std::optional<privacy::Budget> filter() const { return std::nullopt; }
  /// Returns the releases of the training that are charged when the run begins. Empty if the method
  /// charges them step by step.
  virtual std::vector<privacy::Release> releases_at_start() const { return {}; }
  /// Returns the epsilon, at the same delta and noise, for neighbouring data sets that differ by
  /// one example instead of a whole unit of privacy with several examples. It is reported to show
  /// what the larger unit costs. It is not a guarantee if releases depend on earlier ones.
  virtual double epsilon_of_one_example() const = 0;
  virtual std::uint64_t steps() const = 0;
  virtual std::uint64_t steps_per_epoch() const { return 1; }
  /// Returns one line for the user: the privacy guarantee, and the main settings of the training.
  virtual std::string describe() const = 0;
  /// Returns reasons why the trained model must not be released; empty if it may be.
  virtual std::vector<std::string> obstacles() const { return {}; }

  // Training.

  /// Initialises the training at step 0. budget: the run's privacy budget, with all charges so far.
  virtual void start(const TrainingInputs& inputs, const PrivacyBudget& budget) = 0;
  /// Initialises the training with a checkpoint's state. If the run's random key differs from the
  /// one with which `state` was made, `state` must not contain arrays with one number per example
  /// (use released_part()).
  virtual void restore(const TrainingInputs& inputs, const MethodState& state) = 0;
  virtual MethodState state() const = 0;
  /// Returns whether the ledger has charges for everything that the run has released up to `step`,
  /// the number of steps made. The last argument is the epsilon that the run reported as spent.
  /// Requires that restore() was called.
  virtual bool accounts_for(const privacy::Ledger&, std::uint64_t /*step*/,
                            double /*epsilon*/) const {
    return true;
  }
  /// Prepares the training to continue at `step` with a new random key, after the run's key was
  /// lost. Requires that restore() was called. Steps from `step` on count as new releases and are
  /// charged again. Throws BudgetError if a new key is not possible, e.g. because all releases were
  /// charged in advance and only once.
  virtual void fresh_key(PrivacyBudget& budget, std::uint64_t step) = 0;

  /// Returns the total number of steps that the budget allows. Throws BudgetError if it is not more
  /// than the number of steps done (second argument).
  virtual std::uint64_t last_step(const PrivacyBudget&, std::uint64_t) const { return steps(); }
  /// Charges the budget for steps `step` to `until` - 1, and for releases that must precede these
  /// steps. May charge fewer steps, for instance only those of the current epoch, or those that the
  /// budget allows. Returns the index of the first step that is not charged: `step` if the budget
  /// is spent.
  virtual std::uint64_t authorise(PrivacyBudget& budget, std::uint64_t step,
                                  std::uint64_t until) = 0;
  /// Makes steps `step` to `until` - 1, which authorise() has charged. The gate checks each step
  /// before its noise is drawn. Returns the index after the last step made. It is less than `until`
  /// only if the method charges its releases one by one and the budget is spent.
  virtual std::uint64_t train(std::uint64_t step, std::uint64_t until) = 0;

  /// Returns the current values of all trained parameters of the model that is released.
  virtual std::vector<float> parameters() const = 0;

  // Reports. They are computed from public numbers and released values.

  /// Returns the learning rate of the last of the first `step` steps; 0 if step is 0.
  virtual double learning_rate(std::uint64_t step) const = 0;
  /// Returns a function that computes the epsilon spent after `step` steps. ledger: everything that
  /// was charged. last: whether the run ends at this step; if not, a faster, looser bound suffices.
  /// The function owns copies of everything it needs, so another thread may call it while this one
  /// continues to train.
  virtual std::function<double()> spent(const privacy::Ledger& ledger, std::uint64_t step,
                                        bool last) const = 0;
  /// Returns an estimate of the run's total number of steps. Argument: number of steps done.
  virtual double expected_steps(std::uint64_t) const { return static_cast<double>(steps()); }
  /// Returns the expected number of examples that a step processes; used to report the throughput.
  virtual double examples_per_step() const = 0;
  virtual Outcome outcome(std::uint64_t step) const { return {.steps = step}; }
  /// Returns the method's privacy guarantee for the certificate. ledger: everything that was
  /// charged. If the random key was lost and steps were repeated with a new one, the ledger has
  /// more charges than were planned. step: number of steps made.
  virtual privacy::Promise promise(const privacy::Ledger& ledger, std::uint64_t step) const = 0;
  /// Returns the epsilon of a finished run, at the same delta, for several units of privacy
  /// together (group privacy); nullopt if the method states none.
  virtual std::optional<privacy::Groups> groups(const privacy::Ledger&) const {
    return std::nullopt;
  }
  /// Returns `ledger` with the charges of future steps before `last` added, if the method knows
  /// them in advance; otherwise `ledger` itself.
  virtual privacy::Ledger planned(privacy::Ledger ledger, std::uint64_t /*last*/) const {
    return ledger;
  }
  /// Returns exact, private statistics of the steps since the last call, such as the number of
  /// clipped gradients. Only for --unsafe-diagnostics; they must not be released.
  virtual Diagnostics diagnostics() { return {}; }

  /// Calls Engine::read_all_rows() for the steps from number `step` on, if the method has an engine
  /// that makes them. Returns its result. Requires that start() or restore() was called.
  virtual bool read_all_rows(std::uint64_t /*step*/, const RowUse&) { return false; }
};

/// Returns the reason not to release a model of a method whose privacy proof assumes real numbers
/// and does not cover rounding. what: name of the mechanism, for the text.
std::string real_numbers_obstacle(const std::string& what);

}  // namespace cudp
