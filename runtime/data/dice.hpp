#pragma once
#include <cstdint>

namespace cudp {

/// Pseudo-random generator for the built-in data sets: SplitMix64 (Steele, Lea, Flood 2014). It is
/// seeded again for every example, and has the same output on every machine. It is not
/// cryptographic and must not be used for noise or sampling.
class Dice {
 public:
  Dice(std::uint64_t seed, std::uint64_t example) : state_(seed) { state_ = word() + example; }

  std::uint64_t word() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  double uniform(double low, double high) {
    return low + (high - low) * (static_cast<double>(word() >> 11) * 0x1p-53);
  }
  /// Returns a random whole number from 0 to n - 1; for small n the distribution is nearly uniform.
  std::uint64_t below(std::uint64_t n) { return (word() >> 32) * n >> 32; }

 private:
  std::uint64_t state_;
};

}  // namespace cudp
