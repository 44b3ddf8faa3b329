// The search of a calibration, privacy/calibration_search.hpp, with directions whose epsilons
// differ late.
#include "privacy/calibration_search.hpp"

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace cudp::privacy {
namespace {

constexpr Tolerance kSearchTolerance{
    .epsilon = 1e-5, .aim = 3e-6, .value = 1e-6, .move = 5e-7, .exact = 1e6};
/// A noise multiplier: epsilon falls as it rises.
constexpr Unknown kSearchedSigma{
    .what = "sigma", .guess = 1.0, .safe_end = 1e9, .greedy_end = 1e-3};

/// Excess of epsilon whose coarse bound is zero at log sigma = 0.3. By the usual accountant it
/// falls at 0.25, at once and by more than the tolerance. So the first value of the search, near
/// 0.3, fits by far in the worse direction, and the other direction is not examined there at first.
Excess excess_with_a_step(std::function<double(double)> other) {
  return {.coarse = [](double v) { return 0.3 - v; },
          .fine = [](double v) { return v >= 0.25 ? -0.5 : 0.5; },
          .other = std::move(other)};
}

std::string search_refusal(const Excess& excess, const Tolerance& tolerance = kSearchTolerance) {
  try {
    return "found " + std::to_string(search_fitting_value(kSearchedSigma, tolerance, excess,
                                                          "epsilon 1 at delta 0.1"));
  } catch (const std::domain_error& refused) {
    return refused.what();
  }
}

TEST(CalibrationSearch, ExaminesTheOtherDirectionAtTheResult) {
  std::vector<double> examined;
  const Excess excess{.coarse = [](double v) { return 0.31 - v; },
                      .fine = [](double v) { return 0.3 - v; },
                      .other =
                          [&](double v) {
                            examined.push_back(v);
                            return 0.2 - v;
                          }};
  const double sigma = search_fitting_value(kSearchedSigma, kSearchTolerance, excess, "");
  EXPECT_GE(std::log(sigma), 0.3 - 1e-12);
  EXPECT_LE(std::log(sigma), 0.3 + 1e-5);
  ASSERT_FALSE(examined.empty());
  EXPECT_NEAR(examined.back(), std::log(sigma), 1e-12);
}

TEST(CalibrationSearch, TheFirstValueIsExaminedLateWhereNoneBelowItFits) {
  std::vector<double> examined;
  const auto other = [&](double v) {
    examined.push_back(v);
    return v >= 0.3 ? -0.1 : 0.2;
  };
  const double sigma =
      search_fitting_value(kSearchedSigma, kSearchTolerance, excess_with_a_step(other), "");
  EXPECT_GE(std::log(sigma), 0.3 - 1e-12);
  EXPECT_LE(std::log(sigma), 0.3 + 2e-3);
  EXPECT_NEAR(examined.back(), std::log(sigma), 1e-12);
}

// The first value fits in the worse direction; at the end, the other direction does not fit there.
TEST(CalibrationSearch, RestartsWhereTheOtherDirectionFailsLate) {
  std::vector<double> examined;
  const auto other = [&](double v) {
    examined.push_back(v);
    return v >= 2.0 ? -0.1 : 0.2;
  };
  const double sigma =
      search_fitting_value(kSearchedSigma, kSearchTolerance, excess_with_a_step(other), "");
  EXPECT_GE(std::log(sigma), 2.0 - 1e-12);
  EXPECT_LE(std::log(sigma), 2.0 + 3e-6);
  // It was examined below the first value at first, and at the first value only after that.
  EXPECT_LT(examined.front(), 0.3);
}

TEST(CalibrationSearch, RefusesWhereNoValueFitsTheOtherDirection) {
  EXPECT_EQ(search_refusal(excess_with_a_step([](double) { return 0.2; })),
            "sigma: the search does not converge");
}

// So little too much that 60 steps do not come to the end of the range.
TEST(CalibrationSearch, RefusesWhereTheOtherDirectionMissesByLittle) {
  EXPECT_EQ(search_refusal(excess_with_a_step([](double) { return 1e-7; })),
            "sigma: the search does not converge");
}

// A value beyond the end of the range would fit.
TEST(CalibrationSearch, ReturnsNoValueBeyondItsRange) {
  EXPECT_EQ(search_refusal(excess_with_a_step([](double v) { return v >= 21.0 ? -0.1 : 1e-7; })),
            "sigma: the search does not converge");
}

// The first value is still the only one that fits when the 60 steps are over.
TEST(CalibrationSearch, ExaminesTheOtherDirectionAfterTheLastStep) {
  Tolerance never = kSearchTolerance;
  never.value = 0.0;
  EXPECT_EQ(search_refusal(excess_with_a_step([](double) { return 0.2; }), never),
            "sigma: the search does not converge");
}

TEST(CalibrationSearch, RefusesWhereNoValueFits) {
  const auto too_much = [](double) { return 0.5; };
  EXPECT_EQ(search_refusal({.coarse = too_much, .fine = too_much, .other = too_much}),
            "sigma: none from 1e+09 to 0.001 reaches epsilon 1 at delta 0.1");
}

}  // namespace
}  // namespace cudp::privacy
