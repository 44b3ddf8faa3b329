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

/// How DP-AGD shares its budget out at the start: equal parts of rho, or of epsilon as its paper.
enum class BudgetSplit { rho, epsilon };
/// The conversion of rho to epsilon: Canonne, Kamath, Steinke 2020, or Bun, Steinke 2016.
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

/// The promise of a run's filter: the config's epsilon at its delta in zCDP, but for what is set
/// aside for bounds; with the classical conversion the smaller epsilon that its rho =
/// (sqrt(ln(1/delta) + epsilon) - sqrt(ln(1/delta)))^2 (the paper's equation (5)) really has.
/// unit_rows: TrainingSize.
privacy::Budget dp_agd_budget(const TrainConfig& config, std::uint64_t unit_rows = 1);

/// The settings of DP-AGD for a filter's whole budget rho and `examples` in the training set, of
/// which there are at most max_examples.
///
/// By rho: an iteration starts with rho / splits, of which gradient_share is the gradient's. The
/// default, splits = examples epsilon / 100 but at least 10, follows the signal: sums grow with the
/// examples, the noise of a whole budget falls with epsilon. (Chosen on BANK and IPUMS-BR.)
/// By epsilon, the paper's section 6.2: epsilon_nmax = epsilon_ng = epsilon / (2 splits), splits =
/// 60; rho_ng is then that of the Gaussian mechanism's classical noise (its Theorem 3.3),
/// epsilon_ng^2 / (4 ln(1.25/delta)).
DpAgdSettings dp_agd_settings(const TrainConfig& config, double rho, double examples,
                              double max_examples);

/// DP-AGD (dp_agd.hpp) as `cudp train` runs it: a step is an iteration, and there are as many as
/// the budget lasts for.
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
    return until;  // it asks as it goes
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
  double square_;  ///< of the examples of a unit: what costs a unit rho costs one rho / square_
  double limit_;   ///< rho of the whole budget, for a unit
  DpAgdSettings settings_;  ///< for one example, as all of the algorithm
  DpAgdState state_;
  Gate* gate_ = nullptr;
  std::unique_ptr<LinearEngine> engine_;
};

MethodEntry dp_agd_method();

}  // namespace cudp
