#pragma once
#include <cstdint>

#include "kernels/common/host_device.hpp"

namespace cudp {

/// Numbers that lie `n` > 1 to a line and are counted through: at / n without a division.
struct Divisor {
  int n = 1;
  std::uint32_t inverse = 0;  ///< 2^32 / n, rounded up

  Divisor() = default;
  explicit Divisor(int by) : n(by), inverse(0xffffffffu / static_cast<std::uint32_t>(by) + 1) {}
};

/// at / d.n, for 0 <= at and at * d.n < 2^32.
CUDP_HD int quotient(int at, const Divisor& d) {
  return static_cast<int>(
      (static_cast<std::uint64_t>(static_cast<std::uint32_t>(at)) * d.inverse) >> 32);
}

}  // namespace cudp
