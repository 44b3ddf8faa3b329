#include "runtime/base/rounded_text.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace cudp {
namespace {

/// Returns `value` with this many significant digits, in the same form in every locale.
std::string with_digits(double value, int digits) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value,
                                 std::chars_format::general, digits)
                       .ptr;
  return {text.data(), end};
}

double number_in(const std::string& text) {
  double value = 0.0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// Returns the place value of the last digit if `value` is written with `digits` significant
/// digits, e.g. 0.1 for 12.34 with 3 digits (12.3).
double last_digit(double value, int digits) {
  return std::pow(10.0, std::floor(std::log10(value)) - (digits - 1.0));
}

}  // namespace

std::string rounded_up(double value, int digits) {
  std::string nearest = with_digits(value, digits);
  const double rounded = number_in(nearest);
  if (rounded >= value) return nearest;
  return with_digits(rounded + last_digit(value, digits), digits);
}

std::string short_rounded_up(double value) { return rounded_up(value, 3); }

std::string rounded_down(double value) {
  std::string nearest = with_digits(value, 6);
  const double rounded = number_in(nearest);
  if (rounded <= value) return nearest;
  return with_digits(rounded - last_digit(value, 6), 6);
}

}  // namespace cudp
