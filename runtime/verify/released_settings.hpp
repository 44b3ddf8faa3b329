#pragma once
#include <string>
#include <vector>

#include "privacy/verify/released.hpp"
#include "runtime/verify/released_run.hpp"

namespace cudp {

/// Compares the certificate's statements about the user's own rows with the settings. The number of
/// rows is private unless the settings state otherwise. The certificate of a table states the
/// meaning of a row. Test rows are in a file of their own or held out. Returns the differences.
std::vector<std::string> data_differences(const ReleasedRun& run);

/// Checks config.toml: this program reads it, the settings fit together, and the program would
/// write the same bytes. If another version or commit of the program made the run, which may lack
/// settings, each line must be one that this program would write.
verify::Statement check_settings_file(const ReleasedRun& run);

}  // namespace cudp
