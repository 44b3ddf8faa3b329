#pragma once
#include <string>

#include "privacy/certificate/certificate.hpp"
#include "runtime/run/folder.hpp"
#include "runtime/tune/tune.hpp"

namespace cudp {

/// The released training of a tuning.
struct SelectedTraining {
  privacy::Certificate::Tuning tuning;
  double delta = 0.0;            ///< of the whole tuning
  double charged_epsilon = 0.0;  ///< that the tuning was charged with, at delta
  std::string settings;          ///< those that candidates differ in
  std::string score_name;
  std::string score;
};

/// Copies the selected training's release to the tuned run, with the guarantee of the whole tuning
/// in privacy.json and in the pages, and `tuned = true` in config.toml. Then copies the files of
/// private/ that commands on a run read, result.json last: with it the tuning is finished. May be
/// repeated after an interruption. Throws Error, before it writes anything, if the guarantee of the
/// whole tuning is weaker than what was charged.
void publish_tuned(const RunFolder& from, const RunFolder& to, const SelectedTraining& selected);

/// Returns the result of a finished tuning.
TuneResult tuned_result(const RunFolder& folder);

}  // namespace cudp
