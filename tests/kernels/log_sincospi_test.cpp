// The error bounds of log_sincospi.hpp, on which the proof in rounded_normal_math.hpp rests,
// against 50 digits.
#include "kernels/random/log_sincospi.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <gtest/gtest.h>

namespace cudp {
namespace {

using Digits = boost::multiprecision::cpp_bin_float_50;
using TwoDoubles = double __attribute__((vector_size(16)));

/// The functions of a lane, compiled with and without fused multiply-adds.
struct Functions {
  const char* name;
  double (*log)(double);
  SineCosine<double> (*sine_cosine)(double);
};

double log_plain(double x) { return log_of_fraction(TwoDoubles{x, x})[0]; }
SineCosine<double> sine_cosine_plain(double t) {
  const SineCosine<TwoDoubles> both = sine_cosine_of_turn(TwoDoubles{t, t});
  return {both.sine[1], both.cosine[1]};
}

#if defined(__x86_64__)
#if defined(__clang__)
#define CUDP_FUSED __attribute__((target("avx2,fma")))
#else
#define CUDP_FUSED __attribute__((target("avx2,fma"), optimize("O2")))  // GCC fuses from -O2 on
#endif
CUDP_FUSED double log_fused(double x) { return log_of_fraction(TwoDoubles{x, x})[0]; }
CUDP_FUSED SineCosine<double> sine_cosine_fused(double t) {
  const SineCosine<TwoDoubles> both = sine_cosine_of_turn(TwoDoubles{t, t});
  return {both.sine[1], both.cosine[1]};
}
#endif

std::vector<Functions> every_form() {
  std::vector<Functions> forms = {{"plain", log_plain, sine_cosine_plain}};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    forms.push_back({"fused", log_fused, sine_cosine_fused});
#endif
  return forms;
}

/// Arguments of the logarithm: every exponent, both ends of the reduced range, and near 1.
std::vector<double> fractions() {
  std::vector<double> x = {1.0, 0x1p-65};
  std::mt19937_64 generator(7);
  std::uniform_real_distribution<double> uniform(0.5, 1.0);
  for (int k = 0; k < 65; ++k)
    for (int i = 0; i < 300; ++i) x.push_back(std::ldexp(uniform(generator), -k));
  for (int k = 0; k < 64; ++k)
    for (const double at : {std::sqrt(0.5), 0.5, 1.0}) {
      double below = at;
      double above = at;
      for (int i = 0; i < 20; ++i) {
        below = std::nextafter(below, 0.0);
        x.push_back(std::ldexp(below, -k));
        if (at != 1.0) x.push_back(std::ldexp(above, -k));
        above = std::nextafter(above, 2.0);
      }
    }
  for (int k = 1; k < 53; ++k) x.push_back(1.0 - std::ldexp(uniform(generator), -k));
  // The worst of the proof: just below sqrt(1/2).
  for (int i = 0; i < 20000; ++i) x.push_back(std::sqrt(0.5) * (1.0 - 0.1 * uniform(generator)));
  return x;
}

TEST(LogOfFraction, IsWithinItsBound) {
  constexpr double kE = 0x1p-52;
  const std::vector<double> arguments = fractions();
  for (const Functions& f : every_form()) {
    double worst = 0.0;
    for (const double x : arguments) {
      if (x == 1.0) continue;
      const Digits exact = log(Digits(x));
      const double error = static_cast<double>(abs((f.log(x) - exact) / exact)) / kE;
      if (!(error <= 1.6)) FAIL() << f.name << " ln " << x << " errs by " << error << " e";
      worst = std::max(worst, error);
    }
    EXPECT_GT(worst, 0.5) << f.name;  // there are arguments that try the bound
    EXPECT_EQ(f.log(1.0), 0.0);
    EXPECT_FALSE(std::signbit(f.log(1.0)));
  }
}

TEST(SineCosineOfTurn, AreWithinTheirBound) {
  constexpr double kE = 0x1p-52;
  std::vector<double> arguments = {0.0, -0.0, 0.25, -0.25, 0.5, -0.5, 0.75, -0.75, 1.0, -1.0};
  const std::vector<double> marks = arguments;
  for (const double at : marks)
    for (const double to : {-1.0, 1.0})
      if (const double t = std::nextafter(at, to); std::fabs(t) <= 1.0) arguments.push_back(t);
  std::mt19937_64 generator(8);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  for (int i = 0; i < 30000; ++i) arguments.push_back(uniform(generator));
  for (int k = 1; k < 64; ++k) arguments.push_back(std::ldexp(uniform(generator), -k));
  const Digits& pi = boost::math::constants::pi<Digits>();
  for (const Functions& f : every_form())
    for (const double t : arguments) {
      const SineCosine<double> got = f.sine_cosine(t);
      const double sine = static_cast<double>(abs(got.sine - sin(pi * t))) / kE;
      const double cosine = static_cast<double>(abs(got.cosine - cos(pi * t))) / kE;
      if (!(sine <= 1.4 && cosine <= 1.4))
        FAIL() << f.name << " at " << t << ": errors " << sine << " e, " << cosine << " e";
    }
}

}  // namespace
}  // namespace cudp
