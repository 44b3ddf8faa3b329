#pragma once
#include <optional>

#include "privacy/certificate/certificate.hpp"
#include "runtime/training/prepare.hpp"

namespace cudp {

/// Epsilon, delta and certificate of a planned training, as far as they are known before it starts.
struct SpendingForecast {
  double epsilon = 0.0;  ///< epsilon of the whole run; infinite without privacy
  double delta = 0.0;
  /// Certificate of the planned run. Nullopt without privacy, or if the plan depends on a noisy
  /// number of examples, because a forecast does not release it.
  std::optional<privacy::Certificate> plan;
};

/// Plans a training without starting it: draws no noise, charges nothing and writes nothing. Sets
/// values in the config of `experiment` that the user left open, as the training itself would at
/// its start. Throws the InputError or BudgetError that the training would throw before it releases
/// anything.
SpendingForecast forecast_spending(Experiment& experiment);

}  // namespace cudp
