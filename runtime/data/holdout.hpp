#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/random_key.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/data/range.hpp"

namespace cudp {

/// Tosses a coin for each unit of privacy, an example where there is none, and holds its rows out
/// with probability `share`, in (0, 1), rounded to 2^-32: where word number f of the coins' stream
/// is below it, f the number of the unit's first used row. The coins have a key of their own: of
/// the training, its key and its noise they are independent, which the proof rests on
/// (privacy/README.md), and whoever has the key knows who was held out.
class HoldOutCoins {
 public:
  HoldOutCoins(const SharedKey& coins, double share);

  bool holds_out(std::uint64_t first_row);

 private:
  SharedKey key_;
  std::uint64_t threshold_;
  std::vector<bool> held_;  // of the numbers that were asked about, and some more
};

/// Used rows in two parts.
struct HeldOut {
  Dataset train;  ///< with Dataset::numbers
  Dataset held;
};

/// Puts used rows, as they are read, into their parts.
class HoldOutSplitter {
 public:
  /// Both are empty yet, and know how many rows will come.
  HoldOutSplitter(HoldOutCoins coins, KeptRange train, KeptRange held);

  /// The next used rows.
  void take(const Dataset& used);
  /// As KeptRange::finish has it.
  HeldOut finish(const std::string& file);

 private:
  HoldOutCoins coins_;
  KeptRange train_;
  KeptRange held_;
  std::vector<std::uint32_t> numbers_;  // of the training rows that are kept
  std::uint32_t taken_ = 0;
};

/// The coins' key of a run with a seed, another one than that of its training.
RandomKey coins_of_seed(std::uint64_t seed);

}  // namespace cudp
