#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "privacy/verify/certificate.hpp"
#include "runtime/cli/answer.hpp"

namespace cudp {

/// The certificate of a run, as its file has it and as numbers.
struct RunCertificate {
  std::filesystem::path file;
  nlohmann::json json;
  verify::Certificate stated;

  /// A text of the file; empty where there is none of that name.
  std::string text(const char* key) const;
  /// A list of texts of the file; the same.
  std::vector<std::string> texts(const char* key) const;
};

/// place: a run's folder, its release folder, or a privacy.json. Throws InputError where there is
/// no certificate, or none that can be read.
RunCertificate read_run_certificate(const std::filesystem::path& place);

// What `cudp account` reports of runs. All throw InputError; a run is given as to
// read_run_certificate.

/// A run's certificate in sentences: what is promised, what that means, how it was made, what was
/// released, and what the promise does not cover.
Answer explained(const std::string& run);

/// The epsilon of a run had it had other settings, beside its own. changes: one row each,
/// "KEY=VALUE" with KEY epochs, steps, batch, sigma, epsilon (to which the noise is calibrated) or
/// delta; several at once are joined by "+". With another batch the number of epochs stays. Nothing
/// is trained, and the data are not looked at. Refuses a run whose releases do not follow from
/// these numbers alone. Throws std::exception as privacy/ does.
Answer what_if(const std::string& run, const std::vector<std::string>& changes);

/// Adds up what several runs on the same data spend: as chosen on the way, and fixed ahead
/// (privacy/several_runs.hpp). Unfinished runs count by their plan. delta: of all together; that
/// which all the certificates state, if not given. fixed_ahead: the user states that no setting was
/// chosen by looking at an earlier run, so that the smaller number is the answer. Refuses
/// certificates that differ in what neighbours are, and a run that is given twice. Throws
/// std::exception as privacy/ does.
Answer several_runs(const std::vector<std::string>& runs, std::optional<double> delta,
                    bool fixed_ahead);

}  // namespace cudp
