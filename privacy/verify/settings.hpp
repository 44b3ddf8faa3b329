#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace cudp::verify {

/// A run's settings, as in release/config.toml: one KEY = VALUE a line.
class Settings {
 public:
  /// Throws std::invalid_argument on a line that is no KEY = VALUE, comment, heading or empty line,
  /// and on a repeated key.
  explicit Settings(std::string_view text);

  bool empty() const { return values_.empty(); }
  bool has(const std::string& key) const { return values_.contains(key); }
  /// Throws std::invalid_argument if the key is missing or its value is not a number.
  double number(const std::string& key) const;
  std::string text(const std::string& key) const;
  bool is_on(const std::string& key) const { return text(key) == "true"; }

 private:
  std::map<std::string, std::string> values_;
};

/// Returns the learning rate of step `step` (from 0) of `steps`, before adaptive steps are divided
/// by b. Schedules: constant, adaptive, step, cosine, polynomial, square-root; each with warm-up.
double scheduled_rate(const Settings& settings, std::uint64_t steps, std::uint64_t steps_per_epoch,
                      std::uint64_t step);

}  // namespace cudp::verify
