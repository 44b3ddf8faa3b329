#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/random/random.hpp"

namespace cudp {

/// What is public of values that leave the private side: of a release of sums with Gaussian noise
/// all of it, of a choice its name and number.
struct Leaving {
  std::string_view name;
  Stream purpose;
  std::uint64_t step;
  double grid = 0.0;
  double noise_std = 0.0;
  double sensitivity = 0.0;
};

/// Sees every value that leaves the private side, at the moment it does, and may put another in its
/// place. For tests: with the values of a run on other data, whatever then differs was no function
/// of what was paid for (tests/runtime/gate/non_interference_test.cpp). The program has none.
class Witness {
 public:
  Witness() = default;
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;
  virtual ~Witness() = default;

  virtual void leaves(const Leaving& what, std::span<std::byte> values) = 0;
};

/// Of this process; null for none. To be set before a run begins.
Witness* witness();
void set_witness(Witness* witness);

template <class T>
void show_witness(const Leaving& what, std::span<T> values) {
  if (Witness* w = witness()) w->leaves(what, std::as_writable_bytes(values));
}

}  // namespace cudp
