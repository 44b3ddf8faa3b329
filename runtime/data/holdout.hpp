#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/random_key.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/data/range.hpp"

namespace cudp {

/// Coins that decide for each unit of privacy whether its rows are held out, with probability
/// `share` in (0, 1), rounded to 2^-32. A unit is an example if the table states none. A unit whose
/// first used row has number f is held out if word f of the coins' random stream is below the
/// share.
///
/// The coins have a key of their own, independent of the training's key and noise; the proof rests
/// on this (privacy/README.md). Anyone who has this key knows which rows were held out.
class HoldOutCoins {
 public:
  HoldOutCoins(const SharedKey& coins, double share);

  bool holds_out(std::uint64_t first_row);

 private:
  SharedKey key_;
  std::uint64_t threshold_;
  std::vector<bool> held_;  // decisions drawn so far, by number of the first used row
};

/// The used rows of a table, in two parts.
struct HeldOut {
  Dataset train;  ///< has Dataset::numbers
  Dataset held;
};

/// Distributes used rows, as they are read, to the two parts.
class HoldOutSplitter {
 public:
  /// train, held: empty ranges, made with the final number of rows of their part.
  HoldOutSplitter(HoldOutCoins coins, KeptRange train, KeptRange held);

  /// Adds the next used rows.
  void take(const Dataset& used);
  /// Returns the parts. Throws Error as KeptRange::finish does.
  HeldOut finish(const std::string& file);

 private:
  HoldOutCoins coins_;
  KeptRange train_;
  KeptRange held_;
  std::vector<std::uint32_t> numbers_;  // numbers of the kept training rows
  std::uint32_t taken_ = 0;
};

/// Returns the key of the coins of a run with a seed. It differs from the key of the training.
RandomKey coins_of_seed(std::uint64_t seed);

}  // namespace cudp
