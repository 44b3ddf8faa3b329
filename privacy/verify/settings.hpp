#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace cudp::verify {

/// A run's settings, as release/config.toml lists them: KEY = VALUE, one a line.
class Settings {
 public:
  /// Throws std::invalid_argument on a line that is neither that, a comment, a heading nor empty,
  /// and on a key that stands there twice.
  explicit Settings(std::string_view text);

  bool empty() const { return values_.empty(); }
  bool has(const std::string& key) const { return values_.contains(key); }
  /// Throw std::invalid_argument where the key is missing or of another kind.
  double number(const std::string& key) const;
  std::string text(const std::string& key) const;
  bool is_on(const std::string& key) const { return text(key) == "true"; }

 private:
  std::map<std::string, std::string> values_;
};

/// The learning rate of a step of `steps`, before adaptive steps are divided by b. step counts from
/// 0. Schedules: constant, adaptive, step, cosine, polynomial, square-root; warm-up on all of them.
double scheduled_rate(const Settings& settings, std::uint64_t steps, std::uint64_t steps_per_epoch,
                      std::uint64_t step);

}  // namespace cudp::verify
