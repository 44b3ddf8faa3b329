#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "privacy/certificate/certificate.hpp"
#include "runtime/sweep/trainings.hpp"
#include "runtime/tune/request.hpp"

namespace cudp {

/// Returns the privacy costs for the certificate of a tuning: one of each candidate (combination of
/// settings) and, if candidates are scored on held-out rows, one of the score. A candidate's cost
/// is the list of noisy values that its training will release. If that list is not fixed in
/// advance, the cost is (epsilon, delta). A noisy number of examples that is released once for all
/// trainings is not included. Candidates with the same cost are listed together. spendings: planned
/// costs of the candidates. epsilon, delta: budget of a candidate.
std::vector<privacy::Certificate::Tuning::Part> parts_of_selection(
    const std::vector<PlannedSpending>& spendings, ScoreRows score, double epsilon, double delta);

/// Content of the certificate of a tuning in progress: the budget of the whole tuning, all of which
/// is charged before the first training, the data, and the source of random numbers.
struct ChargedTuning {
  double epsilon = 0.0, delta = 0.0;  ///< budget of the whole tuning
  DataFacts data;
  std::string rng;
  bool is_seeded = false;
};

/// Returns the text of the certificate that is in the folder of a tuning until the tuning ends. It
/// states that the tuning is not finished, and that the tuning's whole budget is spent.
std::string certificate_of_charge(const ChargedTuning& charged);

/// Returns the certificate of a tuning: that of the released training, but with the guarantee of
/// the whole tuning. trained: certificate of the released training. tuning: description of the
/// tuning for the certificate (distribution of the number of trainings, grid of settings, costs of
/// candidates). delta: delta of the whole tuning.
std::string tuned_certificate(const std::string& trained, privacy::Certificate::Tuning tuning,
                              double delta);

}  // namespace cudp
