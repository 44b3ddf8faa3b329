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

/// One line of release/metrics.jsonl: the privacy spent after some step.
struct Row {
  std::uint64_t step = 0;
  /// Epsilon of the training's releases so far: the field `training_epsilon` if rows are held out,
  /// else `epsilon`.
  double epsilon = 0.0;  ///< NaN if the line has no such field
  /// Epsilon of the training and of the test metrics of held-out rows together: the field `epsilon`
  /// of a line that also has `training_epsilon`.
  std::optional<double> total_epsilon = {};
  double epoch = 0.0;
  bool is_measured = false;  ///< whether the line has metrics of test rows
};

/// Parses the lines of metrics.jsonl. Throws std::invalid_argument if a line cannot be read.
std::vector<Row> read_rows(std::string_view text);

/// Checks the lines of a finished run's metrics.jsonl against its certificate. Steps increase up to
/// the last step of the run. There are lines only for ends of epochs and for the last step. A
/// line's epsilon is the accountant's bound for the releases made by then; the certificate lists
/// the releases of steps in order. Every line has metrics of test rows if the certificate states
/// that these are public, otherwise none has. The last line's epsilon is not above the
/// certificate's. engine: whether the method has numbered steps with noisy sums over random
/// batches. options: the accountant's options. Returns one entry for each difference: line,
/// expected, found. bounds: cache of the accountant's results.
std::vector<std::string> check_rows(const std::vector<Row>& rows, const StatedNumbers& certificate,
                                    const Settings& settings, bool engine,
                                    const privacy::AccountantOptions& options, Bounds& bounds);

}  // namespace cudp::verify
