#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "privacy/ledger.hpp"
#include "privacy/mechanism/mechanism.hpp"

namespace cudp::verify {

/// One line of a ledger file: releases of one mechanism that were charged.
struct Charge {
  bool numbered = false;
  std::uint64_t first = 0;  ///< numbered releases: index of the first one that this line charges
  privacy::Release release;
  std::uint64_t position = 0;  ///< number of releases in the file before this line
  std::uint64_t key = 0;       ///< number of times that the random key was lost before this line
};

/// All charges in a ledger file.
struct Charges {
  std::vector<Charge> lines;
  /// Entry j: number of releases that the file lists before the loss number j of the random key.
  std::vector<std::uint64_t> lost;
  std::uint64_t total = 0;  ///< number of releases that the file lists
  privacy::Ledger ledger;

  /// Returns how many times the key was lost before the last of the first `charged` releases.
  std::uint64_t lost_keys_before(std::uint64_t charged) const;
  /// Returns the mechanism as which the numbered release `number` was charged between the losses
  /// number `key` and `key` + 1 of the random key; nullptr if it was not. Looks only at the first
  /// `charged` releases of the file.
  const privacy::Mechanism* find(std::uint64_t number, std::uint64_t key,
                                 std::uint64_t charged) const;
};

/// Parses the text of a ledger file. Ignores text after its last line, such as an authentication
/// code. Throws std::invalid_argument if the ledger is damaged.
Charges read_charges(std::string_view text);

}  // namespace cudp::verify
