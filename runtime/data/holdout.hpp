#pragma once
#include <cstdint>

#include "runtime/base/random_key.hpp"
#include "runtime/data/dataset.hpp"

namespace cudp {

/// Used rows in two parts.
struct HoldOut {
  Dataset train;  ///< with Dataset::numbers
  Dataset held;
};

/// Tosses a coin for each unit of privacy, an example where there is none, and holds its rows out
/// with probability `share`, in (0, 1), rounded to 2^-32: where word number f of the coins' stream
/// is below it, f the number of the unit's first used row. The coins have a key of their own: of
/// the training, its key and its noise they are independent, which the proof rests on
/// (privacy/README.md), and whoever has the key knows who was held out.
HoldOut hold_out(const Dataset& used, const RandomKey& coins, double share);

/// The coins' key of a run with a seed, another one than that of its training.
RandomKey coins_of_seed(std::uint64_t seed);

}  // namespace cudp
