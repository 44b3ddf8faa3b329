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

/// What is public about the training set of a linear model before the data are read.
struct LinearProblem {
  Loss loss = Loss::logistic;
  int dimension = 0;          ///< number of features + 1
  double examples = 1.0;      ///< number of examples N, or a noisy N if it is private
  double max_examples = 1.0;  ///< public upper bound on the number of examples
  /// Cost of all releases of the run before this training, for neighbours that differ by one
  /// example: mu of the single Gaussian mechanism (Gaussian DP) that is equivalent to them.
  double mu_before = 0.0;
  double unit_rows = 1.0;  ///< maximum number of examples of one unit of privacy
  bool size_is_public = true;
};
LinearProblem linear_problem(const MethodContext& context);

/// Arguments of LinearMethod::fit(): data, random key and gate.
struct LinearTask {
  const Dataset& train;
  int threads;
  Generator generator;
  const RandomKey& key;
  Gate& gate;  ///< gate with the same generator and key as this object
};

/// Base class of methods that train a linear two-class model in one step and know all their
/// releases in advance. With the same key the result is the same, so repeating a run reveals
/// nothing new.
class LinearMethod : public Method {
 public:
  /// Returns the releases that the training makes, without those of the run that precede it, such
  /// as the noisy number of examples.
  virtual std::vector<privacy::Release> releases() const = 0;
  /// Trains the model. Returns the weights for features in their original scale, then the bias.
  /// Charges every release through task.gate before it draws the noise.
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

  /// Returns the epsilon, at the delta of delta(), for neighbouring data sets that differ by up to
  /// `rows` examples.
  virtual double epsilon_of(double rows) const = 0;

 protected:
  /// Makes a method for these settings. Requires that config.epsilon and config.delta are set.
  /// facts: public properties of the training set.
  LinearMethod(const TrainConfig& config, const LinearProblem& facts)
      : config_(config), facts_(facts) {}

  /// Charges all of releases() through the gate. For a method that draws its noise itself, not
  /// through the gate.
  void pass_gate(Gate& gate) const;

  /// Adds the description of the mechanism to `promise`, for the certificate. Requires that
  /// epsilon, delta and method of `promise` are set. releases: everything that was charged.
  virtual void describe_mechanism(privacy::Promise& promise,
                                  std::vector<privacy::Release> releases) const = 0;

  const TrainConfig& config() const { return config_; }
  const LinearProblem& facts() const { return facts_; }

 private:
  TrainConfig config_;
  LinearProblem facts_;
  std::optional<TrainingInputs> inputs_;
  std::vector<float> weights_;
};

/// Makes a linear method of class M. A MethodEntry's `make` points to this function. Throws
/// BudgetError if the privacy budget does not suffice.
template <class M>
std::unique_ptr<Method> make_linear_method(const MethodContext& context) {
  try {
    auto method = std::make_unique<M>(context.config, linear_problem(context));
    if (method->epsilon() <= *context.config.epsilon) return method;
    throw BudgetError(context.config.method + " spends more than the budget");
  } catch (const std::domain_error& e) {
    throw BudgetError(e.what());
  }
}

/// Returns a registry entry with the properties that all linear methods share; each method adds its
/// own.
MethodEntry linear_method_entry();

}  // namespace cudp
