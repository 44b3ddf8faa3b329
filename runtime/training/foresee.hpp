#pragma once
#include <optional>

#include "privacy/certificate/certificate.hpp"
#include "runtime/training/prepare.hpp"

namespace cudp {

/// Privacy that a training would spend, as far as it is known before it begins.
struct Foreseen {
  double epsilon = 0.0;  ///< epsilon of the whole run; infinite without privacy
  double delta = 0.0;
  /// Certificate of the plan. Empty without privacy, and if the plan will follow from a noisy
  /// number of examples, which is not drawn here.
  std::optional<privacy::Certificate> plan;
};

/// Plans a training without beginning it: draws, charges and writes nothing. Changes the config of
/// `experiment` as the beginning of a training would. Throws the errors that the beginning of the
/// training would throw before anything is released. Throws InputError, BudgetError.
Foreseen foresee(Experiment& experiment);

}  // namespace cudp
