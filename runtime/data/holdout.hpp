#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/random_key.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/data/range.hpp"

namespace cudp {

/// Random decisions, one for each unit of privacy (e.g. a person), whether its rows are held out
/// for testing. The probability is `share` in (0, 1), rounded to 2^-32. If the schema states no
/// unit of privacy, each example is a unit. A unit whose first row has the index f among the rows
/// that are used is held out if word f (32 bits) of the key's random stream is below share 2^32.
///
/// The key is independent of the training's key and noise; the privacy proof rests on this
/// (privacy/README.md). Anyone who has this key knows which rows were held out.
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
  /// train, held: collect the training rows and the held-out rows. Requires that both are empty and
  /// were constructed with the number of rows that they will get. draws: decides which rows are
  /// held out.
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

/// Returns the key that decides which rows are held out in a run with a seed, whose random numbers
/// must be reproducible. It differs from the key that the training derives from the same seed.
RandomKey split_key_of_seed(std::uint64_t seed);

}  // namespace cudp
