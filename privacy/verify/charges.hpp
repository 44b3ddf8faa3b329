#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "privacy/ledger.hpp"
#include "privacy/mechanism/mechanism.hpp"

namespace cudp::verify {

/// One line of a ledger, and where it stands.
struct Charge {
  bool numbered = false;
  std::uint64_t first = 0;  ///< number of the first release, where they have numbers
  privacy::Release release;
  std::uint64_t position = 0;  ///< releases in the file before it
  std::uint64_t key = 0;       ///< how many keys were lost before it
};

struct Charges {
  std::vector<Charge> lines;
  /// For each loss of a key: the number of releases in the file before it.
  std::vector<std::uint64_t> lost;
  std::uint64_t total = 0;
  privacy::Ledger ledger;

  /// Keys that were lost before the last of the first `charged` releases.
  std::uint64_t keys_until(std::uint64_t charged) const;
  /// The mechanism that release `number` was charged as under a key, within the first `charged`
  /// releases of the file; null where it was not.
  const privacy::Mechanism* find(std::uint64_t number, std::uint64_t key,
                                 std::uint64_t charged) const;
};

/// A ledger's text, whatever stands below its last line. Throws std::invalid_argument where it is
/// damaged.
Charges read_charges(std::string_view text);

}  // namespace cudp::verify
