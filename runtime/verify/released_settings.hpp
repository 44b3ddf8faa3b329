#pragma once
#include <string>
#include <vector>

#include "privacy/verify/released.hpp"
#include "runtime/verify/released_run.hpp"

namespace cudp {

/// Compares what the certificate states about the user's data with the settings. Returns one line
/// for each difference. The number of rows must be private unless the settings declare it public;
/// the certificate of a table must state what a row is; test rows must be in a file of their own or
/// held out.
std::vector<std::string> data_differences(const ReleasedRun& run);

/// Checks the run's config.toml: this program can read it, the settings are consistent, and the
/// program would write the same bytes. If another version or commit of the program made the run,
/// whose file may lack settings, each line must be one that this program would write.
verify::Statement check_settings_file(const ReleasedRun& run);

}  // namespace cudp
