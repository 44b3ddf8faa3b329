#pragma once
// Products of texts with weights by fp16 tensor cores (kernels/products/text_product.cuh), against
// loops in double.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/products/text_product.cuh"
#include "tests/kernels/cuda_kernel_fixture.hpp"

namespace cudp::inline CUDP_SIMT {

// The CUDA engine contains these kernels (runtime/device/cuda/layers.cu). They are not compiled
// again.
extern template __global__ void text_product_kernel<true>(device::TextProduct);
extern template __global__ void text_product_kernel<false>(device::TextProduct);

}  // namespace cudp::inline CUDP_SIMT

namespace cudp {
namespace {

struct TextProductCase {
  const char* name;
  bool forward;
  int terms, columns;
  bool in_fours;  ///< whether sizes and distances are multiples of four
};

/// A product of texts, whose weights are in two pieces of memory, as those of two directions are.
class CudaTextProduct : public CudaKernel, public testing::WithParamInterface<TextProductCase> {
 protected:
  static constexpr int kPlaces = 150, kTexts = 5, kCapacity = 6, kOutputs = 3;
  const bool forward_ = GetParam().forward;
  const int terms_ = GetParam().terms, columns_ = GetParam().columns;
  const int apart_ = GetParam().in_fours ? 4 : 3;  ///< numbers between rows, and between pieces
  const int a_row_ = terms_ + apart_, out_row_ = columns_ + apart_;
  /// Weights that come first in memory: forward those of columns, backward those of summands.
  const int half_ = (forward_ ? columns_ : terms_) / 8 * 4;
  const int weight_row_ = forward_ ? terms_ : columns_;
  std::vector<float> weights_ = rounded(
      normals(static_cast<std::size_t>(forward_ ? columns_ : terms_) * weight_row_ + apart_, 2));
  const std::vector<float> bias_ = normals(static_cast<std::size_t>(columns_), 3);
  std::vector<float> a_ = numbers();  ///< [kTexts, kPlaces, a_row_]
  const std::vector<float> y_ = normals(std::size_t{kTexts} * kPlaces * out_row_, 4);

  static int length_of(int text) {  // tiles of the second one are past its end
    constexpr int kLengths[kTexts] = {150, 3, 0, 71, 149};
    return kLengths[text];
  }
  static float size_of(int text) { return std::ldexp(1.0f, 9 * text - 30); }

  /// Backward, as fp16 numbers, so that products are exact.
  std::vector<float> rounded(std::vector<float> v) const {
    if (!forward_)
      for (float& x : v) x = std::nearbyint(256 * x) / 256;
    return v;
  }
  std::vector<float> numbers() const {
    std::vector<float> v = rounded(normals(std::size_t{kTexts} * kPlaces * a_row_, 1));
    for (int e = 0; e < kTexts; ++e)
      for (int i = 0; i < kPlaces * a_row_; ++i) {
        float& x = v[static_cast<std::size_t>(e) * kPlaces * a_row_ + i];
        if (!forward_) x *= size_of(e);
        if (i >= length_of(e) * a_row_) x = kNan;  // nobody reads it
      }
    return v;
  }
  int piece_of(int line) const { return line * weight_row_ + (line < half_ ? 0 : apart_); }
  double weight(int t, int j) const {
    return weights_[static_cast<std::size_t>(forward_ ? piece_of(j) + t : piece_of(t) + j)];
  }

  /// Returns the numbers [kTexts, kPlaces, out_row_] of these texts, in this order on the device.
  std::vector<float> run_product(const std::vector<int>& order, const Epilogue& epilogue) {
    const auto moved = [&](const std::vector<float>& v, int row, float rest) {
      const std::size_t n = std::size_t{kPlaces} * row;
      std::vector<float> to(kCapacity * n, rest);
      for (std::size_t i = 0; i < order.size(); ++i)
        std::copy_n(v.begin() + static_cast<std::ptrdiff_t>(order[i] * n), n,
                    to.begin() + static_cast<std::ptrdiff_t>(i * n));
      return to;
    };
    std::vector<std::int32_t> lengths(kCapacity, kPlaces), pieces;
    std::vector<float> logits(std::size_t{kCapacity} * kOutputs, kNan);
    for (std::size_t i = 0; i < order.size(); ++i) {
      lengths[i] = length_of(order[i]);
      for (std::size_t k = 0; k < kOutputs; ++k)
        logits[i * kOutputs + k] = size_of(order[i]) * (k == 1 ? -1.0f : 0.2f);
    }
    for (int i = 0; i < (forward_ ? columns_ : terms_); ++i) pieces.push_back(piece_of(i));
    const Axis neighbours{}, lines{.table = device(pieces)};
    const Axis out_row{.inner = out_row_};
    device::TextProduct p{
        .product = {.batch = batch(0, kCapacity, static_cast<unsigned>(order.size())),
                    .a = {device(moved(a_, a_row_, kNan)), {.inner = a_row_}, neighbours, true},
                    .b = {device(weights_), forward_ ? lines : neighbours,
                          forward_ ? neighbours : lines, forward_},
                    .bias = forward_ ? device(bias_) : nullptr,
                    .out = device(std::vector<float>(
                        static_cast<std::size_t>(kCapacity * kPlaces * out_row_), kLoud)),
                    .out_row = out_row,
                    .out_column = {},
                    .rows_per_example = kPlaces,
                    .terms = terms_,
                    .columns = columns_,
                    .epilogue = epilogue,
                    .y_row = out_row},
        .length = device(lengths),
        .logit_gradients = device(logits),
        .outputs = kOutputs,
        .a_in_fours = GetParam().in_fours,
        .b_in_fours = GetParam().in_fours};
    if (epilogue.kind == Epilogue::Kind::derivative)
      p.product.epilogue.y = device(moved(y_, out_row_, kNan));
    run(forward_ ? text_product_kernel<true> : text_product_kernel<false>, p);
    const auto n = std::size_t{kPlaces} * out_row_;
    const std::vector<float> all = host(p.product.out, kCapacity * n);
    std::vector<float> out(kTexts * n, kLoud);
    for (std::size_t i = 0; i < order.size(); ++i)
      std::copy_n(&all[i * n], n, &out[static_cast<std::size_t>(order[i]) * n]);
    for (std::size_t i = order.size() * n; i < all.size(); ++i) EXPECT_EQ(all[i], kLoud);
    return out;
  }
  std::vector<float> run_plain(const std::vector<int>& order) { return run_product(order, {}); }
};

/// To 1e-6 of the largest that a sum of the products can be: forward the operands have 22 bits.
TEST_P(CudaTextProduct, IsThatOfEveryPosition) {
  const std::vector<float> plain = run_plain({0, 1, 2, 3, 4});
  static float loud = 0.0f;  // whose address is replaced
  const Epilogue epilogue =
      forward_ ? Epilogue{.kind = Epilogue::Kind::value, .function = {.kind = Activation::relu}}
               : Epilogue{.kind = Epilogue::Kind::derivative,
                          .function = {.kind = Activation::tanh},
                          .y = &loud};
  const std::vector<float> with = run_product({0, 1, 2, 3, 4}, epilogue);
  for (int e = 0; e < kTexts; ++e)
    for (int t = 0; t < kPlaces; ++t)
      for (int j = 0; j < out_row_; ++j) {
        const auto at = static_cast<std::size_t>(e * kPlaces + t) * out_row_ + j;
        if (t >= length_of(e) || j >= columns_) {
          ASSERT_TRUE(plain[at] == kLoud && with[at] == kLoud) << "written outside, at " << at;
          continue;
        }
        double sum = forward_ ? bias_[j] : 0.0, largest = std::abs(sum);
        for (int k = 0; k < terms_; ++k) {
          const double x = a_[static_cast<std::size_t>(e * kPlaces + t) * a_row_ + k];
          sum += x * weight(k, j);
          largest += std::abs(x * weight(k, j));
        }
        ASSERT_TRUE(std::abs(plain[at] - sum) <= 1e-6 * largest)
            << "text " << e << ", " << t << ", column " << j << ": " << plain[at] << ", " << sum;
        const double y = y_[at], got = plain[at];
        const double want = forward_ ? std::fmax(got, 0.0) : got * (1 - y * y);
        ASSERT_TRUE(std::abs(with[at] - want) <= 1e-6 * std::abs(got) * (1 + y * y)) << at;
      }
}

/// In another order, alone, and beside a number that fp16 does not hold, of which its own position
/// alone is not finite.
TEST_P(CudaTextProduct, NoBitDependsOnOtherPositions) {
  const std::vector<float> first = run_plain({0, 1, 2, 3, 4});
  const auto n = std::size_t{kPlaces} * out_row_;
  const auto expect_same = [&](const std::vector<float>& got, int e, int but) {
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t at = static_cast<std::size_t>(e) * n + i;
      if (static_cast<int>(i) / out_row_ == but) {
        if (static_cast<int>(i) % out_row_ < columns_) {
          EXPECT_FALSE(std::isfinite(got[at])) << e << ", " << i;
        }
        continue;
      }
      ASSERT_EQ(got[at], first[at]) << e << ", " << i;
    }
  };
  for (const int e : {3, 1}) expect_same(run_plain({e}), e, -1);
  constexpr int kBad = 17;
  float& number = a_[std::size_t{3 * kPlaces + kBad} * a_row_ + 5];
  for (const float bad : {kNan, 70'000.0f}) {
    number = bad * (forward_ ? 1.0f : size_of(3));
    const std::vector<float> moved = run_plain({4, 3, 1, 0});
    for (const int e : {4, 3, 1, 0}) expect_same(moved, e, e == 3 ? kBad : -1);
  }
}

constexpr TextProductCase kTextProducts[] = {{"forward", true, 100, 72, true},
                                             {"forward_odd", true, 37, 65, false},
                                             {"back", false, 72, 100, true},
                                             {"back_odd", false, 33, 70, false}};
std::string name_of_product(const testing::TestParamInfo<TextProductCase>& info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(All, CudaTextProduct, testing::ValuesIn(kTextProducts), name_of_product);

}  // namespace
}  // namespace cudp
