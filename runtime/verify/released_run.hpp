#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "privacy/verify/released.hpp"

namespace cudp {

/// Contents of those files that an auditor of a finished run can read: the files of the run's
/// folder, or only its public folder release/.
struct ReleasedRun {
  std::filesystem::path release;  ///< path of the release folder
  /// The run's certificate, ledger and other files, as text; the ledger is empty if there is no
  /// private folder.
  verify::Evidence evidence;
  /// The run's status that the certificate states: finished, not finished or refused.
  std::string status;
  bool has_model = false;
  std::vector<std::string> files;  ///< names of the files in the release folder, sorted
  std::string note;                ///< content of NOT-FOR-RELEASE.txt; empty if there is none

  std::filesystem::path model() const { return release / "model.safetensors"; }
};

/// Reads the files of a run's folder or release folder. Throws InputError if `folder` is neither,
/// if the run is one of the trainings inside a tuning (`cudp tune`), if it has no privacy, or if a
/// file cannot be read.
ReleasedRun open_released_run(const std::filesystem::path& folder);

/// Checks everything that can be checked without secrets. First come the statements of the files
/// (privacy/verify/released.hpp), then the model's tensors against the network that the model
/// describes, then the list of files in release/: each must be one that a run with this certificate
/// writes, and none may be missing. Throws InputError if a file cannot be read. bounds: cache of
/// the accountant's results, reused by later calls.
std::vector<verify::Statement> check_released_run(const ReleasedRun& run, verify::Bounds& bounds);

}  // namespace cudp
