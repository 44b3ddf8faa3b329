#pragma once
#include <span>
#include <string>
#include <vector>

#include "privacy/transcript/records.hpp"

namespace cudp::verify {

/// A number that an engine has in float: the value in double, and how far float arithmetic may be
/// from it. Every operation adds what one rounding to nearest does, 2^-24 of the result at most, or
/// 2^-126 where a small one is flushed to 0; errors of operands go through it exactly. So the bound
/// holds with fused multiply-adds, which round less often, and without. What overflows a float has
/// no bound.
struct Approximate {
  double value = 0.0;
  double error = 0.0;

  /// Whether a float may be what this was computed as. Where nothing bounds it, any may.
  bool admits(float x) const;
};

Approximate operator+(const Approximate& a, const Approximate& b);
Approximate operator-(const Approximate& a, const Approximate& b);
Approximate operator*(const Approximate& a, const Approximate& b);
Approximate operator/(const Approximate& a, const Approximate& b);
Approximate square_root(const Approximate& a);

/// Makes an optimizer's step again: g is the release of the step divided by the batch,
///   sgd       theta -= lr (g + wd theta)
///   momentum  m = mu m + g,  theta -= lr m
///   nesterov  m = mu m + g,  theta -= lr (g + mu m)
///   adam      m = b1 m + (1 - b1) g,  v = b2 v + (1 - b2) g^2,
///             theta -= lr (m bias1) / (sqrt(v bias2) + epsilon)
///   adamw     the same of g without wd, after theta -= lr wd theta
/// and average = decay average + (1 - decay) theta. Of transformed gradients only the average.
/// Empty where `after` follows, else what does not, where, and by how much.
std::string follows(const transcript::State& before, std::span<const double> released,
                    const transcript::Update& after);

/// A noisy sum, and its noise as a multiple of the sensitivity.
struct Measured {
  double sigma = 0.0;
  std::vector<double> values;
};

/// Makes a step of DP-AGD again: g is the mean of `sums` weighed by 1 / sigma^2, and
///   theta -= lr (g + wd theta) / |g + wd theta|,
/// in double but for the direction and the result, which are rounded to float. As follows.
std::string follows_descent(const transcript::State& before, std::span<const Measured> sums,
                            const transcript::Update& after);

}  // namespace cudp::verify
