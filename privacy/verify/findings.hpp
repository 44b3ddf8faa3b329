#pragma once
#include <optional>
#include <string>
#include <vector>

namespace cudp::verify {

/// One difference that a check has found.
struct Finding {
  std::string rule;  ///< name of the broken rule, as in privacy/README.md
  std::string what;  ///< where in the run, what was expected, what was found
};

/// Differences that a check has found. Only the first ten of each rule are stored.
struct Findings {
  std::vector<Finding> all;
  std::vector<std::string> skipped;  ///< checks that were not possible, and why
  std::optional<double> epsilon;     ///< Verdict::epsilon

  void add(const char* rule, std::string what);
  /// Adds the finding "WHERE: expected ..., found ..." unless `holds`.
  void expect(bool holds, const char* rule, const std::string& where, double expected,
              double found);
  /// Records that something could not be checked; once, even if it is called again.
  void skip(const std::string& what);
};

}  // namespace cudp::verify
