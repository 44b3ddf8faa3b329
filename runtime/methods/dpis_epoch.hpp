#pragma once
#include <cstdint>
#include <limits>

namespace cudp {

/// The numbers of an epoch of DPIS: functions of released values alone. Part of a checkpoint.
struct DpisEpoch {
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t epoch = kNone;  ///< which
  double clip = 0.0;            ///< C_e
  double total = 0.0;           ///< K~
  double sigma = 0.0;           ///< sigma_G
  double left = 0.0;  ///< of the budget's divergence, when this epoch's releases are all made
  bool operator==(const DpisEpoch&) const = default;
};

}  // namespace cudp
