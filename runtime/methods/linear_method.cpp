#include "runtime/methods/linear_method.hpp"

#include <spdlog/fmt/fmt.h>

#include "runtime/base/error.hpp"
#include "runtime/base/rounded_text.hpp"
#include "runtime/methods/plan.hpp"
#include "runtime/methods/releases_before.hpp"

namespace cudp {

LinearProblem linear_problem(const MethodContext& context) {
  return {.loss = context.network.spec.loss,
          .dimension = static_cast<int>(context.network.parameter_count),
          .examples = context.size.value,
          .max_examples = context.size.max_examples(0.5 * kFailureShare * *context.config.delta),
          .mu_before = mu_of(context.before),
          .unit_rows = static_cast<double>(context.size.unit_rows),
          .size_is_public = context.size.is_public()};
}

std::string LinearMethod::describe() const {
  return fmt::format("{}: epsilon {} at delta {}", config_.method, rounded_up(epsilon(), 4),
                     short_rounded_up(delta()));
}

void LinearMethod::start(const TrainingInputs& inputs, const PrivacyBudget&) {
  inputs_.emplace(inputs);
}

void LinearMethod::restore(const TrainingInputs& inputs, const MethodState&) {
  inputs_.emplace(inputs);
}

void LinearMethod::fresh_key(PrivacyBudget&, std::uint64_t) {
  throw BudgetError(
      "the interrupted run may already have drawn its only release, which used the whole budget; "
      "it "
      "cannot be repeated with another key. Start a new run with a new budget.");
}

void LinearMethod::pass_gate(Gate& gate) const {
  for (const privacy::Release& release : releases())
    ensure(gate.admit({release.mechanism, {}, release.count}), "a release that is not paid for");
}

std::uint64_t LinearMethod::train(std::uint64_t, std::uint64_t until) {
  weights_ = fit({.train = inputs_->train,
                  .threads = static_cast<int>(config_.threads),
                  .generator = config_.rng,
                  .key = inputs_->key.key(),
                  .gate = inputs_->gate});
  return until;
}

privacy::Promise LinearMethod::promise(const privacy::Ledger& ledger, std::uint64_t) const {
  privacy::Promise p{
      .epsilon = epsilon(), .delta = delta(), .method = config_.method, .mechanism = {}, .how = {}};
  describe_mechanism(p, ledger.releases());
  return p;
}

MethodEntry linear_method_entry() {
  MethodEntry entry;
  entry.option_group = "Linear baselines";
  entry.stochastic = false;
  entry.linear_model = true;
  entry.counts_in_its_proof = true;
  entry.cpu_only = true;
  entry.on_ranks = false;
  return entry;
}

}  // namespace cudp
