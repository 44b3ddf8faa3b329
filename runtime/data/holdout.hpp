#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/random_key.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/data/range.hpp"

namespace cudp {

/// Random decision for each unit of privacy (e.g. a person) whether its rows are held out for
/// testing. A unit is held out with probability `share` in (0, 1), rounded to a multiple of 2^-32.
/// If the schema states no unit of privacy, each example is a unit.
///
/// Computation: if the unit's first row has the index f among the rows that are used, the unit is
/// held out if word f (32 bits) of the key's random stream is below share * 2^32. The key must be
/// independent of the key that draws the training's noise (proof in privacy/README.md), and it must
/// be kept secret: it shows which rows were held out.
class HoldOutDraws {
 public:
  HoldOutDraws(const SharedKey& key, double share);

  bool holds_out(std::uint64_t first_row);

 private:
  SharedKey key_;
  std::uint64_t threshold_;
  std::vector<bool> held_;  // decisions drawn so far, indexed by the unit's first used row
};

/// The rows of a table that a training uses, split into training rows and rows held out for
/// testing.
struct HeldOut {
  Dataset train;  ///< has Dataset::numbers
  Dataset held;
};

/// Splits the rows of a table that a training uses, block by block as they are read, into training
/// rows and rows held out for testing.
class HoldOutSplitter {
 public:
  /// Makes a splitter that has read no rows. draws: decides which rows are held out. train, held:
  /// collect the training rows and the held-out rows. Requires that both are empty and were
  /// constructed with the number of rows that they will get.
  HoldOutSplitter(HoldOutDraws draws, KeptRange train, KeptRange held);

  /// Splits the next block of the table's rows. used: rows that the training uses, in the order of
  /// the file.
  void take(const Dataset& used);
  /// Returns both parts. Throws Error if the table has changed while it was read, so that a part
  /// has another number of rows than expected. file: name of the table, for the message.
  HeldOut finish(const std::string& file);

 private:
  HoldOutDraws draws_;
  KeptRange train_;
  KeptRange held_;
  std::uint32_t taken_ = 0;
};

/// Derives from the run's seed the key that decides which rows are held out. For runs with a seed,
/// whose random numbers must be reproducible. The training derives another key from the same seed.
RandomKey split_key_of_seed(std::uint64_t seed);

}  // namespace cudp
