#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/cli/answer.hpp"
#include "runtime/report/run_certificate.hpp"

namespace cudp {

/// The privacy certificate of a run, and the path of the file (privacy.json) from which it was
/// read.
struct NamedCertificate : RunCertificate {
  std::filesystem::path file;
};

/// Reads the certificate of a run. place: path of a run's folder, of its folder release/, or of a
/// privacy.json. Throws InputError if there is no certificate, if it cannot be read, or if the run
/// is a single training of `cudp tune`, because only the tuning as a whole has a privacy guarantee.
NamedCertificate read_run_certificate(const std::filesystem::path& place);

/// Epsilon and delta that several runs on the same data have together.
struct JointSpending {
  double epsilon = 0.0;
  double delta = 0.0;
};

/// A run whose privacy cost is to be added to that of other runs. certificate: text of its
/// certificate; if it is "", epsilon and delta are upper bounds that the run will not exceed.
struct SpendingRun {
  std::string certificate;
  double epsilon = 0.0;
  double delta = 0.0;
};

/// Returns the epsilon of all runs together, valid even if each was chosen after looking at the
/// earlier ones. delta: delta of all runs together; if it is not given, the largest delta of a run
/// is used, or the sum of the deltas of all runs if a run has no certificate yet. Throws InputError
/// if runs have different neighbouring relations, BudgetError if there is no bound at this delta.
JointSpending joint_spending(const std::vector<SpendingRun>& runs, std::optional<double> delta);

// Answers of `cudp account` about runs. They throw InputError. run: as `place` in
// read_run_certificate.

/// Explains a run's certificate in sentences: what it guarantees and what that means, the training
/// method, the noisy values that were released, and what is not guaranteed. run: path of the run.
Answer explained(const std::string& run);

/// Compares a run's epsilon with what it would be with other settings. run: path of the run.
/// changes: each gives a row of the output, for one changed setting, "KEY=VALUE" with KEY epochs,
/// steps, batch, sigma, epsilon (to which the noise is calibrated) or delta. Several changes at
/// once are joined by "+". Another batch keeps the number of epochs. Trains nothing and reads no
/// data. Throws InputError if the noisy values that the run releases do not follow from these
/// numbers alone; also throws what the functions in privacy/ throw.
Answer what_if(const std::string& run, const std::vector<std::string>& changes);

/// Computes the epsilon of several runs on the same data together, both if their settings were
/// chosen by looking at earlier runs and if they were fixed beforehand (privacy/several_runs.hpp).
/// For unfinished runs, uses the planned cost. delta: delta of all runs together; if not given, the
/// delta that all certificates state. fixed_ahead: the user states that no setting was chosen by
/// looking at an earlier run, so that the smaller number is the answer. Throws InputError if the
/// certificates have different neighbouring relations, or if a run is given twice; also throws what
/// the functions in privacy/ throw.
Answer several_runs(const std::vector<std::string>& runs, std::optional<double> delta,
                    bool fixed_ahead);

}  // namespace cudp
