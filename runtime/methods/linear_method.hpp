#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "kernels/layers/kinds.hpp"
#include "kernels/random/random.hpp"
#include "privacy/mechanism/mechanism.hpp"
#include "runtime/base/error.hpp"
#include "runtime/gate/gate.hpp"
#include "runtime/methods/linear_options.hpp"
#include "runtime/methods/method.hpp"
#include "runtime/methods/method_entry.hpp"

namespace cudp {

/// Facts about the data that a linear method may know before it looks at them.
struct LinearFacts {
  Loss loss = Loss::logistic;
  int dimension = 0;          ///< features and a constant
  double examples = 1.0;      ///< N, or the noisy one
  double max_examples = 1.0;  ///< a bound on N, see TrainingSize::max_examples
  double mu_before = 0.0;     ///< of what was released before, for one example: mu_of
  double unit_rows = 1.0;     ///< examples of one unit at most: TrainingSize
  bool size_is_public = true;
};
LinearFacts linear_facts(const MethodContext& context);

/// The examples of a linear method, and what it draws from and releases through. Numbers of streams
/// are its own.
struct LinearTask {
  const Dataset& train;
  int threads;
  Generator generator;
  const RandomKey& key;
  Gate& gate;  ///< of the same generator and key
};

/// The base of the methods for linear models of two classes that know all their releases before the
/// first, and train in one go, which is their only step: under one key always the same, so that who
/// begins again releases nothing new.
class LinearMethod : public Method {
 public:
  /// The releases of the method, besides those before it.
  virtual std::vector<privacy::Release> releases() const = 0;
  /// The weights of the features as they are read, and the bias. Asks the gate before it draws.
  virtual std::vector<float> fit(const LinearTask& task) const = 0;

  double epsilon() const override { return epsilon_of(facts_.unit_rows); }
  double epsilon_of_one_example() const override { return epsilon_of(1.0); }
  double delta() const override { return *config_.delta; }
  std::vector<privacy::Release> releases_at_start() const override { return releases(); }
  std::uint64_t steps() const override { return 1; }
  std::string describe() const override;

  void start(const TrainingInputs& inputs, const PrivacyBudget& budget) override;
  void restore(const TrainingInputs& inputs, const MethodState& state) override;
  MethodState state() const override { return {}; }
  void fresh_key(PrivacyBudget& budget, std::uint64_t step) override;

  std::uint64_t authorise(PrivacyBudget&, std::uint64_t, std::uint64_t until) override {
    return until;
  }
  std::uint64_t train(std::uint64_t step, std::uint64_t until) override;

  std::vector<float> parameters() const override { return weights_; }

  double learning_rate(std::uint64_t) const override { return 0.0; }
  std::function<double()> spent(const privacy::Ledger&, std::uint64_t, bool) const override {
    return [epsilon = epsilon()] { return epsilon; };
  }
  double examples_per_step() const override { return facts_.examples; }
  privacy::Promise promise(const privacy::Ledger& ledger, std::uint64_t step) const final;

  /// Epsilon at delta() for up to `rows` examples that are added or removed at once.
  virtual double epsilon_of(double rows) const = 0;

 protected:
  /// config.epsilon and config.delta must be set.
  LinearMethod(const TrainConfig& config, const LinearFacts& facts)
      : config_(config), facts_(facts) {}

  /// For noise that the gate does not draw: asks it for all of releases().
  void pass_gate(Gate& gate) const;

  /// The mechanism, in words and numbers; epsilon, delta and method are filled in. releases: all
  /// that were charged.
  virtual void describe_mechanism(privacy::Promise& promise,
                                  std::vector<privacy::Release> releases) const = 0;

  const TrainConfig& config() const { return config_; }
  const LinearFacts& facts() const { return facts_; }

 private:
  TrainConfig config_;
  LinearFacts facts_;
  std::optional<TrainingInputs> inputs_;
  std::vector<float> weights_;
};

/// For MethodEntry::make.
template <class M>
std::unique_ptr<Method> make_linear_method(const MethodContext& context) {
  try {
    auto method = std::make_unique<M>(context.config, linear_facts(context));
    if (method->epsilon() <= *context.config.epsilon) return method;
    throw BudgetError(context.config.method + " spends more than the budget");
  } catch (const std::domain_error& e) {
    throw BudgetError(e.what());
  }
}

/// The part that the entries of all of these have in common.
MethodEntry linear_method_entry();

}  // namespace cudp
