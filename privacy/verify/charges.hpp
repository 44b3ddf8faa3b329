#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "privacy/ledger.hpp"
#include "privacy/mechanism/mechanism.hpp"

namespace cudp::verify {

/// One line of a ledger file, which charges `release`: a number of releases of one mechanism.
struct Charge {
  bool numbered = false;
  std::uint64_t first = 0;  ///< numbered releases: index of the first one that this line charges
  privacy::Release release;
  std::uint64_t position = 0;  ///< number of releases in the file before this line
  std::uint64_t key = 0;       ///< number of times that the random key was lost before this line
};

/// Content of a ledger file: all charges, and the points at which the run lost its random key (the
/// secret key that draws the noise) and continued with a new one. Releases that are repeated with
/// the new key are charged again.
struct Charges {
  std::vector<Charge> lines;
  /// One entry per loss of the random key: the number of releases that the file lists before it.
  std::vector<std::uint64_t> lost;
  std::uint64_t total = 0;  ///< number of releases that the file lists
  privacy::Ledger ledger;

  /// Returns how many times the random key had been lost when release number `charged` of the file,
  /// counted from 1, was charged.
  std::uint64_t lost_keys_before(std::uint64_t charged) const;
  /// Returns the mechanism with which the ledger charged release number `number`, or nullptr if it
  /// has no such charge. key: number of times that the random key had been lost when the release
  /// was charged. charged: number of releases in the file when the release was made; later ones are
  /// ignored.
  const privacy::Mechanism* find(std::uint64_t number, std::uint64_t key,
                                 std::uint64_t charged) const;
};

/// Parses the text of a ledger file. Ignores text after its last line, such as an authentication
/// code. Throws std::invalid_argument if the ledger is damaged.
Charges read_charges(std::string_view text);

}  // namespace cudp::verify
