#pragma once
#include <string>
#include <vector>

#include "privacy/verify/released.hpp"
#include "runtime/verify/released_run.hpp"

namespace cudp {

/// Compares the certificate's statements about data of the user with the settings, and returns the
/// differences. Checks that the number of rows is private unless the settings declare it public,
/// that the certificate of a table states the meaning of a row, and that test rows are in a file of
/// their own or held out.
std::vector<std::string> data_differences(const ReleasedRun& run);

/// Checks config.toml: this program reads it, the settings fit together, and the program would
/// write the same bytes. If another version or commit of the program made the run, which may lack
/// settings, each line must be one that this program would write.
verify::Statement check_settings_file(const ReleasedRun& run);

}  // namespace cudp
