#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "privacy/certificate/certificate.hpp"
#include "runtime/sweep/trainings.hpp"
#include "runtime/tune/request.hpp"

namespace cudp {

/// Returns, for the certificate, the privacy cost of each candidate's training: the releases of its
/// plan or, if these depend on values that the training releases, the budget of a candidate. Costs
/// do not include that of a number of examples that was released before. Equal costs are listed
/// once. spendings: the candidates' plans. epsilon, delta: budget of a candidate.
std::vector<privacy::Certificate::Tuning::Part> parts_of_selection(
    const std::vector<PlannedSpending>& spendings, ScoreRows score, double epsilon, double delta);

/// Facts about a tuning that is charged and has not ended.
struct ChargedTuning {
  double epsilon = 0.0, delta = 0.0;  ///< budget of the whole tuning
  DataFacts data;
  std::string rng;
  bool is_seeded = false;
};

/// Returns the certificate that is in the folder of a tuning until the tuning ends. It states that
/// the tuning is not finished and that its whole budget is spent.
std::string certificate_of_charge(const ChargedTuning& charged);

/// Returns the certificate of a tuning: that of the released training, but with the guarantee of
/// the whole tuning. trained: certificate of the released training. tuning: distribution of the
/// number of trainings, grid and candidates' costs. delta: of the whole tuning.
std::string tuned_certificate(const std::string& trained, privacy::Certificate::Tuning tuning,
                              double delta);

}  // namespace cudp
