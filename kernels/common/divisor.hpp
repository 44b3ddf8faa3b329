#pragma once
#include <cstdint>

#include "kernels/common/host_device.hpp"

namespace cudp {

/// A number n > 1 by which kernels divide often, with its precomputed inverse: quotient()
/// multiplies instead of dividing, which is slow on a GPU. The quotient is exact for dividends
/// whose product with n is below 2^32; AnyDivisor is exact for all, but slower.
struct Divisor {
  int n = 1;
  std::uint32_t inverse = 0;  ///< 2^32 / n, rounded up

  Divisor() = default;
  explicit Divisor(int by) : n(by), inverse(0xffffffffu / static_cast<std::uint32_t>(by) + 1) {}
};

/// Returns the dividend `at` divided by d.n, rounded down. Requires at >= 0 and at d.n < 2^32.
CUDP_HD int quotient(int at, const Divisor& d) {
  return static_cast<int>(
      (static_cast<std::uint64_t>(static_cast<std::uint32_t>(at)) * d.inverse) >> 32);
}

/// A number n > 0 by which kernels divide often, with its precomputed inverse: quotient()
/// multiplies instead of dividing. Unlike Divisor, it is exact for every non-negative int, but
/// takes two instructions more.
struct AnyDivisor {
  int n = 1;
  int shift = 0;                                   ///< smallest with 2^shift >= n
  std::uint32_t inverse = std::uint32_t{1} << 31;  ///< 2^(31 + shift) / n, rounded up

  AnyDivisor() = default;
  explicit AnyDivisor(int by) : n(by) {
    while ((std::int64_t{1} << shift) < by) ++shift;
    const auto divisor = static_cast<std::uint64_t>(by);
    inverse =
        static_cast<std::uint32_t>(((std::uint64_t{1} << (31 + shift)) + divisor - 1) / divisor);
  }
};

/// Returns at / d.n, rounded down. Requires at >= 0.
///
/// Proof that the result is exact. The inverse is 2^(31 + shift) / n, rounded up. Rounding adds
/// less than 1, and 1 <= 2^shift / n. Multiplied by at < 2^31 this error is less than 2^(31 +
/// shift) / n, and after the division by 2^(31 + shift) less than 1 / n. An error of less than 1 /
/// n in at / n does not change the integer part.
CUDP_HD int quotient(int at, const AnyDivisor& d) {
  const std::uint64_t product =
      static_cast<std::uint64_t>(2 * static_cast<std::uint32_t>(at)) * d.inverse;
  return static_cast<int>(static_cast<std::uint32_t>(product >> 32) >> d.shift);
}

}  // namespace cudp
