#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "privacy/accountant.hpp"
#include "privacy/verify/bounds.hpp"
#include "privacy/verify/charges.hpp"
#include "privacy/verify/settings.hpp"
#include "privacy/verify/stated_numbers.hpp"

namespace cudp::verify {

/// A line of release/metrics.jsonl: the privacy spent by a step.
struct Row {
  std::uint64_t step = 0;
  /// Epsilon of the training's releases so far: the field `training_epsilon` if rows are held out,
  /// else `epsilon`.
  double epsilon = 0.0;               ///< NaN if none is claimed
  std::optional<double> of_all = {};  ///< the field `epsilon`, if there is a `training_epsilon`
  double epoch = 0.0;
  bool is_measured = false;  ///< has figures of test rows
};

/// Throws std::invalid_argument if a line cannot be read.
std::vector<Row> read_rows(std::string_view text);

/// Checks the rows of a finished run against its certificate. Steps rise up to the last one made.
/// Rows are at ends of epochs and at the last step. A row's epsilon is the accountant's bound for
/// the releases made by then; the certificate lists those of steps in their order. Every row has
/// figures of test rows if the certificate states that they are public, otherwise none has. The
/// last row's epsilon is not above the certificate's.
/// `engine`: the method has numbered steps of Poisson batches. `options`: the accountant's. Returns
/// the differences: row, expected, found.
std::vector<std::string> check_rows(const std::vector<Row>& rows, const StatedNumbers& certificate,
                                    const Settings& settings, bool engine,
                                    const privacy::AccountantOptions& options, Bounds& bounds);

}  // namespace cudp::verify
