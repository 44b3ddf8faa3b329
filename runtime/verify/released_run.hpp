#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "privacy/verify/released.hpp"

namespace cudp {

/// Contents of the files of a run's folder, or of its release folder alone, which an auditor can
/// read.
struct ReleasedRun {
  std::filesystem::path release;  ///< path of the release folder
  /// Certificate, ledger etc.; the ledger is empty if there is no private folder.
  verify::Evidence evidence;
  std::string status;  ///< stated by the certificate: finished, not finished or refused
  bool has_model = false;
  std::vector<std::string> files;  ///< names of the files in the release folder, sorted
  std::string note;                ///< content of NOT-FOR-RELEASE.txt; empty if there is none

  std::filesystem::path model() const { return release / "model.safetensors"; }
};

/// Reads the files of a run's folder or release folder. Throws InputError if `folder` is not one,
/// if the run is one of the trainings inside a tuning (`cudp tune`), if it has no privacy, or if a
/// file cannot be read.
ReleasedRun open_released_run(const std::filesystem::path& folder);

/// Checks everything that can be checked without secrets. First come the statements of the files
/// (privacy/verify/released.hpp), then the model's tensors against the network that the model
/// describes, then the list of files in release/: each must be accounted for by the certificate,
/// and none may be missing. Throws InputError if a file cannot be read. bounds: cache of the
/// accountant's results, reused by later calls.
std::vector<verify::Statement> check_released_run(const ReleasedRun& run, verify::Bounds& bounds);

}  // namespace cudp
