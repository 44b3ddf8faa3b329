#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "privacy/filter.hpp"
#include "runtime/device/linear_engine.hpp"
#include "runtime/methods/dp_agd.hpp"
#include "runtime/methods/method.hpp"
#include "runtime/methods/method_entry.hpp"

namespace cudp {

/// Division of DP-AGD's budget at the start of training between noisy gradients and noisy choices
/// of step sizes: into equal parts of rho (zCDP), or of epsilon as in the paper.
enum class BudgetSplit { rho, epsilon };
/// Theorem that converts zCDP's rho to epsilon: that of Canonne, Kamath, Steinke 2020 (tight), or
/// that of Bun, Steinke 2016 (classical).
enum class Conversion { tight, classical };

struct DpAgdOptions {
  double splits = 0.0;
  BudgetSplit budget_split = BudgetSplit::rho;
  double gradient_share = 0.6;
  double gamma = 0.1;
  double step_shrink = 0.8;
  SelectionNoise noisy_min = SelectionNoise::gumbel;
  Conversion conversion = Conversion::tight;
  std::int64_t mini_batch = 0;
};

/// Returns the run's privacy budget, which a zCDP filter enforces: the config's epsilon, at the
/// config's delta less the part that is reserved for bounds that may fail. With the classical
/// conversion, at most rho = (sqrt(ln(1/delta) + epsilon) - sqrt(ln(1/delta)))^2 may be spent (the
/// paper's equation (5)); the budget's epsilon is then the result of the tight conversion for this
/// rho. unit_rows: maximum number of examples of one unit of privacy.
privacy::Budget dp_agd_budget(const TrainConfig& config, std::uint64_t unit_rows = 1);

/// Returns DP-AGD's settings for a total zCDP budget of rho. examples: number of training examples,
/// noisy if it is private. max_examples: upper bound on that number.
///
/// The settings include the cost of each release of an iteration, computed in one of two ways:
/// - By rho (default): an iteration may spend rho / splits, of which gradient_share is for the
///   gradient and the rest for the choice of a step size. splits = examples epsilon / 100, at least
///   10, because with more examples or a larger budget a smaller part is still above the noise.
///   (Chosen on BANK and IPUMS-BR.)
/// - By epsilon (Lee and Kifer 2018, section 6.2): e = epsilon / (2 splits) for the gradient and as
///   much for the choice, splits = 60. The gradient's rho is that of the Gaussian mechanism's
///   classical noise (Theorem 3.3) at e: e^2 / (4 ln(1.25 / delta)).
DpAgdSettings dp_agd_settings(const TrainConfig& config, double rho, double examples,
                              double max_examples);

/// Runs DP-AGD (dp_agd.hpp) for `cudp train`. A step is one iteration of it. Training ends when the
/// budget is spent.
class DpAgdMethod final : public Method {
 public:
  explicit DpAgdMethod(const MethodContext& context);

  double epsilon() const override { return budget_.epsilon; }
  double epsilon_of_one_example() const override;
  double delta() const override { return *context_.config.delta; }
  std::optional<privacy::Budget> filter() const override { return budget_; }
  std::uint64_t steps() const override { return kOpenEnded; }
  std::string describe() const override;
  std::vector<std::string> obstacles() const override;

  void start(const TrainingInputs& inputs, const PrivacyBudget& budget) override;
  void restore(const TrainingInputs& inputs, const MethodState& state) override;
  MethodState state() const override;
  bool accounts_for(const privacy::Ledger& ledger, std::uint64_t step,
                    double epsilon) const override;
  void fresh_key(PrivacyBudget& budget, std::uint64_t step) override;

  std::uint64_t authorise(PrivacyBudget&, std::uint64_t, std::uint64_t until) override {
    return until;  // the gate checks every release
  }
  std::uint64_t train(std::uint64_t step, std::uint64_t until) override;

  std::vector<float> parameters() const override { return state_.w; }

  double learning_rate(std::uint64_t step) const override;
  std::function<double()> spent(const privacy::Ledger& ledger, std::uint64_t step,
                                bool last) const override;
  double expected_steps(std::uint64_t step) const override;
  double examples_per_step() const override { return context_.size.value; }
  Outcome outcome(std::uint64_t step) const override {
    return {.steps = step, .releases = state_.releases};
  }
  privacy::Promise promise(const privacy::Ledger& ledger, std::uint64_t step) const override;

 private:
  void make_engine(const TrainingInputs& inputs);

  MethodContext context_;
  privacy::Budget budget_;
  /// Square k^2 of the maximum number k of examples of a unit of privacy. A release with zCDP cost
  /// rho for neighbours that differ by a unit costs rho / k^2 for neighbours that differ by one
  /// example.
  double square_;
  /// Total zCDP cost (rho) that the budget allows, for neighbours that differ by a unit of privacy.
  double limit_;
  /// Parameters of DP-AGD; the zCDP costs are for neighbours that differ by one example.
  DpAgdSettings settings_;
  DpAgdState state_;
  Gate* gate_ = nullptr;
  std::unique_ptr<LinearEngine> engine_;
};

MethodEntry dp_agd_method();

}  // namespace cudp
