#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "privacy/verify/generator.hpp"

namespace cudp::verify {

/// The places of the `count` least ln E_i + (epsilon / sensitivity) score_i, in order, with E_i =
/// -ln U_i: the exponential mechanism, `count` times, each among those that were not
/// chosen before. U_i has words 2 i and 2 i + 1 for its first 64 bits, high word first; empty where
/// these leave the order open (of one choice in 2^40 or so). scores finite, [n], count <= n.
std::optional<std::vector<std::size_t>> gumbel_choices(const Words& words,
                                                       std::span<const double> scores,
                                                       double epsilon, double sensitivity,
                                                       std::size_t count);

/// The place of the largest of -score_i + (sensitivity / epsilon) L_i, L_i of Laplace's
/// distribution by 52 bits of words 2 i and 2 i + 1; empty where two are closer than roundings.
std::optional<std::size_t> laplace_choice(const Words& words, std::span<const double> scores,
                                          double epsilon, double sensitivity);

}  // namespace cudp::verify
