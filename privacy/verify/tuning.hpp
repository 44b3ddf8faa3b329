#pragma once
#include <string>
#include <vector>

#include "privacy/verify/bounds.hpp"
#include "privacy/verify/settings.hpp"
#include "privacy/verify/stated_numbers.hpp"

namespace cudp::verify {

/// Checks the statements of a certificate about a selection: the spending of each candidate is
/// listed, the released training is one of the candidates, and epsilon, E[K] (mean number of
/// trainings) and the kind of bound follow from these. settings: those of the released training,
/// which must be a candidate's. bounds: cache of the accountant's results.
/// Returns one line for each difference.
std::vector<std::string> check_tuning(const privacy::Certificate::Tuning& tuning,
                                      const StatedNumbers& certificate, const Settings& settings,
                                      Bounds& bounds);

}  // namespace cudp::verify
