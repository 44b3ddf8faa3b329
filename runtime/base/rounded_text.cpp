#include "runtime/base/rounded_text.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace cudp {
namespace {

std::string with_digits(double value, int digits) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*g", digits, value);
  return text.data();
}

/// Returns the power of ten of the last digit if `value` is written with `digits` significant
/// digits, e.g. 0.1 for 12.34 with 3 digits.
double last_digit(double value, int digits) {
  return std::pow(10.0, std::floor(std::log10(value)) - (digits - 1.0));
}

std::string up(double value, int digits) {
  std::string nearest = with_digits(value, digits);
  if (std::strtod(nearest.c_str(), nullptr) >= value) return nearest;
  return with_digits(value + last_digit(value, digits), digits);
}

}  // namespace

std::string rounded_up(double value) { return up(value, 6); }

std::string short_rounded_up(double value) { return up(value, 3); }

std::string rounded_down(double value) {
  std::string nearest = with_digits(value, 6);
  if (std::strtod(nearest.c_str(), nullptr) <= value) return nearest;
  return with_digits(value - last_digit(value, 6), 6);
}

}  // namespace cudp
