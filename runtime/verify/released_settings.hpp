#pragma once
#include <string>
#include <vector>

#include "privacy/verify/released.hpp"
#include "runtime/verify/released_run.hpp"

namespace cudp {

/// What the certificate of rows of one's own says of them, against the settings: their number is
/// private unless these say otherwise, of a table it states what a row is, and test rows are in
/// a file of their own or held out. Returns what differs.
std::vector<std::string> data_differences(const ReleasedRun& run);

/// Holds config.toml against this program's own settings: it reads them, they fit together, and it
/// would write the same file. Where another version or commit of the program made the run, the file
/// is not looked at: its settings may be others.
verify::Statement check_settings_file(const ReleasedRun& run);

}  // namespace cudp
