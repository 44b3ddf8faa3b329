#include "runtime/methods/dp_agd_method.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <spdlog/fmt/fmt.h>

#include "privacy/filter.hpp"
#include "privacy/rdp/zcdp.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/rounded_text.hpp"
#include "runtime/config/class_weights.hpp"
#include "runtime/config/option_rows.hpp"
#include "runtime/device/joined_linear.hpp"
#include "runtime/device/linear_sensitivity.hpp"
#include "runtime/methods/initial_weights.hpp"
#include "runtime/methods/linear_options.hpp"
#include "runtime/methods/plan.hpp"

namespace cudp {
namespace {

using Json = nlohmann::ordered_json;

/// Maximum noise multiplier of a noisy gradient. From about 2^38 / sqrt(dimension) on, the bound on
/// rounding errors exceeds the sensitivity itself, and no grid is fine enough.
constexpr double kLargestSigma = 0x1p20;

constexpr Choice<BudgetSplit> kBudgetSplits[] = {{"rho", BudgetSplit::rho},
                                                 {"epsilon", BudgetSplit::epsilon}};
constexpr Choice<SelectionNoise> kSelectionNoises[] = {{"gumbel", SelectionNoise::gumbel},
                                                       {"laplace", SelectionNoise::laplace}};
constexpr Choice<Conversion> kConversions[] = {{"tight", Conversion::tight},
                                               {"classical", Conversion::classical}};

/// Returns the releases of the ledger with equal ones merged into one entry and a count, in the
/// order in which they first occur.
std::vector<privacy::Release> by_mechanism(const privacy::Ledger& ledger) {
  std::vector<privacy::Release> all;
  for (const privacy::Release& release : ledger.releases()) {
    const auto known = std::ranges::find(all, release.mechanism, &privacy::Release::mechanism);
    if (known == all.end())
      all.push_back(release);
    else
      known->count += release.count;
  }
  return all;
}

}  // namespace

privacy::Budget dp_agd_budget(const TrainConfig& config, std::uint64_t unit_rows) {
  const double epsilon = *config.epsilon;
  const double delta = *config.delta * (1.0 - kFailureShare);
  if (config.of<DpAgdOptions>().conversion == Conversion::tight)
    return privacy::zcdp_budget(epsilon, delta, 0.0, unit_rows);
  const double l = -std::log(delta);
  const double root = std::sqrt(l + epsilon) - std::sqrt(l);
  return privacy::zcdp_budget(std::min(epsilon, privacy::epsilon_from_zcdp(root * root, delta)),
                              delta, 0.0, unit_rows);
}

DpAgdSettings dp_agd_settings(const TrainConfig& config, double rho, double examples,
                              double max_examples) {
  const auto& options = config.of<DpAgdOptions>();
  DpAgdSettings s;
  s.max_examples = max_examples;
  if (options.budget_split == BudgetSplit::rho) {
    const double splits =
        options.splits > 0.0 ? options.splits : std::max(10.0, examples * *config.epsilon / 100.0);
    s.rho_gradient = rho / splits * options.gradient_share;
    s.rho_selection = rho / splits * (1.0 - options.gradient_share);
  } else {
    const double epsilon = *config.epsilon / (2.0 * (options.splits > 0.0 ? options.splits : 60.0));
    s.rho_gradient = epsilon * epsilon / (4.0 * std::log(1.25 / *config.delta));
    s.rho_selection = epsilon * epsilon / (options.noisy_min == SelectionNoise::gumbel ? 8.0 : 2.0);
  }
  s.gamma = options.gamma;
  s.shrink = options.step_shrink;
  s.gradient_clip = config.clip_norm;
  s.loss_clip = config.of<LinearOptions>().loss_clip;
  s.l2 = config.of<LinearOptions>().l2;
  s.selection = options.noisy_min;
  if (options.mini_batch > 0)
    s.threshold =
        poisson_threshold(std::min(static_cast<double>(options.mini_batch), examples), examples);
  return s;
}

DpAgdMethod::DpAgdMethod(const MethodContext& context)
    : context_(context),
      budget_(dp_agd_budget(context.config, context.size.unit_rows)),
      square_(static_cast<double>(context.size.unit_rows * context.size.unit_rows)) {
  privacy::Filter filter(budget_);
  limit_ = filter.limit();
  settings_ = dp_agd_settings(context.config, limit_, context.size.value,
                              context.size.max_examples(kFailureShare * *context.config.delta));
  // With k examples in a unit of privacy, neighbouring data sets differ by k examples. Sums of
  // gradients and scores then change k times as much, so a release costs k^2 times as much rho.
  settings_.rho_gradient /= square_;
  settings_.rho_selection /= square_;
  state_.rho_gradient = settings_.rho_gradient;
  state_.largest = settings_.first_largest;
  for (const privacy::Release& release : context.before) {
    if (!filter.charge(release))
      throw BudgetError("the releases before training take the whole budget");
    state_.rho += filter.cost(release.mechanism) / square_;
  }
  const double first = settings_.rho_gradient + settings_.rho_selection;
  const double left = limit_ / square_ - state_.rho;
  if (first * (1.0 - 1e-9) > left)
    throw BudgetError(
        fmt::format("the budget does not allow a single step: rho {:.4g} for its gradient and its "
                    "step size, of "
                    "{:.4g} that are left; more --splits make it cheaper",
                    square_ * first, square_ * left));
  const double sigma = 1.0 / std::sqrt(2.0 * settings_.rho_gradient);
  if (!(sigma <= kLargestSigma))
    throw BudgetError(
        fmt::format("the first gradient's share of the budget, rho {:.4g}, makes its noise {:.3g} "
                    "times what one example can add, at most {:.3g} times are allowed; fewer "
                    "--splits give it more",
                    square_ * settings_.rho_gradient, sigma, kLargestSigma));
  // If no step size helps, the gradient is measured again. The first repetition has the smallest
  // budget of all, gamma rho_gradient, and so the largest noise.
  const double sigma_again = sigma / std::sqrt(settings_.gamma);
  if (!(sigma_again <= kLargestSigma))
    throw BudgetError(
        fmt::format("--gamma {:.3g} makes the noise of a gradient that is measured again {:.3g} "
                    "times what one example can add, at most {:.3g} times are allowed; a larger "
                    "--gamma gives it more of the budget",
                    settings_.gamma, sigma_again, kLargestSigma));
}

std::string DpAgdMethod::describe() const {
  return fmt::format(
      "epsilon {} at delta {}: rho {:.4g}, {:.3g} for a first gradient and {:.3g} for a "
      "step size, C {:.4g} and {:.4g}",
      rounded_up(epsilon(), 4), short_rounded_up(delta()), limit_, square_ * settings_.rho_gradient,
      square_ * settings_.rho_selection, settings_.gradient_clip, settings_.loss_clip);
}

/// Returns the reasons not to release the model. There is one if step sizes are chosen with Laplace
/// noise, because its privacy proof assumes real numbers. Choices with Gumbel noise are exact
/// (noisy_min.hpp).
std::vector<std::string> DpAgdMethod::obstacles() const {
  if (settings_.selection == SelectionNoise::gumbel) return {};
  return {real_numbers_obstacle("noisy-min laplace")};
}

void DpAgdMethod::make_engine(const TrainingInputs& inputs) {
  gate_ = &inputs.gate;
  // A run that is resumed with a new random key may have other data, with more rows than the bound
  // max_examples that the settings were made for. The sums are exact up to linear_capacity().
  const double capacity = linear_capacity(settings_.max_examples);
  if (static_cast<double>(inputs.train.whole_size()) > capacity)
    throw InputError(fmt::format(
        "expected at most {:.0f} training examples with --method dp-agd, found more", capacity));
  engine_ = inputs.backend.make_linear_engine(
      inputs.train, context_.network.spec.loss, settings_.max_examples,
      static_cast<int>(context_.config.threads), sign_weights(context_.config.class_weights));
  if (!inputs.ranks->alone())
    engine_ = std::make_unique<JoinedLinearEngine>(std::move(engine_), settings_.max_examples,
                                                   *inputs.ranks);
}

void DpAgdMethod::start(const TrainingInputs& inputs, const PrivacyBudget&) {
  make_engine(inputs);
  state_.w = initial_weights(context_.network, context_.config.rng, inputs.key.key());
}

MethodState DpAgdMethod::state() const {
  const DpAgdState& s = state_;
  return {.numbers = {{"rho_gradient", s.rho_gradient},
                      {"largest", s.largest},
                      {"chosen", s.chosen},
                      {"iterations", s.iterations},
                      {"releases", s.releases},
                      {"rho", s.rho}},
          .arrays = {{"parameters", s.w}}};
}

void DpAgdMethod::restore(const TrainingInputs& inputs, const MethodState& state) {
  make_engine(inputs);
  const Json& j = state.numbers;
  state_.w = state.array("parameters");
  state_.rho_gradient = j.at("rho_gradient").get<double>();
  state_.largest = j.at("largest").get<double>();
  state_.chosen = j.at("chosen").get<std::vector<double>>();
  state_.iterations = j.at("iterations").get<std::uint64_t>();
  state_.releases = j.at("releases").get<std::uint64_t>();
  state_.rho = j.at("rho").get<double>();
}

/// Returns whether the releases in the ledger cost at least the epsilon that the run reported.
/// Their cost is counted as the privacy filter counts it. The comparison has a margin for rounding.
bool DpAgdMethod::accounts_for(const privacy::Ledger& ledger, std::uint64_t, double epsilon) const {
  const double rho = limit_ * (1.0 - privacy::Filter(ledger).remaining());
  return privacy::epsilon_from_zcdp(rho * (1.0 + 1e-9), budget_.delta) >=
         std::min(epsilon, budget_.epsilon) * (1.0 - 1e-9);
}

/// Returns the epsilon for neighbours that differ by one example instead of one unit of k examples
/// (square_ = k^2), given the whole budget rho. For one example, releases with Gaussian noise and
/// choices by Gumbel noise cost only rho / k^2. An epsilon-DP release (a choice by Laplace noise)
/// costs at most rho / k, because epsilon tanh(epsilon / 2) grows at least linearly.
double DpAgdMethod::epsilon_of_one_example() const {
  const double share = settings_.selection == SelectionNoise::gumbel ? square_ : std::sqrt(square_);
  return privacy::epsilon_from_zcdp(limit_ / share * (1.0 + 1e-12), budget_.delta);
}

/// Continues the training with a new random key. Releases made after the last checkpoint stay
/// charged, although their results are lost.
void DpAgdMethod::fresh_key(PrivacyBudget& budget, std::uint64_t) {
  budget.fresh_key(state_.releases);
  state_.rho = (limit_ - budget.left()) / square_;
}

std::uint64_t DpAgdMethod::train(std::uint64_t step, std::uint64_t until) {
  DpAgd algorithm(settings_, *engine_, context_.size.value, *gate_);
  while (step < until && algorithm.iterate(state_)) ++step;
  return step;
}

double DpAgdMethod::learning_rate(std::uint64_t) const {
  return state_.chosen.empty() ? 0.0 : state_.chosen.back();
}

std::function<double()> DpAgdMethod::spent(const privacy::Ledger&, std::uint64_t, bool) const {
  return [epsilon = budget_.epsilon, delta = budget_.delta, rho = square_ * state_.rho] {
    return std::min(epsilon, privacy::epsilon_from_zcdp(rho, delta));
  };
}

double DpAgdMethod::expected_steps(std::uint64_t step) const {
  const auto done = static_cast<double>(step);
  return std::max(done, done / std::max(square_ * state_.rho / limit_, 1e-9));
}

/// Returns the method's guarantee for the certificate. Its epsilon is the whole budget of the
/// privacy filter, even if less was spent, because released values decided when the training
/// stopped.
privacy::Promise DpAgdMethod::promise(const privacy::Ledger& ledger, std::uint64_t step) const {
  const DpAgdSettings& s = settings_;
  return {
      .epsilon = epsilon(),
      .delta = delta(),
      .method = context_.config.method,
      .mechanism = "Gaussian sums and noisy minima chosen adaptively behind a zCDP filter (DP-AGD)",
      .how = privacy::FilteredReleases{
          .sampling_threshold = s.threshold,
          .clip_norm = s.gradient_clip,
          .loss_clip = s.loss_clip,
          .sensitivity = linear_gradient_sensitivity(
              s.gradient_clip, static_cast<int>(context_.network.parameter_count), s.max_examples),
          .loss_sensitivity = linear_loss_sensitivity(s.loss_clip, s.max_examples),
          .selection_noise =
              std::string(choice_name<SelectionNoise>(kSelectionNoises, s.selection)),
          .real_numbers_only = s.selection == SelectionNoise::laplace,
          .steps = step,
          .releases = by_mechanism(ledger),
          .rho = limit_,
          .rho_spent = limit_ * (1.0 - privacy::Filter(ledger).remaining()),
          .classical_budget =
              context_.config.of<DpAgdOptions>().conversion == Conversion::classical}};
}

MethodEntry dp_agd_method() {
  using namespace option_rows;
  using Options = DpAgdOptions;
  MethodEntry entry;
  entry.name = "dp-agd";
  entry.option_group = "DP-AGD";
  entry.options = {
      number("splits", "N", &Options::splits, kNotNegative,
             "approximate number of iterations that the budget is for; 0: examples x epsilon / "
             "100, at least 10, or 60 with budget-split epsilon"),
      choice("budget-split", &Options::budget_split, kBudgetSplits,
             "quantity that is split: rho, or epsilon as in the paper"),
      number("gradient-share", "S", &Options::gradient_share, kInsideUnit,
             "share of an iteration's rho for its gradient; the rest is for its step size"),
      number("gamma", "G", &Options::gamma, kPositive,
             "growth of a gradient's budget if no step size helps"),
      number("step-shrink", "F", &Options::step_shrink, kShrink,
             "factor on the step sizes if none helps; 1 as in the paper"),
      number("loss-clip", "C", &LinearOptions::loss_clip, kPositive,
             "bound on one example's loss; also for privgene"),
      number("l2", "L", &LinearOptions::l2, kNotNegative,
             "regularisation, lambda/2 |w|^2 per example; also for outpert and objpert"),
      choice("noisy-min", &Options::noisy_min, kSelectionNoises,
             "noise on the candidate step sizes: gumbel, or laplace as in the paper"),
      choice("conversion", &Options::conversion, kConversions,
             "conversion from zCDP to epsilon: tight, or classical as in the paper"),
      integer("mini-batch", "B", &Options::mini_batch, kCountOrZero,
              "expected number of examples per iteration, for large sets; 0: all")};
  entry.uses = {"clip", "class-weights"};
  entry.stochastic = false;
  entry.linear_model = true;
  entry.counts_in_its_proof = true;  // its releases are admitted by a zCDP filter
  entry.defaults = [](TrainConfig& c) { c.clip_norm = 3.0; };  // C_grad of its paper
  entry.make = make_method<DpAgdMethod>;
  return entry;
}

}  // namespace cudp
