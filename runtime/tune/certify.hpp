#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "privacy/certificate/certificate.hpp"
#include "runtime/sweep/trainings.hpp"
#include "runtime/tune/request.hpp"

namespace cudp {

/// Returns the privacy that each candidate may spend on its training, and on its score if `score`
/// is of held-out rows: the releases of the training's plan, or a candidate's whole budget
/// (epsilon, delta) if the plan does not fix them. Candidates that spend the same share one part.
/// spendings: the candidates' plans.
std::vector<privacy::Certificate::Tuning::Part> parts_of_selection(
    const std::vector<PlannedSpending>& spendings, ScoreRows score, double epsilon, double delta);

/// Returns the certificate of a tuning: that of the released training, with the guarantee of the
/// whole selection. trained: its own certificate. tuning: distribution, grid and parts.
std::string tuned_certificate(const std::string& trained, privacy::Certificate::Tuning tuning,
                              double delta);

}  // namespace cudp
