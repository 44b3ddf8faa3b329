// The toolkit's libraries against their twins: loops, and the kernels that stand in for CUB.
#include <cmath>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/base/error.hpp"
#include "runtime/device/cuda/buffer.hpp"
#include "runtime/device/cuda/gpu.hpp"
#include "tests/support/plain_convolution.hpp"
#include "tests/support/plain_recurrent.hpp"

namespace cudp {
namespace {

std::vector<float> numbers(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> v(n);
  for (float& x : v) x = normal(random);
  return v;
}

class CudaToolkit : public testing::Test {
 protected:
  using Floats = cuda::Buffer<float>;
  Floats device(const std::vector<float>& v) {
    Floats f(gpu_, v.size());
    f.upload(v);
    return f;
  }
  /// To within the rounding of `terms` products in this precision.
  static void expect_near(const std::vector<float>& got, const std::vector<float>& want, int terms,
                          Precision precision) {
    const double bound =
        std::sqrt(static_cast<double>(terms)) * (precision == Precision::tf32 ? 4e-3 : 1e-5);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_TRUE(std::abs(got[i] - want[i]) <= bound) << i << ": " << got[i] << ", " << want[i];
  }

  cuda::CudaGpu gpu_;
};

TEST_F(CudaToolkit, CublasLtHasTheBiasAndTheMaximumOfItsTwin) {
  for (const Precision precision : {Precision::fp32, Precision::tf32}) {
    gpu_.prepare_blas(precision);
    for (const bool relu : {false, true}) {
      constexpr std::size_t kRows = 256;
      constexpr std::size_t kInputs = 100;
      constexpr std::size_t kOutputs = 36;
      const std::vector<float> x = numbers(kRows * kInputs, 1);
      const std::vector<float> weight = numbers(kOutputs * kInputs, 2);
      const std::vector<float> bias = numbers(kOutputs, 3);
      const Floats x_there = device(x);
      const Floats weight_there = device(weight);
      const Floats bias_there = device(bias);
      const Floats y = device(std::vector<float>(kRows * kOutputs, 1e30f));
      gpu_.dense({.x = x_there.get(),
                  .weight = weight_there.get(),
                  .bias = bias_there.get(),
                  .y = y.get(),
                  .rows = kRows,
                  .inputs = kInputs,
                  .outputs = kOutputs,
                  .relu = relu,
                  .precision = precision});
      std::vector<float> want;
      for (std::size_t e = 0; e < kRows; ++e)
        for (std::size_t j = 0; j < kOutputs; ++j) {
          double sum = bias[j];
          for (std::size_t i = 0; i < kInputs; ++i)
            sum += double{x[e * kInputs + i]} * weight[j * kInputs + i];
          want.push_back(static_cast<float>(relu ? std::fmax(sum, 0.0) : sum));
        }
      expect_near(y.download(), want, kInputs, precision);
    }
  }
}

TEST_F(CudaToolkit, CudnnConvolvesAsItsTwin) {
  try {
    gpu_.prepare_dnn();
  } catch (const Error& e) {
    GTEST_SKIP() << e.what();
  }
  const ConvolutionBatch forms[] = {{nullptr, nullptr, nullptr, 5, 3, 12, 12, 8, 3, 1, 1},
                                    {nullptr, nullptr, nullptr, 4, 1, 28, 28, 16, 8, 2, 3},
                                    {nullptr, nullptr, nullptr, 3, 16, 7, 9, 20, 4, 2, 0}};
  for (const ConvolutionBatch& form : forms)
    for (const Precision precision : {Precision::fp32, Precision::tf32}) {
      ConvolutionBatch a = form;
      a.precision = precision;
      const int terms = a.channels * a.kernel * a.kernel;
      const std::vector<float> x =
          numbers(static_cast<std::size_t>(a.examples * a.channels * a.height * a.width), 1);
      const std::vector<float> weight = numbers(static_cast<std::size_t>(a.columns * terms), 2);
      std::vector<float> want(
          static_cast<std::size_t>(a.examples * a.columns * a.out_height() * a.out_width()));
      ConvolutionBatch here = a;
      here.x = x.data();
      here.weight = weight.data();
      here.y = want.data();
      convolve_plainly(here, false);
      const Floats x_there = device(x);
      const Floats weight_there = device(weight);
      const Floats y = device(std::vector<float>(want.size(), 1e30f));
      a.x = x_there.get();
      a.weight = weight_there.get();
      a.y = y.get();
      gpu_.convolve(a);
      expect_near(y.download(), want, terms, precision);
    }
}

/// Texts of every length, an empty one among them; both kinds, one direction and both.
TEST_F(CudaToolkit, CudnnGoesOverTextsAsItsTwin) {
  try {
    gpu_.prepare_dnn();
  } catch (const Error& e) {
    GTEST_SKIP() << e.what();
  }
  struct Sizes {
    int inputs, hidden, places;
  };
  for (const Sizes sizes : {Sizes{3, 5, 7}, Sizes{32, 32, 20}, Sizes{100, 64, 9}})
    for (const bool is_lstm : {true, false})
      for (const int directions : {1, 2})
        for (const Precision precision : {Precision::fp32, Precision::tf32}) {
          SCOPED_TRACE((is_lstm ? "LSTM of " : "GRU of ") + std::to_string(sizes.hidden) + ", " +
                       std::to_string(directions) + " directions");
          const std::vector<std::int32_t> lengths = {sizes.places, 0, 1, 2, sizes.places - 1, 3};
          RecurrentBatch a{.x = nullptr,
                           .length = nullptr,
                           .forth = {},
                           .reverse = {},
                           .y = nullptr,
                           .examples = static_cast<int>(lengths.size()),
                           .places = sizes.places,
                           .inputs = sizes.inputs,
                           .hidden = sizes.hidden,
                           .directions = directions,
                           .is_lstm = is_lstm,
                           .precision = precision};
          const auto rows = static_cast<std::size_t>(a.gates() * a.hidden);
          const auto lines = lengths.size() * static_cast<std::size_t>(a.places);
          const std::vector<float> x = numbers(lines * static_cast<std::size_t>(a.inputs), 1);
          std::vector<float> want(lines * static_cast<std::size_t>(a.directions * a.hidden));
          std::vector<float> weights[2];
          std::vector<Floats> weights_there;
          const auto weights_at = [&](const float* at) {
            DirectionWeights w{.inputs = at};
            w.states = w.inputs + rows * static_cast<std::size_t>(a.inputs);
            w.bias = w.states + rows * static_cast<std::size_t>(a.hidden);
            w.state_bias = is_lstm ? nullptr : w.bias + rows;
            return w;
          };
          RecurrentBatch here = a;
          for (int d = 0; d < directions; ++d) {
            weights[d] = numbers(rows * static_cast<std::size_t>(a.inputs + a.hidden + 2),
                                 2 + static_cast<unsigned>(d));
            for (float& w : weights[d]) w /= std::sqrt(static_cast<float>(a.hidden));
            weights_there.push_back(device(weights[d]));
            (d == 0 ? here.forth : here.reverse) = weights_at(weights[d].data());
            (d == 0 ? a.forth : a.reverse) = weights_at(weights_there.back().get());
          }
          here.x = x.data();
          here.length = lengths.data();
          here.y = want.data();
          recur_plainly(here, false);
          const Floats x_there = device(x);
          cuda::Buffer<std::int32_t> lengths_there(gpu_, lengths.size());
          lengths_there.upload(lengths);
          const Floats y = device(std::vector<float>(want.size(), 1e30f));
          a.x = x_there.get();
          a.length = lengths_there.get();
          a.y = y.get();
          gpu_.recur(a);
          expect_near(y.download(), want, a.inputs + a.hidden, precision);
        }
}

}  // namespace
}  // namespace cudp
