#include "runtime/base/rounded_text.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace cudp {
namespace {

std::string six_digits(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return text.data();
}

/// Value of one unit in the sixth significant digit.
double sixth_digit(double value) { return std::pow(10.0, std::floor(std::log10(value)) - 5.0); }

}  // namespace

std::string rounded_up(double value) {
  std::string nearest = six_digits(value);
  if (std::strtod(nearest.c_str(), nullptr) >= value) return nearest;
  return six_digits(value + sixth_digit(value));
}

std::string rounded_down(double value) {
  std::string nearest = six_digits(value);
  if (std::strtod(nearest.c_str(), nullptr) <= value) return nearest;
  return six_digits(value - sixth_digit(value));
}

}  // namespace cudp
