#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "privacy/verify/generator.hpp"

namespace cudp::verify {

/// Selects by Gumbel noise: returns the indices of the `count` smallest ln E_i + (epsilon /
/// sensitivity) score_i, in ascending order, with E_i = -ln U_i and U_i uniform in (0, 1). That is
/// the exponential mechanism `count` times without replacement. The first 64 bits of U_i are words
/// 2 i and 2 i + 1 of `words`, high word first. Returns empty if these bits do not determine the
/// order (about one choice in 2^40). Requires finite scores and count <= scores.size().
std::optional<std::vector<std::size_t>> gumbel_choices(const RandomWords& words,
                                                       std::span<const double> scores,
                                                       double epsilon, double sensitivity,
                                                       std::size_t count);

/// Selects by Laplace noise: returns the index of the largest -score_i + (sensitivity / epsilon)
/// L_i. L_i is a standard Laplace random number made from 52 bits of words 2 i and 2 i + 1 of
/// `words`. Returns empty if the two largest differ by less than the rounding errors. scores:
/// score_i for each index i.
std::optional<std::size_t> laplace_choice(const RandomWords& words, std::span<const double> scores,
                                          double epsilon, double sensitivity);

}  // namespace cudp::verify
