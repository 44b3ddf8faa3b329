#include "runtime/methods/engine_method.hpp"

#include <algorithm>
#include <cmath>
#include <future>
#include <limits>
#include <stdexcept>
#include <utility>

#include <spdlog/fmt/fmt.h>

#include "kernels/contribution/contribution.hpp"
#include "privacy/filter.hpp"
#include "privacy/rdp/gaussian.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/rounded_text.hpp"
#include "runtime/config/choices.hpp"
#include "runtime/config/class_weights.hpp"
#include "runtime/methods/initial_weights.hpp"
#include "runtime/methods/make_plan.hpp"

namespace cudp {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kNoBound = std::numeric_limits<double>::infinity();

/// Calls visit(name, array) for each array of a training state, with the name under which a
/// checkpoint stores it.
template <class State, class Visit>
void for_each_array(State& s, Visit visit) {
  visit("parameters", s.parameters);
  visit("moment1", s.moment1);
  visit("moment2", s.moment2);
  visit("average", s.average);
  visit("mean", s.mean);
  visit("deviation", s.deviation);
  visit("norms", s.norms);
}

}  // namespace

EngineMethod::EngineMethod(MethodContext context, const PrivacyPlan& plan)
    : context_(std::move(context)),
      plan_(plan),
      schedule_(context_.config, plan_, steps_per_epoch()) {}

std::uint64_t EngineMethod::steps_per_epoch() const { return context_.steps_per_epoch(); }

bool EngineMethod::is_fixed_ahead() const {
  return context_.size.is_public() && !filter() && !context_.key_was_lost;
}

double EngineMethod::stated(const privacy::PrivacyBound& bound) const {
  if (context_.split) return context_.split->epsilon;
  return is_fixed_ahead() ? bound.epsilon : config().epsilon.value_or(kNoBound);
}

double EngineMethod::epsilon() const {
  return stated(is_fixed_ahead() ? guarantee(plan_, releases(plan_, plan_.steps))
                                 : privacy::PrivacyBound{});
}

double EngineMethod::delta() const { return context_.split ? context_.split->delta : plan_.delta; }

double EngineMethod::epsilon_of_one_example() const {
  PrivacyPlan plan = plan_;
  plan.group = 1;
  const double epsilon = guarantee(plan, releases(plan, plan.steps)).epsilon;
  if (!context_.split) return epsilon;
  return epsilon +
         privacy::gaussian_epsilon(1.0 / context_.split->sigma, context_.split->count_delta);
}

std::optional<privacy::Budget> EngineMethod::filter() const {
  if (!needs_filter(config(), plan_)) return std::nullopt;
  return privacy::renyi_budget(plan_.order, *config().epsilon, plan_.delta - plan_.failure, 0.0,
                               plan_.group);
}

std::string EngineMethod::describe() const {
  return fmt::format(
      "epsilon {} at delta {}: sigma {:.5g}, {} steps of expected batch {:.0f}, C {:.4g}",
      rounded_up(epsilon(), 4), short_rounded_up(delta()), plan_.noise_multiplier, plan_.steps,
      plan_.expected_batch, plan_.clip_norm);
}

void EngineMethod::make_engine(const TrainingInputs& inputs) {
  gate_ = &inputs.gate;
  ranks_ = inputs.ranks;
  const TrainConfig& c = config();
  EngineSettings s{.recipe = recipe(), .generator = c.rng, .key = inputs.key};
  s.expected_batch = plan_.expected_batch;
  s.steps = plan_.steps;
  s.micro_batch = static_cast<int>(c.micro_batch);
  s.precision = c.precision;
  s.threads = static_cast<int>(c.threads);
  s.diagnostics = c.unsafe_diagnostics;
  s.class_weights = relative_class_weights(c.class_weights);
  s.release_observer = inputs.gate.release_observer();
  s.ranks = ranks_;
  s.sum_by = c.sum_by;
  configure(s);
  engine_ = inputs.backend.make_engine(context_.network, s);
  engine_->load(inputs.train);
}

void EngineMethod::start(const TrainingInputs& inputs, const PrivacyBudget&) {
  make_engine(inputs);
  TrainState s;
  s.parameters =
      initial_weights(context_.network, config().rng, inputs.key.key(), inputs.train.vectors.get());
  for (std::size_t j = 0; j < inputs.initial.size(); ++j)
    if (!std::isnan(inputs.initial[j])) s.parameters[j] = inputs.initial[j];
  if (has_first_moment(config().optimizer)) s.moment1.resize(s.parameters.size());
  if (has_second_moment(config().optimizer)) s.moment2.resize(s.parameters.size());
  if (config().ema > 0.0) s.average = s.parameters;
  initialise(s);
  engine_->set_state(s);
}

MethodState EngineMethod::state() const {
  TrainState s = engine_->state();
  MethodState state;
  state.numbers = {{"plan", encode_plan(plan_)}, {"step_size_sum", s.step_size_sum}};
  for_each_array(s, [&](const char* name, std::vector<float>& array) {
    if (!array.empty()) state.arrays.emplace_back(name, std::move(array));
  });
  return state;
}

/// Continues from a checkpoint. Uses the privacy plan that the checkpoint stores and does not
/// compute it again, because a logarithm may be rounded differently on another processor. One
/// exception: if this backend has larger rounding errors, and so a larger sensitivity, that
/// sensitivity replaces the stored one.
void EngineMethod::restore(const TrainingInputs& inputs, const MethodState& state) {
  const double sensitivity = plan_.sensitivity;
  PrivacyPlan stored = decode_plan(state.numbers.at("plan"));
  stored.before = plan_.before;
  stored.count_epsilon = plan_.count_epsilon;
  stored.memo = plan_.memo;
  stored.sensitivity = std::max(stored.sensitivity, sensitivity);
  plan_ = std::move(stored);
  schedule_ = Schedule(config(), plan_, steps_per_epoch());
  make_engine(inputs);
  TrainState s;
  s.step_size_sum = state.numbers.at("step_size_sum").get<double>();
  for_each_array(s,
                 [&](const char* name, std::vector<float>& array) { array = state.array(name); });
  engine_->set_state(s);
}

bool EngineMethod::accounts_for(const privacy::Ledger& ledger, std::uint64_t step, double) const {
  return ledger.authorised_until() >= ledger_until(step);
}

/// Continues with a new random key, or throws BudgetError if the budget would then not bound all
/// releases. The reason: a user may decide to stop a run, or to renew its key, after looking at
/// released values, so the list of releases is no longer fixed in advance. In two cases the budget
/// still bounds the cost of all releases: if they are equal, so that only their number was chosen;
/// or if their divergences are added at a Renyi order that was fixed in advance
/// (privacy/README.md).
void EngineMethod::fresh_key(PrivacyBudget& budget, std::uint64_t step) {
  if (!config().epsilon)
    throw BudgetError("without --epsilon nothing bounds what repeated steps spend");
  if (!plan_.noise.empty() && plan_.order == 0.0)
    throw BudgetError(
        "if noise differs from step to step, no bound holds for steps repeated with other noise "
        "unless --fresh-noise-allowed was given when the run began");
  budget.fresh_key(ledger_index(step));
  context_.key_was_lost = true;
}

/// Returns the number of steps that the budget allows. Steps repeated under another key than the
/// first one are charged again, so the budget may be spent before the planned last step.
std::uint64_t EngineMethod::last_step(const PrivacyBudget& budget, std::uint64_t step) const {
  const std::uint64_t allowed = plan_.steps_until(budget.ledger().authorised_until());
  if (budget.filter() != nullptr) return plan_.steps;  // the filter decides as training continues
  if (!config().epsilon || allowed >= plan_.steps) return plan_.steps;
  const std::vector<privacy::Release> charged = budget.ledger().releases_after_count();
  const std::uint64_t last =
      allowed + affordable_steps(plan_, charged, *config().epsilon, allowed, plan_.steps - allowed);
  if (last <= step)
    throw BudgetError(fmt::format("the budget is spent: epsilon {:.6g} of {:.6g} at step {} of {}",
                                  guarantee(plan_, charged).epsilon, *config().epsilon, step,
                                  plan_.steps));
  return last;
}

std::uint64_t EngineMethod::authorise(PrivacyBudget& budget, std::uint64_t step,
                                      std::uint64_t until) {
  if (!prepare(budget, step)) return step;
  std::uint64_t end = std::min(until, prepared_until(step));
  while (end > step && !budget.authorise(ledger_index(step), releases_of(step, end)))
    end = step + (end - step) / 2;  // the budget is spent before `end`
  return end;
}

Charge EngineMethod::charge_of(std::uint64_t step) const {
  return {releases_of(step, step + 1).at(0).mechanism, ledger_index(step)};
}

void EngineMethod::pass_gate(std::uint64_t first, std::uint64_t last) const {
  std::uint64_t number = ledger_index(first);
  for (const privacy::Release& release : releases_of(first, last)) {
    if (!gate_->admit({release.mechanism, number, release.count}))
      throw std::logic_error("steps that are not paid for");
    number += release.count;
  }
}

void EngineMethod::run(Engine& engine, std::uint64_t first, std::uint64_t last) const {
  std::vector<StepScalars> steps;
  steps.reserve(last - first);
  for (std::uint64_t t = first; t < last; ++t) steps.push_back(scalars(t));
  engine.run(recipe(), first, steps);
}

std::uint64_t EngineMethod::train(std::uint64_t step, std::uint64_t until) {
  pass_gate(step, until);
  run(*engine_, step, until);
  return until;
}

std::vector<float> EngineMethod::parameters() const {
  TrainState s = engine_->state();
  return std::move(config().ema > 0.0 ? s.average : s.parameters);
}

double EngineMethod::learning_rate(std::uint64_t step) const {
  return step > 0 ? schedule_.learning_rate(step - 1) : 0.0;
}

/// Returns a function that computes the epsilon spent after `step` steps. The ledger is charged in
/// advance, up to the next checkpoint; charges of later steps are subtracted, because these steps
/// have not released anything yet. If the random key was lost and steps were repeated with a new
/// one, returns the epsilon of the whole budget: the number of steps may then depend on released
/// values, and the accountant's bound does not hold.
std::function<double()> EngineMethod::spent(const privacy::Ledger& ledger, std::uint64_t step,
                                            bool last) const {
  if (context_.key_was_lost) return [epsilon = epsilon()] { return epsilon; };
  std::vector<privacy::Release> done = ledger.releases_after_count();
  const std::uint64_t index = ledger_until(step);
  const std::uint64_t until = ledger.authorised_until();
  std::uint64_t ahead = until > index ? until - index : 0;
  for (auto release = done.rbegin(); ahead > 0; ++release) {
    const std::uint64_t undone = std::min(ahead, release->count);
    release->count -= undone;
    ahead -= undone;
  }
  return [plan = plan_, done = std::move(done), coarseness = last ? 1.0 : 10.0] {
    return plan.count_epsilon + guarantee(plan, done, coarseness).epsilon;
  };
}

Outcome EngineMethod::outcome(std::uint64_t step) const {
  return {.steps = step, .sigma = plan_.noise_multiplier};
}

std::string EngineMethod::mechanism() const {
  if (plan_.epoch_steps > 0)
    return "Gaussian on randomly allocated batches (DP-SGD): each example in exactly one step of "
           "an epoch";
  return plan_.noise.empty() ? "Poisson-subsampled Gaussian (DP-SGD)"
                             : "Poisson-subsampled Gaussians of different noise, fixed beforehand";
}

/// Returns the number of steps that were charged: all releases except those before the first step
/// and those at the start of epochs.
std::uint64_t EngineMethod::steps_charged(const privacy::Ledger& ledger) const {
  const privacy::Mechanism of_epoch = privacy::Gaussian{plan_.epoch_noise};
  std::uint64_t steps = 0;
  for (const privacy::Release& release : ledger.releases_after_count())
    if (plan_.epoch_releases == 0 || release.mechanism != of_epoch) steps += release.count;
  if (plan_.epoch_steps > 0) return plan_.steps_until(steps - plan_.before.size());
  return steps - plan_.before.size();
}

/// Returns bounds on epsilon for k units of privacy together (group privacy), computed like the
/// epsilon of one unit with k times as many examples. If releases depend on earlier ones, there is
/// no bound, and the result has a text with this reason.
std::optional<privacy::Groups> EngineMethod::groups(const privacy::Ledger& ledger) const {
  if (!is_fixed_ahead())
    return privacy::Groups{.bounds = {},
                           .not_stated =
                               "not stated: releases that depend on earlier ones are bounded for "
                               "single " +
                               std::string(plan_.group > 1 ? "units" : "examples") + " only"};
  const std::vector<privacy::Release> releases = ledger.releases();
  privacy::Groups groups{.bounds = {{1, guarantee(plan_, releases).epsilon, {}}}, .not_stated = {}};
  privacy::AccountantOptions options = accountant_options(plan_);
  options.coarseness = 10.0;
  const auto bound_of_group = [&](std::uint64_t k) {
    privacy::GroupBound bound{k, {}, {}};
    try {
      bound.epsilon =
          epsilon_bound(plan_, {.releases = releases, .group = k * plan_.group}, options).epsilon;
    } catch (const std::domain_error& none) {
      bound.reason = none.what();
    } catch (const std::invalid_argument& beyond) {
      bound.reason = beyond.what();
    }
    return bound;
  };
  std::vector<std::future<privacy::GroupBound>> larger;
  for (std::uint64_t k = 2; k <= kLargestGroup; k *= 2)
    larger.push_back(std::async(std::launch::async, bound_of_group, k));
  for (std::future<privacy::GroupBound>& bound : larger) groups.bounds.push_back(bound.get());
  return groups;
}

privacy::Promise EngineMethod::promise(const privacy::Ledger& ledger, std::uint64_t) const {
  privacy::NoisySums sums;
  sums.releases = ledger.releases();
  const privacy::PrivacyBound bound = guarantee(plan_, ledger.releases_after_count());
  const double epsilon = stated(bound);
  sums.accountant = privacy::bound_name(bound);
  sums.epsilon_lower = bound.epsilon_lower;
  sums.loss_interval = bound.interval;
  // The plan's fixed Renyi order, if there is one: the accountant's bound has no order before the
  // first release.
  sums.order = plan_.order > 0.0 ? plan_.order : bound.order;
  sums.sampling = sampling();
  sums.q = plan_.sampling_rate();
  sums.sampling_threshold = plan_.sampling_threshold;
  sums.epoch_steps = plan_.epoch_steps;
  sums.sigma = plan_.noise_multiplier;
  sums.clip_norm = plan_.clip_norm;
  sums.clipping = name_of(config().clipping);
  describe_clipping(sums);
  sums.sensitivity = plan_.sensitivity;
  sums.noise_std = plan_.noise_multiplier * plan_.sensitivity;
  sums.grid = bound_of(recipe().contribution, plan_.clip_norm).grid;
  if (!plan_.noise.empty()) {
    const auto [least, most] = std::ranges::minmax(plan_.noise, {}, &NoiseSpan::scale);
    sums.noise_over_time = {least.scale, most.scale};
  }
  sums.expected_batch = plan_.expected_batch;
  sums.steps = steps_charged(ledger);
  sums.steps_planned = plan_.steps;
  sums.order_fixed_before = plan_.order > 0.0;
  sums.delta_for_rounding = plan_.failure;
  if (plan_.epoch_releases > 0) sums.norm_total_noise = plan_.epoch_noise;
  return {.epsilon = epsilon,
          .delta = delta(),
          .method = config().method,
          .mechanism = mechanism(),
          .how = std::move(sums)};
}

/// Returns the ledger with the charges of future steps before `last` added. If a privacy filter
/// enforces the budget, returns it unchanged, because future charges are not known.
privacy::Ledger EngineMethod::planned(privacy::Ledger ledger, std::uint64_t last) const {
  if (ledger.budget()) return ledger;
  std::uint64_t number = ledger.authorised_until();
  for (const privacy::Release& release : releases_of(plan_.steps_until(number), last)) {
    ledger.authorise(number, number + release.count, release.mechanism);
    number += release.count;
  }
  return ledger;
}

std::vector<std::string> engine_method_options() {
  return {"init",
          "freeze",
          "sigma",
          "clipping",
          "sampling",
          "class-weights",
          "unsafe-diagnostics",
          "fresh-noise-allowed",
          "batch",
          "epochs",
          "steps",
          "lr",
          "optimizer",
          "momentum",
          "beta1",
          "beta2",
          "schedule",
          "weight-decay",
          "decay-every",
          "decay-factor",
          "final-lr",
          "poly-a",
          "poly-c",
          "warmup",
          "ema",
          "activation",
          "loss",
          "huber-delta",
          "micro-batch",
          "accountant"};
}

}  // namespace cudp
