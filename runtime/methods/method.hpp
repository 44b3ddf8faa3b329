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

/// Facts about a run that a method knows before it reads the data. All of them are public.
struct MethodContext {
  TrainConfig config;
  Network network;
  TrainingSize size;
  Arithmetic arithmetic;
  /// Releases charged to the same budget before the method's own: the noisy number of examples,
  /// unless it has a budget of its own, and the release that features need.
  std::vector<privacy::Release> before;
  /// Whether the run's key was lost once. If so, the number of its steps may have been chosen by
  /// looking at released values.
  bool key_was_lost = false;
  /// Split of the run's budget, if the noisy number of examples has a part of its own. epsilon and
  /// delta in `config` are then those of the other part.
  std::optional<privacy::CountSplit> split = {};
  /// Number of steps per epoch, if it is not the one that follows from the size. Set only for plans
  /// that bound the cost of other plans, and by which nothing is trained.
  std::optional<std::uint64_t> epoch_steps = {};
  /// Results of the accountant that the run has computed; null: none are kept.
  std::shared_ptr<privacy::AccountantMemo> memo = {};

  std::uint64_t steps_per_epoch() const {
    return epoch_steps.value_or(size.steps_per_epoch(config.batch));
  }
};

/// Data and services that a method trains with. They outlive the method.
struct TrainingInputs {
  const Dataset& train;
  const Backend& backend;
  SharedKey key;
  Gate& gate;               ///< uses the same generator and key
  Ranks* ranks = &alone();  ///< `train` is this rank's range
  /// Public weights to start from, [d]; NaN: the weight is drawn. Empty: all are drawn.
  std::span<const float> initial = {};
};

/// State of a method that a checkpoint keeps.
struct MethodState {
  nlohmann::ordered_json numbers;
  std::vector<std::pair<std::string, std::vector<float>>> arrays;

  /// Returns the array of that name; an empty one if there is none.
  const std::vector<float>& array(const std::string& name) const;
};

/// Names of the arrays in a state that have one number per example of this rank's range. They
/// depend on the rows and were never released. All other arrays follow from releases, and are the
/// same on all ranks.
inline constexpr std::array kByExample = {"norms"};
inline bool is_by_example(const std::string& array) {
  return std::ranges::find(kByExample, array) != kByExample.end();
}

/// Returns the state without the arrays kByExample. A run resumes from this part under a different
/// key than the one the state was made with, because the rows may have changed.
MethodState released_part(MethodState state);

/// A training algorithm. Each method is one file with its options, state, plan and part of the
/// certificate, and one row of methods/registry.cpp. A method is made before the data are read, and
/// throws InputError or BudgetError if settings and size do not allow training. Then it is started,
/// or restored; then it makes steps.
class Method {
 public:
  /// Value of steps() for a method that trains until its budget ends.
  static constexpr std::uint64_t kOpenEnded = std::numeric_limits<std::uint64_t>::max();

  Method() = default;
  Method(const Method&) = delete;
  Method& operator=(const Method&) = delete;
  virtual ~Method() = default;

  // Guarantee, known before the data are read.

  virtual double epsilon() const = 0;
  virtual double delta() const = 0;
  /// Returns the budget of a filter that all releases must pass; nullopt if the plan itself stays
  /// within epsilon.
  virtual std::optional<privacy::Budget> filter() const { return std::nullopt; }
  /// Returns the releases that are charged when the run begins, in addition to
  /// MethodContext::before. Not empty for a method that pays for everything at once.
  virtual std::vector<privacy::Release> releases_at_start() const { return {}; }
  /// Returns epsilon, at the same delta and noise, if neighbours differ by one example instead of a
  /// unit of several. It shows what the unit costs, and is no guarantee if releases depend on
  /// earlier ones.
  virtual double epsilon_of_one_example() const = 0;
  virtual std::uint64_t steps() const = 0;
  virtual std::uint64_t steps_per_epoch() const { return 1; }
  /// Describes in one line what the run guarantees and does.
  virtual std::string describe() const = 0;
  /// Returns reasons why the result must not be released; empty if it may be.
  virtual std::vector<std::string> obstacles() const { return {}; }

  // Run.

  /// Starts from the beginning. budget: contains everything that was charged until now.
  virtual void start(const TrainingInputs& inputs, const PrivacyBudget& budget) = 0;
  /// Resumes from `state`. Under a different key `state` must lack its arrays by example
  /// (released_part).
  virtual void restore(const TrainingInputs& inputs, const MethodState& state) = 0;
  virtual MethodState state() const = 0;
  /// Returns whether the ledger covers everything that a run has released when it has reported
  /// `step` steps and `epsilon` spent. Requires restore.
  virtual bool accounts_for(const privacy::Ledger&, std::uint64_t /*step*/,
                            double /*epsilon*/) const {
    return true;
  }
  /// Switches, after restore, to a key other than the one that the state was made with: everything
  /// after `step` is new and will be charged. Throws BudgetError if that is not possible.
  virtual void fresh_key(PrivacyBudget& budget, std::uint64_t step) = 0;

  /// Returns the total number of steps that the budget allows, if `step` are done. Throws
  /// BudgetError if no more are allowed.
  virtual std::uint64_t last_step(const PrivacyBudget&, std::uint64_t) const { return steps(); }
  /// Pays for steps from `step` to at most `until`, and for what must be released before them.
  /// Returns one past the last step that may be made: `step` if the budget ends here.
  virtual std::uint64_t authorise(PrivacyBudget& budget, std::uint64_t step,
                                  std::uint64_t until) = 0;
  /// Makes authorised steps. Passes the gate before their noise is drawn. Returns one past the last
  /// step made. It is less than `until` if a method that pays for releases as it makes them was
  /// refused.
  virtual std::uint64_t train(std::uint64_t step, std::uint64_t until) = 0;

  /// Returns the parameters of the model that is released.
  virtual std::vector<float> parameters() const = 0;

  // Reports. They are functions of public numbers and released values.

  /// Returns the learning rate of the last of `step` steps; 0 if step is 0.
  virtual double learning_rate(std::uint64_t step) const = 0;
  /// Returns a function that computes epsilon of the releases up to `step`. last: the epsilon is
  /// that of the whole run; before that a faster, looser bound suffices. The function owns copies
  /// of everything it needs: it may be called in another thread, while this one continues to train.
  virtual std::function<double()> spent(const privacy::Ledger& ledger, std::uint64_t step,
                                        bool last) const = 0;
  /// Returns an estimate of the total number of steps, if `step` are done.
  virtual double expected_steps(std::uint64_t) const { return static_cast<double>(steps()); }
  /// Returns the number of examples that a step processes, for a throughput.
  virtual double examples_per_step() const = 0;
  virtual Outcome outcome(std::uint64_t step) const { return {.steps = step}; }
  /// Returns the method's guarantee for the certificate. ledger: everything that was charged, which
  /// is more than planned if a key was lost.
  virtual privacy::Promise promise(const privacy::Ledger& ledger, std::uint64_t step) const = 0;
  /// Returns epsilon, at the same delta, for several units of privacy together, of a finished run;
  /// nullopt if the method states none.
  virtual std::optional<privacy::Groups> groups(const privacy::Ledger&) const {
    return std::nullopt;
  }
  /// Returns `ledger` with the charges to come until step `last`, if they are known ahead.
  virtual privacy::Ledger planned(privacy::Ledger ledger, std::uint64_t /*last*/) const {
    return ledger;
  }
  /// Returns private statistics since the last call, for --unsafe-diagnostics.
  virtual Diagnostics diagnostics() { return {}; }
};

/// Returns the obstacle of a method whose proof does not cover the last bits of what is released:
/// `what` is proved for real numbers only.
std::string real_numbers_obstacle(const std::string& what);

}  // namespace cudp
