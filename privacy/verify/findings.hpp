#pragma once
#include <optional>
#include <string>
#include <vector>

namespace cudp::verify {

struct Finding {
  std::string rule;  ///< which one was broken, by its name in privacy/README.md
  std::string what;  ///< place, expected, found
};

/// The findings, a few of each rule.
struct Findings {
  std::vector<Finding> all;
  std::vector<std::string> skipped;
  std::optional<double> epsilon;  ///< Verdict::epsilon

  void add(const char* rule, std::string what);
  /// Adds "WHERE: expected ..., found ..." unless it holds.
  void expect(bool holds, const char* rule, const std::string& where, double expected,
              double found);
  /// Says once that something could not be held.
  void skip(const std::string& what);
};

}  // namespace cudp::verify
