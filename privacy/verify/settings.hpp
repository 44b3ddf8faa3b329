#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace cudp::verify {

/// The settings of a run, parsed from release/config.toml, which has one KEY = VALUE a line.
class Settings {
 public:
  /// Parses the text of config.toml. Throws std::invalid_argument on a line that is not KEY =
  /// VALUE, a comment, a heading or empty, and on a repeated key.
  explicit Settings(std::string_view text);

  bool empty() const { return values_.empty(); }
  bool has(const std::string& key) const { return values_.contains(key); }
  /// Returns a setting as a number. Throws std::invalid_argument if the key is missing or its value
  /// is not a number.
  double number(const std::string& key) const;
  std::string text(const std::string& key) const;
  bool is_on(const std::string& key) const { return text(key) == "true"; }

 private:
  std::map<std::string, std::string> values_;
};

/// Returns the learning rate of step `step` (from 0) out of `steps`, by the schedule in the
/// settings: constant, adaptive, step, cosine, polynomial or square-root, each with warm-up. The
/// adaptive schedule divides its rate by b, the root of a growing sum of squared gradient norms;
/// this function returns the rate before that division.
double scheduled_rate(const Settings& settings, std::uint64_t steps, std::uint64_t steps_per_epoch,
                      std::uint64_t step);

}  // namespace cudp::verify
