#pragma once
#include <optional>
#include <string>
#include <vector>

namespace cudp::verify {

struct Finding {
  std::string rule;  ///< name of the broken rule, as in privacy/README.md
  std::string what;  ///< location in the run, expected, found
};

/// Findings of a check. Only the first ten of each rule are kept.
struct Findings {
  std::vector<Finding> all;
  std::vector<std::string> skipped;
  std::optional<double> epsilon;  ///< Verdict::epsilon

  void add(const char* rule, std::string what);
  /// Adds the finding "WHERE: expected ..., found ..." unless `holds`.
  void expect(bool holds, const char* rule, const std::string& where, double expected,
              double found);
  /// Records, once, that something could not be checked.
  void skip(const std::string& what);
};

}  // namespace cudp::verify
