#pragma once
// What the tests of single CUDA kernels share. Whoever includes them first chooses what runs the
// kernels: TestGpu is EmulatedGpu (tests/kernels/cuda_kernels_test.cpp,
// tests/kernels/cuda_fused_test.cpp) or CudaGpu (tests/gpu/).
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/common/launch.hpp"
#include "kernels/features/scatter.hpp"
#include "kernels/fused/reduce.cuh"
#include "kernels/step/sample.cuh"
#include "runtime/device/cuda/buffer.hpp"

namespace cudp {
namespace {

constexpr float kLoud = 1e30f;  // where nobody may read or write
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// A device, and memory on it that lasts as long as the test.
class CudaKernel : public testing::Test {
 protected:
  template <class T>
  T* device(const std::vector<T>& v) {
    const auto keep = std::make_shared<cuda::Buffer<T>>(gpu(), v.size());
    keep->upload(v);
    T* const p = keep->get();
    kept_.push_back(keep);
    return p;
  }
  template <class T>
  std::vector<T> host(const T* p, std::size_t n) {
    std::vector<T> v(n);
    gpu().download(v.data(), p, n * sizeof(T));
    return v;
  }
  template <class Args>
  void run(void (*kernel)(Args), const Args& args) {
    validate(args);
    gpu().launch("kernel", kernel, launch_shape(args), args);
  }
  template <class Args>
  void allow_shared(void (*kernel)(Args), std::size_t bytes) {
    gpu().allow_shared(kernel, bytes);
  }
  std::size_t shared_bytes() { return gpu().limits().shared_bytes; }
  template <class Args>
  void run_fused(void (*kernel)(Args), const Args& args, std::size_t shared_bytes,
                 unsigned threads = kFusedThreads) {
    validate(args);
    allow_shared(kernel, shared_bytes);
    gpu().launch("kernel", kernel, fused_shape(args, shared_bytes, threads), args);
  }
  /// In a shape of the test's.
  void launch(void (*kernel)(SampleArgs, SampleSpace), const SampleArgs& args,
              const SampleSpace& space, const LaunchShape& shape) {
    gpu().launch("kernel", kernel, shape, args, space);
  }
  void launch(void (*kernel)(BatchesAhead, SampleSpace, std::uint32_t*), const BatchesAhead& ahead,
              const SampleSpace& space, std::uint32_t* drawn, const LaunchShape& shape) {
    gpu().launch("kernel", kernel, shape, ahead, space, drawn);
  }
  /// In another shape than the operation's own.
  template <class Args>
  void launch(void (*kernel)(Args), const Args& args, const LaunchShape& shape) {
    gpu().launch("kernel", kernel, shape, args);
  }
  void fourier(int rows, int columns, int images, ComplexFloat* z, bool inverse) {
    gpu().fourier(rows, columns, images, z, inverse);
  }
  const SumScale* device_scale(float max_norm, double grid) {
    return device(std::vector<SumScale>{sum_scale(max_norm, grid)});
  }
  Batch batch(int first, int capacity, unsigned count) {
    return {device(std::vector<std::uint32_t>{count}), first, capacity};
  }
  /// Weight of a class in tests of class weights, as a kernel gets it.
  static float class_weight(int label) {
    static constexpr float kWeights[] = {0.3f, 1.0f, 0.0f, 0.7f, 0.55f};
    return kWeights[label % 5];
  }
  const float* class_weights(int classes) {
    std::vector<float> weights(static_cast<std::size_t>(classes));
    for (int k = 0; k < classes; ++k) weights[static_cast<std::size_t>(k)] = class_weight(k);
    return device(weights);
  }
  /// What an example leaves with a class weight is, but for its sum, what it leaves without.
  template <class Left>
  static void expect_weighted_sum(const Left& weighted, const Left& plain, double weight) {
    double farthest = 0.0, largest = 0.0;
    for (std::size_t j = 0; j < plain.sum.size(); ++j) {
      const auto of_plain = static_cast<double>(plain.sum[j]);
      farthest =
          std::fmax(farthest, std::abs(static_cast<double>(weighted.sum[j]) - weight * of_plain));
      largest = std::fmax(largest, std::abs(of_plain));
    }
    EXPECT_LE(farthest, 1.01) << "weight " << weight;
    EXPECT_GT(largest, 100.0);
    EXPECT_EQ(weighted.squared_norms, plain.squared_norms);
    EXPECT_EQ(weighted.losses, plain.losses);
    EXPECT_EQ(weighted.factors, plain.factors);
  }

 private:
  TestGpu& gpu() {  // made late: without a device every test is skipped before it
    if (!gpu_) gpu_ = std::make_unique<TestGpu>();
    return *gpu_;
  }
  std::unique_ptr<TestGpu> gpu_;
  std::vector<std::shared_ptr<void>> kept_;
};

inline std::vector<float> normals(std::size_t n, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> v(n);
  for (float& x : v) x = normal(random);
  return v;
}

/// Norms of every kind: 0, tiny, above any cut, not a number, and others between 0 and 2.
inline std::vector<float> norms_to_add(std::size_t n) {
  std::mt19937 random(8);
  std::vector<float> v(n);
  for (float& x : v) x = static_cast<float>(random()) * 0x1p-31f;
  const float odd[] = {kNan, 0.0f, 1e-42f, 1e30f, std::numeric_limits<float>::infinity(), 0.7f};
  for (std::size_t i = 0; i < n; i += 7) v[i] = odd[i / 7 % std::size(odd)];
  return v;
}

/// capacity examples in these planes, random inside and `border` around.
inline std::vector<float> images(const Planes& p, int capacity, float border, unsigned seed = 1) {
  const std::vector<float> inside = normals(static_cast<std::size_t>(capacity) * p.pixels(), seed);
  std::vector<float> v(static_cast<std::size_t>(capacity) * p.size(), border);
  for (int e = 0; e < capacity; ++e)
    for (int i = 0; i < p.pixels(); ++i)
      v[e * p.size() + p.pixel_offset(i)] = inside[e * p.pixels() + i];
  return v;
}

/// The bits of numbers; of every NaN the same.
inline std::vector<std::uint32_t> bits_of(const std::vector<float>& v) {
  std::vector<std::uint32_t> bits;
  bits.reserve(v.size());
  for (const float f : v) bits.push_back(std::isnan(f) ? ~0u : std::bit_cast<std::uint32_t>(f));
  return bits;
}

inline void expect_near(double got, double want, double scale, int at) {
  EXPECT_TRUE(std::abs(got - want) <= 1e-5 * scale) << "at " << at << ": " << got << ", " << want;
}

}  // namespace
}  // namespace cudp
