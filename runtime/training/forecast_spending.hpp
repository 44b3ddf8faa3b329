#pragma once
#include <optional>

#include "privacy/certificate/certificate.hpp"
#include "runtime/training/prepare.hpp"

namespace cudp {

/// Privacy cost of a training, as far as it is known before the training starts.
struct SpendingForecast {
  double epsilon = 0.0;  ///< epsilon of the whole run; infinite without privacy
  double delta = 0.0;
  /// Certificate of the planned run. Nullopt without privacy, or if the plan depends on a noisy
  /// number of examples, which is not released here.
  std::optional<privacy::Certificate> plan;
};

/// Plans a training without starting it: draws no noise, charges nothing and writes nothing.
/// Completes the config of `experiment` as starting the training would. Throws the InputError or
/// BudgetError that the training would throw before its first release.
SpendingForecast forecast_spending(Experiment& experiment);

}  // namespace cudp
