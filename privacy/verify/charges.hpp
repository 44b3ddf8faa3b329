#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "privacy/ledger.hpp"
#include "privacy/mechanism/mechanism.hpp"

namespace cudp::verify {

/// One line of a ledger, and its position in the file.
struct Charge {
  bool numbered = false;
  std::uint64_t first = 0;  ///< number of the first release, if `numbered`
  privacy::Release release;
  std::uint64_t position = 0;  ///< number of releases in the file before this line
  std::uint64_t key = 0;       ///< number of keys lost before this line
};

struct Charges {
  std::vector<Charge> lines;
  /// Number of releases in the file before each loss of a key.
  std::vector<std::uint64_t> lost;
  std::uint64_t total = 0;
  privacy::Ledger ledger;

  /// Number of keys that were lost before the last of the first `charged` releases.
  std::uint64_t keys_until(std::uint64_t charged) const;
  /// Returns the mechanism that release `number` was charged as under `key`, among the first
  /// `charged` releases of the file; null if it was not charged.
  const privacy::Mechanism* find(std::uint64_t number, std::uint64_t key,
                                 std::uint64_t charged) const;
};

/// Parses a ledger. Text below its last line, such as a seal, is ignored. Throws
/// std::invalid_argument if the ledger is damaged.
Charges read_charges(std::string_view text);

}  // namespace cudp::verify
