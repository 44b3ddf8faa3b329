// The linear engine of the CUDA backend, bit for bit beside the CPU's. What both compute is the
// same but for multiply-adds that a compiler may fuse, and neither the emulator nor the CPU's
// lowest level has them. tests/runtime/device/cuda_linear_tests.hpp says what holds on a device.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/base/random_key.hpp"
#include "runtime/device/cuda/devices.hpp"
#include "runtime/device/cuda/linear.hpp"
#include "runtime/device/linear_engine.hpp"
#include "runtime/device/linear_sensitivity.hpp"
#include "runtime/methods/dp_agd.hpp"
#include "tests/support/influence.hpp"
#include "tests/support/linear_oracle.hpp"
#include "tests/support/same_bits.hpp"
#include "tests/support/simt/emulated_gpu.hpp"
#include "tests/support/test_books.hpp"

namespace cudp {
namespace {

using EmulatedLinear = cuda::DeviceLinear;

/// An engine that fuses nothing, where there is one.
class BesideTheCpu : public testing::Test {
 protected:
  void SetUp() override {
#if !defined(__x86_64__) || defined(__FMA__)
    GTEST_SKIP() << "this processor's lowest level fuses multiply-adds";
#endif
  }
  static std::unique_ptr<LinearEngine> cpu_engine(const Dataset& data, Loss loss) {
    const char* const before = std::getenv("CUDP_SIMD_LEVEL");
    const std::string asked = before != nullptr ? before : "";
    ::setenv("CUDP_SIMD_LEVEL", "baseline", 1);
    auto engine = make_cpu_linear_engine(data, loss, 1e6, 1);
    ::setenv("CUDP_SIMD_LEVEL", asked.c_str(), 1);
    return engine;
  }
};

TEST_F(BesideTheCpu, SumsAreTheSameBits) {
  const std::vector<float> steps = {0.0f, 0.1f, 0.7f, 2.0f};
  unsigned seed = 1;
  for (const Loss loss : {Loss::logistic, Loss::hinge})
    for (const int features : {1, 32, 124})
      for (const int examples : {1, 16, 17, 257, 520}) {
        Dataset data = linear::random_table(examples, features, ++seed, 3.0f);
        if (examples > 16) data.floats[std::size_t{5} * static_cast<std::size_t>(features)] = NAN;
        EmulatedLinear engine(EmulatedGpu(seed), data, loss, 1e6);
        const auto cpu = cpu_engine(data, loss);
        const std::vector<float> w = linear::random_weights(features + 1, seed);
        const std::vector<float> d = linear::random_weights(features + 1, seed + 100);
        for (const bool drawn : {false, true}) {
          if (drawn) {
            const RandomStream stream{Generator::chacha20, key_from_seed(1), Stream::sampling, 2};
            engine.draw_batch(stream, std::uint64_t{1} << 31);
            cpu->draw_batch(stream, std::uint64_t{1} << 31);
          }
          for (const double clip : {0.3, 3.0}) {
            EXPECT_EQ(engine.clipped_gradient_sum(w, clip), cpu->clipped_gradient_sum(w, clip));
            EXPECT_EQ(engine.clipped_losses(d, steps, clip), cpu->clipped_losses(d, steps, clip));
          }
        }
      }
}

TEST_F(BesideTheCpu, TrainingIsTheSameBits) {
  Dataset data = linear::random_table(310, 5, 31);
  for (std::size_t i = 0; i < data.size(); ++i) data.labels[i] = data.floats[5 * i] > 0.2f;
  DpAgdSettings s;
  s.rho_gradient = 0.05;
  s.rho_selection = 0.02;
  for (const Loss loss : {Loss::logistic, Loss::hinge})
    for (const std::uint64_t threshold : {std::uint64_t{0}, std::uint64_t{1} << 31}) {
      s.threshold = threshold;
      const auto train = [&](LinearEngine& engine) {
        Gate gate(Generator::chacha20, key_from_seed(9), all_paid());
        DpAgd method(s, engine, 310.0, gate);
        DpAgdState state = method.begin(std::vector<float>(6, 0.0f));
        for (int i = 0; i < 12; ++i) EXPECT_TRUE(method.iterate(state));
        return state;
      };
      EmulatedLinear engine(EmulatedGpu(3), data, loss, 1e6);
      const auto cpu = cpu_engine(data, loss);
      const DpAgdState got = train(engine);
      const DpAgdState want = train(*cpu);
      EXPECT_EQ(got.w, want.w);
      EXPECT_EQ(got.chosen, want.chosen);
      EXPECT_EQ(got.releases, want.releases);
      EXPECT_GT(engine.correct(got.w, data), 230u) << "it learns";
    }
}

/// On the CPU and on CUDA: whatever lay in memory, and whatever a row holds, the sums are those of
/// the rows alone, each within the stated sensitivity.
TEST(LinearEngines, ARowAddsTheSameWhateverIsBesideAndBeforeIt) {
  const std::vector<float> steps = {0.0f, 0.3f, 2.0f};
  double largest = 0.0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    std::mt19937 random(seed);
    const auto width = static_cast<int>(1 + random() % 20);
    const auto features = static_cast<std::size_t>(width);
    Dataset data = linear::random_table(37, width, seed, 3.0f);
    for (std::size_t i = 0; i < data.size(); i += 1 + random() % 3)
      cases::make_hostile(std::span(data.floats).subspan(i * features, features), random);
    const Loss loss = seed % 2 == 0 ? Loss::logistic : Loss::hinge;
    const std::vector<float> w = linear::random_weights(width + 1, seed);
    const std::vector<float> along = linear::random_weights(width + 1, seed + 100);
    const double clip = std::ldexp(0.7, static_cast<int>(random() % 21) - 10);
    const auto on_cpu = [&](const Dataset& d) { return make_cpu_linear_engine(d, loss, 1e6, 1); };
    const auto emulated = [&](const Dataset& d) {
      return std::make_unique<EmulatedLinear>(EmulatedGpu(seed), d, loss, 1e6);
    };
    const auto check = [&](const auto& make) {
      cases::expect_same_bits([&] {
        cases::Bits bits;
        const auto engine = make(data);
        for (int again = 0; again < 2; ++again) {
          bits.add(engine->clipped_gradient_sum(w, clip));
          bits.add(engine->clipped_losses(along, steps, clip));
          engine->draw_batch({Generator::chacha20, key_from_seed(seed), Stream::sampling, 2},
                             std::uint64_t{1} << 31);
        }
        return bits;
      });
      std::vector<double> gradients(features + 1, 0.0);
      std::vector<double> losses(steps.size(), 0.0);
      for (std::size_t i = 0; i < data.size(); ++i) {
        const auto engine = make(cases::rows_of(data, {&i, 1}));
        double square = 0.0;
        const std::vector<double> own = engine->clipped_gradient_sum(w, clip);
        for (std::size_t j = 0; j < own.size(); ++j) {
          square += own[j] * own[j];
          gradients[j] += own[j];
        }
        const double ratio = std::sqrt(square) / linear_gradient_sensitivity(clip, width + 1, 1e6);
        largest = std::max(largest, ratio);
        EXPECT_TRUE(ratio <= 1.0) << "seed " << seed << ", row " << i << ": " << ratio;
        const std::vector<double> own_losses = engine->clipped_losses(along, steps, clip);
        for (std::size_t k = 0; k < steps.size(); ++k) {
          EXPECT_TRUE(own_losses[k] >= 0.0 && own_losses[k] <= linear_loss_sensitivity(clip, 1e6))
              << "seed " << seed << ", row " << i << ": " << own_losses[k];
          losses[k] += own_losses[k];
        }
      }
      const auto engine = make(data);
      EXPECT_EQ(engine->clipped_gradient_sum(w, clip), gradients) << "seed " << seed;
      EXPECT_EQ(engine->clipped_losses(along, steps, clip), losses) << "seed " << seed;
    };
    check(on_cpu);
    check(emulated);
  }
  std::cout << "the largest contribution is " << largest << " of the stated sensitivity\n";
}

TEST(CudaLinearWithoutADevice, SaysWhatIsMissing) {
  if (!cuda_devices().empty()) GTEST_SKIP() << "there is a CUDA device";
  const Dataset data = linear::random_table(10, 2, 1);
  std::string said;
  try {
    make_cuda_linear_engine(data, Loss::logistic, 1e6);
  } catch (const Error& e) {
    said = e.what();
  }
  EXPECT_EQ(said.rfind(built_with_cuda() ? "CUDA: " : "this build has no CUDA backend", 0), 0u)
      << said;
}

}  // namespace
}  // namespace cudp
