#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/random_key.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/data/range.hpp"

namespace cudp {

/// Random decisions, one for each unit of privacy (e.g. a person), whether its rows are held out
/// for testing. The probability is `share` in (0, 1), rounded to 2^-32. Without a unit in the
/// schema each example is a unit. A unit whose first used row has index f is held out if word f of
/// the key's random stream is below share 2^32.
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

/// The used rows of a table, split into training rows and held-out rows.
struct HeldOut {
  Dataset train;  ///< has Dataset::numbers
  Dataset held;
};

/// Splits used rows, as they are read, into training rows and held-out rows.
class HoldOutSplitter {
 public:
  /// train, held: without examples, constructed with the number of rows that each will have.
  HoldOutSplitter(HoldOutDraws draws, KeptRange train, KeptRange held);

  /// Adds the next used rows of the table.
  void take(const Dataset& used);
  /// Returns both parts. Throws Error if the table, named `file`, had another number of rows.
  HeldOut finish(const std::string& file);

 private:
  HoldOutDraws draws_;
  KeptRange train_;
  KeptRange held_;
  std::uint32_t taken_ = 0;
};

/// Returns the key for HoldOutDraws of a run with this seed. It differs from the training's key.
RandomKey split_key_of_seed(std::uint64_t seed);

}  // namespace cudp
