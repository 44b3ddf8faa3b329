#pragma once
// What the tests of single CPU kernels share: every kernel at every SIMD level, against plain loops
// in double that share no code with it.
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu_kernels.hpp"
#include "tests/support/engine_cases.hpp"

namespace cudp {
namespace {

constexpr float kLoud = 1e30f;  // where nobody may read or write
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class CpuKernel : public testing::TestWithParam<SimdLevel> {
 protected:
  void SetUp() override {
    if (!cases::has_simd_level(GetParam())) GTEST_SKIP() << "this processor lacks it";
  }
  const CpuKernels& kernels() const { return cpu_kernels(GetParam()); }

  /// The same numbers in every run, the next ones at every call.
  std::vector<float> normals(std::int64_t n) {
    std::normal_distribution<float> normal;
    std::vector<float> v(static_cast<std::size_t>(n));
    for (float& x : v) x = normal(random_);
    return v;
  }

 private:
  std::mt19937 random_{1};
};

/// NaN is not near anything.
void expect_near(double got, double want, double scale, const std::string& at) {
  EXPECT_TRUE(std::abs(got - want) <= 2e-6 * scale + 1e-30)
      << at << ": " << got << ", expected " << want;
}

/// An array with loud numbers before and behind it.
template <class T>
class Guarded {
 public:
  Guarded(std::int64_t n, T fill) : n_(n), all_(static_cast<std::size_t>(n) + 2 * kGuard, loud()) {
    std::fill_n(data(), n, fill);
  }
  explicit Guarded(const std::vector<T>& v) : Guarded(static_cast<std::int64_t>(v.size()), T{}) {
    std::copy(v.begin(), v.end(), data());
  }
  ~Guarded() {
    for (std::size_t i = 0; i < kGuard; ++i) {
      EXPECT_EQ(all_[i], loud()) << "before the array";
      EXPECT_EQ(all_[all_.size() - 1 - i], loud()) << "behind the array";
    }
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  T* data() { return all_.data() + kGuard; }
  T& operator[](std::int64_t i) { return all_[kGuard + static_cast<std::size_t>(i)]; }
  std::int64_t size() const { return n_; }
  std::vector<T> values() { return {data(), data() + n_}; }

 private:
  static constexpr std::size_t kGuard = 64;
  static T loud() { return static_cast<T>(123456789); }

  std::int64_t n_;
  std::vector<T> all_;
};

/// An image as the CPU keeps it: random pixels, zero padding channels, a loud border.
struct Image {
  Image(const ImageLayout& layout, std::vector<float> inside, float border = kLoud)
      : layout(layout), values(layout.size(), border) {
    std::size_t i = 0;
    for (int y = 0; y < layout.height; ++y)
      for (int x = 0; x < layout.width; ++x)
        for (int c = 0; c < layout.stride; ++c)
          at(y, x, c) = c < layout.channels ? inside[i++] : 0.0f;
  }
  float& at(int y, int x, int c) { return values[layout.at(y, x) + c]; }

  /// Padding channels are 0, and the border is as it was.
  void expect_clean(float border = kLoud) {
    for (int y = -layout.border; y < layout.height + layout.border; ++y)
      for (int x = -layout.border; x < layout.width + layout.border; ++x) {
        const bool inside = y >= 0 && y < layout.height && x >= 0 && x < layout.width;
        for (int c = inside ? layout.channels : 0; c < layout.stride; ++c) {
          EXPECT_EQ(at(y, x, c), inside ? 0.0f : border) << y << " " << x << " " << c;
        }
      }
  }

  ImageLayout layout;
  Guarded<float> values;
};

inline ImageLayout layout_of(int channels, int height, int width, int border) {
  return {.channels = channels,
          .height = height,
          .width = width,
          .stride = (channels + 15) / 16 * 16,
          .border = border};
}
inline std::int64_t numbers_in(const ImageLayout& l) {
  return std::int64_t{l.channels} * l.height * l.width;
}

}  // namespace
}  // namespace cudp
