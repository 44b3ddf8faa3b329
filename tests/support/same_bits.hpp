#pragma once
// Test whether results of an engine depend on the previous contents of its scratch memory.
#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/device/scratch_fill.hpp"

namespace cudp::cases {

/// All results of an engine, as bits.
class Bits {
 public:
  template <class T>
  void add(const std::vector<T>& numbers) {
    const auto* const p = reinterpret_cast<const unsigned char*>(numbers.data());
    bytes_.insert(bytes_.end(), p, p + numbers.size() * sizeof(T));
  }
  void add(double number) { add(std::vector<double>{number}); }
  bool operator==(const Bits&) const = default;

 private:
  std::vector<unsigned char> bytes_;
};

/// Expects the same bits for every value that fills the scratch memory, and without one.
inline void expect_same_bits(const std::function<Bits()>& make) {
  const std::optional<float> before = scratch_fill();
  set_scratch_fill(std::nullopt);
  const Bits want = make();
  for (const float fill : {NAN, 1e38f, 0.0f, -1.0f}) {
    set_scratch_fill(fill);
    EXPECT_TRUE(make() == want) << "scratch memory filled with " << fill;
  }
  set_scratch_fill(before);
}

}  // namespace cudp::cases
