#pragma once
#include <optional>

#include "privacy/certificate/certificate.hpp"
#include "runtime/training/prepare.hpp"

namespace cudp {

/// The privacy that a training would spend, as far as it is known before it starts.
struct SpendingForecast {
  double epsilon = 0.0;  ///< of the whole run; infinite without privacy
  double delta = 0.0;
  /// Certificate of the planned run. Empty without privacy, or if the plan depends on a noisy
  /// number of examples, which is not drawn here.
  std::optional<privacy::Certificate> plan;
};

/// Plans a training without starting it: draws no noise, charges and writes nothing. Changes the
/// config of `experiment` as starting the training would. Throws the InputError or BudgetError that
/// the training would throw before its first release.
SpendingForecast forecast_spending(Experiment& experiment);

}  // namespace cudp
