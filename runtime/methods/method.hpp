#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/model.hpp"
#include "privacy/count_split.hpp"
#include "privacy/ledger.hpp"
#include "runtime/base/random_key.hpp"
#include "runtime/config/config.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/gate/gate.hpp"
#include "runtime/gate/privacy_budget.hpp"
#include "runtime/methods/outcome.hpp"
#include "runtime/methods/promise.hpp"
#include "runtime/methods/training_size.hpp"

namespace cudp {

/// The facts about a run that a method knows before it looks at the data. All of them are public.
struct MethodContext {
  TrainConfig config;
  Network network;
  TrainingSize size;
  Arithmetic arithmetic;
  /// Charged before the method's own releases, to the same budget: the noisy number of examples
  /// unless it has a part of its own, and what features rest on.
  std::vector<privacy::Release> before;
  /// The run's key was lost once: how many steps it makes may have been chosen by what it showed.
  bool key_was_lost = false;
  /// The parts of the run's budget, where the noisy number of examples has one; then the config's
  /// epsilon and delta are those of the other part.
  std::optional<privacy::CountSplit> split = {};
  /// Steps of an epoch where they are not the size's: of a plan that is made to bound what others
  /// cost, and that nothing is trained by.
  std::optional<std::uint64_t> epoch_steps = {};

  std::uint64_t steps_per_epoch() const {
    return epoch_steps.value_or(size.steps_per_epoch(config.batch));
  }
};

/// The data and services that a method trains with. They outlive it.
struct TrainingInputs {
  const Dataset& train;
  const Backend& backend;
  SharedKey key;
  Gate& gate;               ///< of the same generator and key
  Ranks* ranks = &alone();  ///< `train` is this rank's range
};

/// All that a method must remember across a crash.
struct MethodState {
  nlohmann::ordered_json numbers;
  std::vector<std::pair<std::string, std::vector<float>>> arrays;

  /// The array of that name; empty where there is none.
  const std::vector<float>& array(const std::string& name) const;
};

/// The arrays of a state that have a number for each example of this rank's range: functions of
/// rows that were never released. All others follow from releases, and are the same on all ranks.
inline constexpr std::array kByExample = {"norms"};
inline bool is_by_example(const std::string& array) {
  return std::ranges::find(kByExample, array) != kByExample.end();
}

/// The state without these arrays: what a run goes on with under a key that is not the one that the
/// state was made with, since other rows may be there.
MethodState released_part(MethodState state);

/// A training algorithm. One file a method: its options, state, plan and part of the certificate;
/// a row of methods/registry.cpp makes it known. It is made before the data are looked at, and
/// throws InputError or BudgetError where settings and size do not allow a training; then it is
/// started, or restored; then it makes steps.
class Method {
 public:
  /// steps() of a method that goes on until its budget ends.
  static constexpr std::uint64_t kOpenEnded = std::numeric_limits<std::uint64_t>::max();

  Method() = default;
  Method(const Method&) = delete;
  Method& operator=(const Method&) = delete;
  virtual ~Method() = default;

  // What it promises, known before the data are looked at.

  virtual double epsilon() const = 0;
  virtual double delta() const = 0;
  /// The budget of a filter that all releases must pass; empty where the plan stays within epsilon.
  virtual std::optional<privacy::Budget> filter() const { return std::nullopt; }
  /// The releases that are charged when the run begins, besides MethodContext::before: for a method
  /// that pays for everything at once.
  virtual std::vector<privacy::Release> releases_at_start() const { return {}; }
  /// Epsilon at the same delta that the same noise gives where neighbours differ by one example,
  /// not by a unit of several: what the unit costs. No promise, where releases follow from earlier
  /// ones.
  virtual double epsilon_of_one_example() const = 0;
  virtual std::uint64_t steps() const = 0;
  virtual std::uint64_t steps_per_epoch() const { return 1; }
  /// One line for people: what the run promises and does.
  virtual std::string describe() const = 0;
  /// Why the result must not be released, in words; empty where it may.
  virtual std::vector<std::string> obstacles() const { return {}; }

  // A run.

  /// Starts from the beginning. budget: with what was charged until now.
  virtual void start(const TrainingInputs& inputs, const PrivacyBudget& budget) = 0;
  /// Goes on from where `state` was taken, which lacks its arrays by example under another key.
  virtual void restore(const TrainingInputs& inputs, const MethodState& state) = 0;
  virtual MethodState state() const = 0;
  /// Whether the ledger knows of all that a run has released when it has reported `step` steps and
  /// `epsilon` spent. After restore.
  virtual bool accounts_for(const privacy::Ledger&, std::uint64_t /*step*/,
                            double /*epsilon*/) const {
    return true;
  }
  /// After restore, with a key that is not the one that the state was made with: what follows
  /// `step` is new and will be charged. Throws BudgetError where that is not possible.
  virtual void fresh_key(PrivacyBudget& budget, std::uint64_t step) = 0;

  /// Steps in all that the budget allows, `step` being done. Throws BudgetError where that is none
  /// more.
  virtual std::uint64_t last_step(const PrivacyBudget&, std::uint64_t) const { return steps(); }
  /// Pays for the steps from `step` on, at most to `until`, and for what must be released before
  /// them. Returns one past the last one that may be made: `step` where the budget ends here.
  virtual std::uint64_t authorise(PrivacyBudget& budget, std::uint64_t step,
                                  std::uint64_t until) = 0;
  /// Makes authorised steps; the gate is asked again before their noise is drawn. Returns one past
  /// the last one made, less than `until` where a method that asks as it goes was refused.
  virtual std::uint64_t train(std::uint64_t step, std::uint64_t until) = 0;

  /// The parameters of the model that is released.
  virtual std::vector<float> parameters() const = 0;

  // What is reported of it. Functions of public numbers and of what was released.

  /// The learning rate of the last of `step` steps; 0 before there is one.
  virtual double learning_rate(std::uint64_t step) const = 0;
  /// Works out epsilon of what was released up to `step`. last: of the whole run; before that a
  /// faster, looser bound will do. The function has copies of all that it needs: it may be called
  /// in another thread, while this one trains on.
  virtual std::function<double()> spent(const privacy::Ledger& ledger, std::uint64_t step,
                                        bool last) const = 0;
  /// About how many steps there will be, `step` being done.
  virtual double expected_steps(std::uint64_t) const { return static_cast<double>(steps()); }
  /// Examples that a step looks at, for a speed.
  virtual double examples_per_step() const = 0;
  virtual Outcome outcome(std::uint64_t step) const { return {.steps = step}; }
  /// The promise of the method, for the certificate. ledger: what was really spent, which a lost
  /// key makes more than was planned.
  virtual Promise promise(const privacy::Ledger& ledger, std::uint64_t step) const = 0;
  /// Epsilon at the same delta for several units of privacy together, of a run that is finished;
  /// empty where nothing is said of them.
  virtual std::optional<Groups> groups(const privacy::Ledger&) const { return std::nullopt; }
  /// `ledger` with what is still to be charged until step `last`, where that is known ahead.
  virtual privacy::Ledger planned(privacy::Ledger ledger, std::uint64_t /*last*/) const {
    return ledger;
  }
  /// Private statistics since they were last read, for --unsafe-diagnostics.
  virtual Diagnostics diagnostics() { return {}; }
};

/// The obstacle of a method whose proof does not hold to the last bit of what is released: `what`
/// is proved for real numbers only.
std::string real_numbers_obstacle(const std::string& what);

}  // namespace cudp
