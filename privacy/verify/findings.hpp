#pragma once
#include <optional>
#include <string>
#include <vector>

namespace cudp::verify {

/// One error that the verification of a run has found: the rule that is violated, and a text.
struct Finding {
  std::string rule;  ///< name of the broken rule, as in privacy/README.md
  std::string what;  ///< where in the run, what was expected, what was found
};

/// Errors that the verification of a run has found. Only the first ten of each rule are stored.
struct Findings {
  std::vector<Finding> all;
  std::vector<std::string> skipped;  ///< checks that were not possible, and why
  /// Recomputed epsilon of the certificate's releases; nullopt if it was not computed.
  std::optional<double> epsilon;

  void add(const char* rule, std::string what);
  /// Checks one number of a run: unless `holds` is true, adds the finding "WHERE: expected
  /// EXPECTED, found FOUND" under this rule. where: place in the run's files.
  void expect(bool holds, const char* rule, const std::string& where, double expected,
              double found);
  /// Records that a check was not possible. what: the check and the reason. The same text is
  /// recorded once.
  void skip(const std::string& what);
};

}  // namespace cudp::verify
