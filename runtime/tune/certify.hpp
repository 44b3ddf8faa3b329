#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "privacy/certificate/certificate.hpp"
#include "runtime/sweep/trainings.hpp"
#include "runtime/tune/request.hpp"

namespace cudp {

/// Returns what each candidate's training may spend: the releases of its plan, or the budget of a
/// candidate if they will follow from what the training releases. If the number of examples was
/// released before, parts are what trainings spend after it. Equal parts are stated once.
/// spendings: the candidates' plans. epsilon, delta: budget of a candidate.
std::vector<privacy::Certificate::Tuning::Part> parts_of_selection(
    const std::vector<PlannedSpending>& spendings, ScoreRows score, double epsilon, double delta);

/// A tuning that is charged and has not ended.
struct ChargedTuning {
  double epsilon = 0.0, delta = 0.0;  ///< of the whole tuning
  DataFacts data;
  std::string rng;
  bool is_seeded = false;
};

/// Returns the certificate that the folder of a tuning has until the tuning ends: not finished, and
/// the whole budget is spent.
std::string certificate_of_charge(const ChargedTuning& charged);

/// Returns the certificate of a tuning: that of the released training, with the guarantee of the
/// whole selection. trained: its own certificate. tuning: distribution, grid and parts.
std::string tuned_certificate(const std::string& trained, privacy::Certificate::Tuning tuning,
                              double delta);

}  // namespace cudp
