#pragma once
// The scattering transform on a device, kernel by kernel and whole.
#include <cmath>
#include <complex>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/features/scatter.cuh"
#include "runtime/device/cuda/scatter.hpp"
#include "runtime/device/scatter.hpp"
#include "tests/kernels/cuda_kernel_fixture.hpp"
#include "tests/support/reference/scatter.hpp"
#include "tests/support/scatter_images.hpp"

namespace cudp {
namespace {

using ScatterNumbers = std::vector<ComplexFloat>;

ScatterNumbers complex_normals(std::size_t n, unsigned seed) {
  const std::vector<float> v = normals(2 * n, seed);
  ScatterNumbers z;
  for (std::size_t i = 0; i < n; ++i) z.push_back({v[2 * i], v[2 * i + 1]});
  return z;
}

TEST_F(CudaKernel, ScatterFilterAddsUpQuarters) {
  constexpr int kImages = 3, kRows = 6, kColumns = 10;
  for (const int level : {0, 1}) {
    const int rows = kRows >> level;
    const int columns = kColumns >> level;
    const ScatterNumbers z = complex_normals(std::size_t{kImages} * kRows * kColumns, 3);
    const std::vector<float> psi = normals(std::size_t{8} * kRows * kColumns, 4);
    ScatterFilter a{};
    a.spectra = device(z);
    a.images = kImages;
    a.psi = device(psi);
    a.level = level;
    a.rows = rows;
    a.columns = columns;
    const std::size_t n = static_cast<std::size_t>(kImages) * 8 * rows * columns;
    a.out = device(ScatterNumbers(n + 1, {kLoud, kLoud}));
    run(scatter_filter_kernel, a);
    const ScatterNumbers got = host(a.out, n + 1);
    EXPECT_EQ(got[n].re, kLoud);
    std::vector<std::complex<double>> want(n);
    for (int i = 0; i < kImages; ++i)
      for (int f = 0; f < 8; ++f)
        for (int y = 0; y < kRows; ++y)
          for (int x = 0; x < kColumns; ++x) {
            const ComplexFloat s = z[(i * kRows + y) * kColumns + x];
            want[((i * 8 + f) * rows + y % rows) * columns + x % columns] +=
                std::complex<double>(s.re, s.im) * double{psi[(f * kRows + y) * kColumns + x]};
          }
    for (std::size_t i = 0; i < n; ++i) {
      expect_near(got[i].re, want[i].real(), 10.0, static_cast<int>(i));
      expect_near(got[i].im, want[i].imag(), 10.0, static_cast<int>(i));
    }
  }
}

TEST_F(CudaKernel, ScatterModulusKeepsTheLength) {
  const ScatterNumbers z = complex_normals(1000, 5);
  ScatterModulus a{device(z), 999};
  run(scatter_modulus_kernel, a);
  const ScatterNumbers got = host(a.z, z.size());
  for (int i = 0; i < 999; ++i) {
    expect_near(got[i].re, std::hypot(double{z[i].re}, double{z[i].im}), 1.0, i);
    EXPECT_EQ(got[i].im, 0.0f);
  }
  EXPECT_EQ(got[999].re, z[999].re);
  EXPECT_EQ(got[999].im, z[999].im);
}

TEST_F(CudaKernel, ScatterFourierTransformsInPlace) {
  // What the device's library (or the emulated one) must mean: forward, then an inverse that does
  // not divide, is n times the identity, and a wave has one frequency.
  for (const bool inverse : {false, true}) {
    constexpr int kRows = 6, kColumns = 10;
    ScatterNumbers z;
    for (int image = 0; image < 2; ++image)
      for (int y = 0; y < kRows; ++y)
        for (int x = 0; x < kColumns; ++x) {
          const double turn =
              2.0 * 3.14159265358979 * (2.0 * y / kRows + (3.0 + image) * x / kColumns);
          const double sign = inverse ? -1.0 : 1.0;
          z.push_back({float(std::cos(turn)), float(sign * std::sin(turn))});
        }
    ComplexFloat* const p = device(z);
    fourier(kRows, kColumns, 2, p, inverse);
    const ScatterNumbers got = host(p, z.size());
    for (int image = 0; image < 2; ++image)
      for (int k = 0; k < kRows * kColumns; ++k) {
        const bool peak = k == 2 * kColumns + 3 + image;
        expect_near(got[image * 60 + k].re, peak ? 60.0 : 0.0, 10.0, k);
        expect_near(got[image * 60 + k].im, 0.0, 10.0, k);
      }
  }
}

TEST(CudaScatter, AgreesWithSumsOverPixels) {
  for (const Shape& s : {Shape{1, 4, 4}, Shape{2, 9, 6}}) {
    const Dataset bytes = scatter_images(s.channels, s.height, s.width);
    const ReferenceScatter reference(s.height, s.width);
    TestGpu gpu;
    cuda::DeviceScatter scatter(gpu, s.height, s.width, 2);  // several slabs
    for (const Dataset& d : {bytes, as_floats(bytes)}) {
      double share = 0.0;
      const std::vector<float> got = scatter(d, [&](double now) { share = now; });
      EXPECT_EQ(share, 1.0);
      std::vector<double> want;
      for (int image = 0; image < 3; ++image) {
        const std::vector<double> one = reference(bytes, image);
        want.insert(want.end(), one.begin(), one.end());
      }
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t i = 0; i < want.size(); ++i)
        EXPECT_TRUE(std::abs(got[i] - want[i]) <= 2e-6)
            << s.height << "x" << s.width << " at " << i << ": " << got[i] << ", " << want[i];
    }
  }
}

/// Whose low pass takes more than a block has without asking.
TEST(CudaScatter, LargeImagesAskForSharedMemory) {
  Dataset images = scatter_images(1, 216, 228);
  images.labels.resize(1);
  images.bytes.resize(std::size_t{216} * 228);
  TestGpu gpu;
  cuda::DeviceScatter scatter(gpu, 216, 228, 1);
  const std::vector<float> got = scatter(images, [](double) {});
  const std::vector<float> want = scatter_on_cpu(images, 1, [](double) {});
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 4e-6) << i;
}

}  // namespace
}  // namespace cudp
