#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "privacy/verify/released.hpp"

namespace cudp {

/// A run's folder, or its release folder alone, as text: what an auditor has.
struct ReleasedRun {
  std::filesystem::path release;  ///< folder
  verify::Evidence evidence;      ///< the ledger is empty where the private folder is not there
  std::string status;             ///< of the certificate: finished, not finished, refused
  bool has_model = false;
  std::vector<std::string> files;  ///< names in the folder, sorted
  std::string note;                ///< NOT-FOR-RELEASE.txt; empty where it is not there

  std::filesystem::path model() const { return release / "model.safetensors"; }
};

/// Throws InputError where it is no folder of a run, of one that gives no privacy, or unreadable.
ReleasedRun open_released_run(const std::filesystem::path& folder);

/// Everything that can be held without what is secret: the statements of the files
/// (privacy/verify/released.hpp), then the model's tensors against the network that it names, and
/// each file of release/ against the certificate: none is missing, and none is there that it does
/// not account for. Throws InputError where a file cannot be read. bounds: of accountants, kept for
/// the next run.
std::vector<verify::Statement> hold(const ReleasedRun& run, verify::Bounds& bounds);

}  // namespace cudp
