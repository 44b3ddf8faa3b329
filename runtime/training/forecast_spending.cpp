#include "runtime/training/forecast_spending.hpp"

#include <cmath>
#include <memory>
#include <stdexcept>
#include <utility>

#include "runtime/base/error.hpp"
#include "runtime/config/keys_in_use.hpp"
#include "runtime/methods/method_context.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/settings/table_defaults.hpp"
#include "runtime/training/before_count.hpp"
#include "runtime/training/certify.hpp"
#include "runtime/training/training.hpp"

namespace cudp {
namespace {

/// Returns work(). Rethrows std::domain_error and std::invalid_argument, which the privacy
/// accountant throws, as BudgetError.
template <class Work>
auto planned(const Work& work) {
  try {
    return work();
  } catch (const std::domain_error& e) {
    throw BudgetError(e.what());
  } catch (const std::invalid_argument& e) {
    throw BudgetError(e.what());
  }
}

}  // namespace

SpendingForecast forecast_spending(Experiment& e) {
  const double noise =
      size_noise(e.data, e.config, table_chooses_batch(e.config, e.data.train, e.network));
  const privacy::Ledger counted = ledger_of_size(noise, count_split(e.config, e.data));
  const std::optional<CountInUse>& count = e.config.of<KeysInUse>().count;
  const bool is_counted = noise > 0.0 && count && count->value;
  if (noise > 0.0 && !is_counted) check_before_count(e, noise, counted);
  const HoldoutPlan held = holdout_plan_of(e, noise);
  if (noise > 0.0 && !is_counted)
    return {.epsilon = std::fmax(e.config.epsilon.value(), held.epsilon),
            .delta = std::fmax(e.config.delta.value(), held.delta),
            .plan = std::nullopt};
  const TrainingSize size{
      .value = is_counted ? *count->value : static_cast<double>(e.data.train.whole_size()),
      .noise = noise,
      .unit_rows = e.data.unit_rows};
  choose_for_table(e.config, size, e.data.train, e.network);
  return planned([&]() -> SpendingForecast {
    MethodContext context =
        method_context(e.config, e.network, size, e.backend.arithmetic(e.network), counted);
    context.memo = e.memo;
    const std::unique_ptr<Method> method = method_entry(e.config.method).make(context);
    if (!std::isfinite(method->epsilon()))
      return {.epsilon = method->epsilon(), .delta = method->delta(), .plan = std::nullopt};
    const privacy::Ledger ledger = first_ledger(e.config, size, *method, counted);
    privacy::Certificate plan =
        with_holdout(make_plan_certificate(e, size, *method, ledger, {}, 0, method->steps()), held);
    const double epsilon = plan.epsilon, delta = plan.delta;
    return {.epsilon = epsilon, .delta = delta, .plan = std::move(plan)};
  });
}

}  // namespace cudp
