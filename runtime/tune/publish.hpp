#pragma once
#include <string>

#include "privacy/certificate/certificate.hpp"
#include "runtime/run/folder.hpp"
#include "runtime/tune/tune.hpp"

namespace cudp {

/// Description of the training that a tuning selected to be released, and of the tuning's
/// guarantee.
struct SelectedTraining {
  privacy::Certificate::Tuning tuning;
  double delta = 0.0;            ///< delta of the whole tuning
  double charged_epsilon = 0.0;  ///< epsilon, at `delta`, that was charged for the tuning
  /// Values that the selected training has for the settings in which the candidates differ, as
  /// text.
  std::string settings;
  std::string score_name;
  std::string score;
};

/// Copies release/ of the selected training's folder `from` to the tuning's folder `to`, with the
/// guarantee of the whole tuning in privacy.json and in the pages, and `tuned = true` in
/// config.toml. Then copies those files of private/ that other commands read; the last one is
/// result.json, which marks the tuning as finished. If it is interrupted, it can be called again.
/// Throws Error, before it writes anything, if the epsilon of the whole tuning is larger than the
/// one that was charged.
void publish_tuned(const RunFolder& from, const RunFolder& to, const SelectedTraining& selected);

/// Reads the result of a finished tuning from its folder.
TuneResult tuned_result(const RunFolder& folder);

}  // namespace cudp
