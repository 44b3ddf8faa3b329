#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "privacy/ledger.hpp"
#include "privacy/mechanism/mechanism.hpp"

namespace cudp::verify {

/// One line of a ledger, with its position in the file.
struct Charge {
  bool numbered = false;
  std::uint64_t first = 0;  ///< index of the first release, if `numbered`
  privacy::Release release;
  std::uint64_t position = 0;  ///< number of releases in the file before this line
  std::uint64_t key = 0;       ///< number of times that the random key was lost before this line
};

/// All lines of a ledger.
struct Charges {
  std::vector<Charge> lines;
  /// For each time that the random key was lost: number of releases in the file before that.
  std::vector<std::uint64_t> lost;
  std::uint64_t total = 0;  ///< number of releases in the file
  privacy::Ledger ledger;

  /// Returns how many times the key was lost before the last of the first `charged` releases.
  std::uint64_t lost_keys_before(std::uint64_t charged) const;
  /// Returns the mechanism as which numbered release `number` was charged after the random key was
  /// lost `key` times; null if it was not. Only the first `charged` releases of the file count.
  const privacy::Mechanism* find(std::uint64_t number, std::uint64_t key,
                                 std::uint64_t charged) const;
};

/// Parses the text of a ledger. Text after its last line, such as an authentication code, is
/// ignored. Throws std::invalid_argument if the ledger is damaged.
Charges read_charges(std::string_view text);

}  // namespace cudp::verify
