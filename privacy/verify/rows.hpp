#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "privacy/accountant.hpp"
#include "privacy/verify/bounds.hpp"
#include "privacy/verify/certificate.hpp"
#include "privacy/verify/charges.hpp"
#include "privacy/verify/settings.hpp"

namespace cudp::verify {

/// A line of release/metrics.jsonl: what was spent when so many steps were done.
struct Row {
  std::uint64_t step = 0;
  /// Of what training had released by then, as `training_epsilon` where rows are held out.
  double epsilon = 0.0;               ///< NaN where none is claimed
  std::optional<double> of_all = {};  ///< `epsilon` beside a `training_epsilon`
  double epoch = 0.0;
  bool is_measured = false;  ///< says how well the model does on test rows
};

/// Throws std::invalid_argument where a line cannot be read.
std::vector<Row> read_rows(std::string_view text);

/// Holds the rows of a finished run against its certificate:
/// steps rise up to the last one that was made, and epsilon is what the accountant finds for the
/// releases that had been made by then, of which those of steps stand in the certificate in their
/// order; rows are of ends of epochs and of the last step. Test
/// rows are measured in all rows or in none, and only where the certificate says that they are
/// public. The last row's epsilon is not above the certificate's. engine: the method has numbered
/// steps of Poisson batches. options: the accountant's. Returns what differs: place, expected,
/// found.
std::vector<std::string> check_rows(const std::vector<Row>& rows, const Certificate& certificate,
                                    const Settings& settings, bool engine,
                                    const privacy::AccountantOptions& options, Bounds& bounds);

}  // namespace cudp::verify
