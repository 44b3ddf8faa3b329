#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "privacy/ledger.hpp"
#include "privacy/mechanism/mechanism.hpp"

namespace cudp::verify {

/// One entry of a ledger (list of charged releases), with its position in the file.
struct Charge {
  bool numbered = false;
  std::uint64_t first = 0;  ///< index of the first release among numbered ones, if `numbered`
  privacy::Release release;
  std::uint64_t position = 0;  ///< number of releases in the file before this line
  std::uint64_t key = 0;       ///< number of times that the random key was lost before this line
};

/// All entries of a ledger file.
struct Charges {
  std::vector<Charge> lines;
  /// One entry for each time that the random key was lost: number of releases that the file lists
  /// before that.
  std::vector<std::uint64_t> lost;
  std::uint64_t total = 0;  ///< number of releases that the file lists
  privacy::Ledger ledger;

  /// Returns how many times the key was lost before the last of the first `charged` releases.
  std::uint64_t lost_keys_before(std::uint64_t charged) const;
  /// Returns the mechanism as which the release with index `number` was charged under the key that
  /// was in use after `key` losses; null if it was not charged. Looks only at the first `charged`
  /// releases of the file.
  const privacy::Mechanism* find(std::uint64_t number, std::uint64_t key,
                                 std::uint64_t charged) const;
};

/// Parses the text of a ledger. Text after its last line, such as an authentication code, is
/// ignored. Throws std::invalid_argument if the ledger is damaged.
Charges read_charges(std::string_view text);

}  // namespace cudp::verify
