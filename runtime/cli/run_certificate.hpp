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

/// Returns the epsilon of all runs together. It is valid even if the settings of a run were chosen
/// after looking at earlier runs. delta: delta of all runs together; if it is not given, the
/// largest delta of a run is used, or the sum of the deltas if a run has no certificate yet. Throws
/// InputError if runs have different neighbouring relations, BudgetError if there is no bound at
/// this delta.
JointSpending joint_spending(const std::vector<SpendingRun>& runs, std::optional<double> delta);

// Functions that compute the answers of `cudp account` about runs. run: path of a run's folder, of
// its folder release/, or of a privacy.json. They throw InputError like read_run_certificate().

/// Explains a run's certificate in sentences: what it guarantees and what that means, the training
/// method, the noisy values that were released, and what is not guaranteed. run: path of the run.
Answer explained(const std::string& run);

/// Compares a run's epsilon with the epsilon that it would have with other settings. run: path of
/// the run. changes: one text for each row of the output: "KEY=VALUE", or several of these joined
/// by "+". KEY is epochs, steps, batch, sigma, epsilon (the noise is then calibrated to it) or
/// delta. If the batch changes, the number of epochs is kept. Trains nothing and reads no data.
/// Throws InputError if the run's releases do not follow from these numbers alone; also throws
/// std::invalid_argument or std::domain_error if the accountant cannot compute an epsilon.
Answer what_if(const std::string& run, const std::vector<std::string>& changes);

/// Computes the epsilon that several runs on the same data have together, in two ways
/// (privacy/several_runs.hpp): for settings that may have been chosen by looking at earlier runs,
/// and for settings that were all fixed beforehand. The output has both. Its main epsilon is the
/// first one or, if fixed_ahead is set, the second one, which is never larger. fixed_ahead: the
/// user states that no setting was chosen by looking at a run. For unfinished runs, uses the
/// planned cost. delta: delta of all runs together; if not given, the delta that all certificates
/// state. Throws InputError if the certificates have different neighbouring relations, or if a run
/// is given twice; also throws std::invalid_argument or std::domain_error if the accountant cannot
/// compute an epsilon.
Answer several_runs(const std::vector<std::string>& runs, std::optional<double> delta,
                    bool fixed_ahead);

}  // namespace cudp
