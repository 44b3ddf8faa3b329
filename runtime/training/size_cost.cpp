#include "runtime/training/size_cost.hpp"

#include <cmath>
#include <memory>
#include <stdexcept>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/error.hpp"
#include "runtime/base/rounded_text.hpp"
#include "runtime/data/bytes.hpp"
#include "runtime/data/key_names.hpp"
#include "runtime/data/named_datasets.hpp"
#include "runtime/methods/method_context.hpp"
#include "runtime/methods/registry.hpp"

namespace cudp {
namespace {

/// Makes the training method as if the number of examples were public; returns null if its plan
/// exceeds the budget.
std::unique_ptr<Method> method_if_public(const Experiment& e, TrainingSize size) {
  size.noise = 0.0;
  try {
    return method_entry(e.config.method)
        .make(method_context(e.config, e.network, size, e.backend.arithmetic(e.network),
                             privacy::Ledger{}));
  } catch (const Error&) {
    return nullptr;
  } catch (const std::logic_error&) {
    return nullptr;
  }
}

}  // namespace

std::string size_cost_line(const Experiment& e, const TrainingSize& size, const Method& method) {
  const std::optional<double> sigma = method.outcome(0).sigma;
  if (size.is_public() || !sigma) return "";
  const std::unique_ptr<Method> other = method_if_public(e, size);
  const std::optional<double> less = other ? other->outcome(0).sigma : std::nullopt;
  if (!less) return "";
  // If rows are held out, the number of training rows depends on secret random decisions and cannot
  // be public.
  const char* const hint = e.config.holdout ? "" : " (--size-is-public, if it is no secret)";
  if (*less < *sigma)
    return fmt::format(
        "a private row count costs {:.2g} % more noise: sigma {:.5g} instead "
        "of {:.5g}{}",
        100.0 * (*sigma / *less - 1.0), *sigma, *less, hint);
  if (other->epsilon() < method.epsilon())
    return fmt::format("a private row count costs epsilon: {:.4g} instead of {:.4g}{}",
                       method.epsilon(), other->epsilon(), hint);
  return "";
}

std::string row_privacy_line(const Experiment& e, const Method& method) {
  if (e.data.unit_rows > 1 || (e.data.schema && e.data.schema->unit) ||
      !std::isfinite(method.epsilon()))
    return "";
  if (is_named_dataset(e.config.dataset)) return "privacy is that of each example";
  if (!e.data.schema)
    return "privacy is that of each example; if a person can have several, it is less for them "
           "(cudp account RUN says how much)";
  return "privacy is that of each row; if a person can have several rows, set " +
         unit_keys(*e.data.schema) + " in the schema";
}

std::string unit_cost_line(const Experiment& e, const Method& method) {
  if (e.data.unit_rows == 1 || !std::isfinite(method.epsilon())) return "";
  const std::string column = e.data.schema && e.data.schema->unit
                                 ? ", all with one text in " + shown(e.data.schema->unit->column)
                                 : "";
  return fmt::format(
      "the unit of privacy is up to {} rows{}: that costs epsilon {}; with the same noise single "
      "rows "
      "(max_rows = 1) would cost {}",
      e.data.unit_rows, column, rounded_up(method.epsilon(), 4),
      rounded_up(method.epsilon_of_one_example(), 4));
}

}  // namespace cudp
