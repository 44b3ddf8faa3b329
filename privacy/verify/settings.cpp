#include "privacy/verify/settings.hpp"

#include <charconv>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <system_error>

namespace cudp::verify {

Settings::Settings(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#' || line.front() == '[') continue;
    const std::size_t equals = line.find(" = ");
    if (equals == std::string_view::npos)
      throw std::invalid_argument("settings: expected KEY = VALUE, found '" + std::string(line) +
                                  "'");
    std::string_view value = line.substr(equals + 3);
    if (value.size() >= 2 && (value.front() == '"' || value.front() == '\''))
      value = value.substr(1, value.size() - 2);
    const std::string key(line.substr(0, equals));
    if (!values_.emplace(key, value).second)
      throw std::invalid_argument("settings: expected " + key + " once, found it twice");
  }
}

std::string Settings::text(const std::string& key) const {
  const auto found = values_.find(key);
  if (found == values_.end()) throw std::invalid_argument("settings: expected " + key);
  return found->second;
}

double Settings::number(const std::string& key) const {
  const std::string value = text(key);
  double x = 0.0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), x);
  if (error != std::errc() || end != value.data() + value.size())
    throw std::invalid_argument("settings: expected a number for " + key + ", found " + value);
  return x;
}

double scheduled_rate(const Settings& s, std::uint64_t steps, std::uint64_t steps_per_epoch,
                      std::uint64_t step) {
  const std::string kind = s.text("schedule");
  const double lr = s.number("lr");
  const auto t = static_cast<double>(step);
  const double share = t / static_cast<double>(steps);
  double rate = lr;
  if (kind == "step") {
    const double epochs = std::floor(t / static_cast<double>(steps_per_epoch));
    rate = lr * std::pow(s.number("decay-factor"), std::floor(epochs / s.number("decay-every")));
  } else if (kind == "cosine") {
    const double last = s.number("final-lr");
    rate = lr * (last + (1.0 - last) * (1.0 + std::cos(std::numbers::pi * share)) / 2.0);
  } else if (kind == "polynomial") {
    rate = lr / std::sqrt(s.number("poly-a") + s.number("poly-c") * t);
  } else if (kind == "square-root") {
    rate = lr - (lr - std::fmin(lr, 1e-10)) * std::sqrt(share);  // ends at 1e-10
  } else if (kind != "constant" && kind != "adaptive") {
    throw std::invalid_argument("settings: expected a known schedule, found " + kind);
  }
  const double warmup = s.number("warmup");
  return t + 1.0 < warmup ? rate * (t + 1.0) / warmup : rate;
}

}  // namespace cudp::verify
