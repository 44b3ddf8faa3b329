#pragma once
// Steps of LSTMs and GRUs by tensor cores (kernels/layers/recurrent_half.cuh) against loops in
// double, text by text, and against themselves: no bit depends on other texts or on their number in
// a block.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/layers/recurrent_half.cuh"
#include "tests/kernels/cuda_kernel_fixture.hpp"

namespace cudp::inline CUDP_SIMT {

// The CUDA engine contains these kernels (runtime/device/cuda/layers.cu). They are not compiled
// again.
#define CUDP_COMPILED_STEPS(...)                                                             \
  extern template __global__ void half_recurrent_kernel<__VA_ARGS__>(device::RecurrentPass); \
  extern template __global__ void half_recurrent_backward_kernel<__VA_ARGS__>(device::RecurrentPass)
CUDP_COMPILED_STEPS(LstmCell, true);
CUDP_COMPILED_STEPS(LstmCell, false);
CUDP_COMPILED_STEPS(GruCell, true);
CUDP_COMPILED_STEPS(GruCell, false);
#undef CUDP_COMPILED_STEPS

}  // namespace cudp::inline CUDP_SIMT

namespace cudp {
namespace {

struct Steps {
  const char* name;
  bool is_lstm, is_resident;
  int hidden, examples;
  device::StatesOut output;
  void (*forward)(device::RecurrentPass);
  void (*backward)(device::RecurrentPass);
};
template <class Cell, bool resident>
Steps steps_of(const char* name, int hidden, int examples, device::StatesOut output) {
  return {name,
          Cell::kIsLstm,
          resident,
          hidden,
          examples,
          output,
          half_recurrent_kernel<Cell, resident>,
          half_recurrent_backward_kernel<Cell, resident>};
}

/// A bidirectional layer and its texts. Text number i of a launch is text order[i].
class CudaSteps : public CudaKernel, public testing::WithParamInterface<Steps> {
 protected:
  static constexpr int kPlaces = 6, kTexts = 19, kCapacity = 21, kOutputs = 2;
  const bool is_lstm_ = GetParam().is_lstm;
  const device::StatesOut output_ = GetParam().output;
  const int hidden_ = GetParam().hidden;
  const int rows_ = (is_lstm_ ? 4 : 3) * hidden_;
  /// Numbers of a text: gates, and states or outputs of all positions.
  const int gates_ = kPlaces * 2 * 4 * hidden_, states_ = kPlaces * 2 * hidden_;
  const int out_ = output_ == device::StatesOut::sequence ? states_ : 2 * hidden_;
  const std::vector<float> weights_ = fp16_weights();
  const std::vector<float> bias_ = normals(std::size_t{2} * rows_, 5);
  const std::vector<float> state_bias_ = normals(std::size_t{2} * rows_, 6);

  struct Numbers {
    std::vector<float> inputs, dy;  ///< [kTexts, ...], by text
  };
  struct Left {
    std::vector<float> gates, c, h, out, deltas;  ///< [kTexts, ...], by text
  };

  static int length_of(int text) { return text % (kPlaces + 1); }
  /// Largest derivative of a text's loss by its logits.
  static float size_of(int text) { return std::ldexp(1.0f, 3 * (text % 7) - 12); }

  /// Weights of both directions that fp16 holds, [2, rows, hidden].
  std::vector<float> fp16_weights() const {
    std::vector<float> v = normals(std::size_t{2} * rows_ * hidden_, 4);
    const float scale = 0.7f / std::sqrt(static_cast<float>(hidden_));
    for (float& x : v) x = std::nearbyint(x * scale * 0x1p10f) * 0x1p-10f;
    return v;
  }
  Numbers numbers() const {
    Numbers n{normals(std::size_t{kTexts} * gates_, 1), normals(std::size_t{kTexts} * out_, 2)};
    for (int e = 0; e < kTexts; ++e) {
      for (int i = length_of(e) * gates_ / kPlaces; i < gates_; ++i)
        n.inputs[static_cast<std::size_t>(e) * gates_ + i] = kNan;  // nobody reads it
      for (int i = 0; i < out_; ++i) n.dy[static_cast<std::size_t>(e) * out_ + i] *= size_of(e);
    }
    return n;
  }
  template <class T>
  static std::vector<T> in_order(const std::vector<T>& v, const std::vector<int>& order, T rest) {
    const std::size_t n = v.size() / kTexts;
    std::vector<T> moved(kCapacity * n, rest);
    for (std::size_t i = 0; i < order.size(); ++i)
      std::copy_n(v.begin() + static_cast<std::ptrdiff_t>(order[i] * n), n,
                  moved.begin() + static_cast<std::ptrdiff_t>(i * n));
    return moved;
  }
  std::vector<float> by_text(const float* p, int n, const std::vector<int>& order) {
    const std::vector<float> all = host(p, std::size_t{kCapacity} * n);
    std::vector<float> v(static_cast<std::size_t>(kTexts * n), kLoud);
    for (std::size_t i = 0; i < order.size(); ++i)
      std::copy_n(&all[i * n], n, &v[static_cast<std::size_t>(order[i]) * n]);
    for (std::size_t i = order.size() * n; i < all.size(); ++i)
      EXPECT_TRUE(all[i] == kLoud) << "of no text";
    return v;
  }

  Left run_steps(const Numbers& n, const std::vector<int>& order, int examples) {
    std::vector<std::int32_t> lengths(kTexts);
    std::vector<float> logits;
    for (int e = 0; e < kTexts; ++e) {
      lengths[e] = length_of(e);
      logits.push_back(e % 2 == 0 ? -size_of(e) : 0.1f * size_of(e));
      logits.push_back(e % 2 == 0 ? 0.1f * size_of(e) : size_of(e));
    }
    const auto loud = [](int size) {
      return std::vector<float>(static_cast<std::size_t>(kCapacity * size), kLoud);
    };
    device::RecurrentPass a{.batch = batch(0, kCapacity, static_cast<unsigned>(order.size())),
                            .length = device(in_order<std::int32_t>(lengths, order, kPlaces)),
                            .places = kPlaces,
                            .hidden = hidden_,
                            .directions = 2,
                            .output = output_,
                            .forth = {},
                            .reverse = {},
                            .plan = {.examples = examples,
                                     .units = (hidden_ + 7) / 8 * 8,
                                     .is_resident = GetParam().is_resident,
                                     .precision = Precision::tf32},
                            .gates = device(in_order(n.inputs, order, kLoud)),
                            .c = is_lstm_ ? device(loud(states_)) : nullptr,
                            .h = device(loud(states_)),
                            .out = device(loud(out_)),
                            .planes = {.channels = out_},
                            .logit_gradients = device(in_order(logits, order, kNan)),
                            .outputs = kOutputs};
    if (!a.plan.is_resident) a.plan.units = 64;
    const float* const w = device(weights_);
    const float* const b = device(bias_);
    const float* const s = is_lstm_ ? nullptr : device(state_bias_);
    a.forth = {w, b, s};
    a.reverse = {w + static_cast<std::ptrdiff_t>(rows_) * hidden_, b + rows_,
                 is_lstm_ ? nullptr : s + rows_};
    const auto run_pass = [&](void (*kernel)(device::RecurrentPass), bool back) {
      EXPECT_TRUE(device::fits(a.plan, is_lstm_ ? 4 : 3, hidden_, back, shared_bytes()));
      before_pass(a, back);
      run(kernel, a);
    };
    run_pass(GetParam().forward, false);
    Left left{.gates = by_text(a.gates, gates_, order),
              .c = is_lstm_ ? by_text(a.c, states_, order) : std::vector<float>{},
              .h = by_text(a.h, states_, order),
              .out = by_text(a.out, out_, order),
              .deltas = {}};
    a.out = device(in_order(n.dy, order, kLoud));
    run_pass(GetParam().backward, true);
    left.deltas = by_text(a.gates, gates_, order);
    return left;
  }
  /// Called before each launch.
  virtual void before_pass(const device::RecurrentPass&, bool) {}
  /// Requires that text e has left the same bits; any NaN equals any other.
  static void expect_same(const Left& left, const Left& first, int e) {
    const auto same = [&](const std::vector<float>& a, const std::vector<float>& b) {
      const std::size_t size = a.size() / kTexts;
      for (std::size_t i = e * size; i < (e + 1) * size; ++i)
        ASSERT_TRUE(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) << e << ", " << i;
    };
    same(left.gates, first.gates);
    same(left.c, first.c);
    same(left.h, first.h);
    same(left.out, first.out);
    same(left.deltas, first.deltas);
  }
  static std::vector<int> all_texts() {
    std::vector<int> order(kTexts);
    for (int e = 0; e < kTexts; ++e) order[e] = e;
    return order;
  }

  /// Index of a state of a text's step s, in direction d.
  std::size_t state(int e, int d, int s, int j) const {
    const int place = d == 0 ? s : length_of(e) - 1 - s;
    return static_cast<std::size_t>(e) * states_ +
           static_cast<std::size_t>(place * 2 + d) * hidden_ + j;
  }
  std::size_t gate(int e, int d, int s, int k, int j) const {
    return 4 * (state(e, d, s, j) - static_cast<std::size_t>(j)) +
           static_cast<std::size_t>(k * hidden_ + j);
  }
  double weight(int d, int k, int unit, int from) const {
    return weights_[static_cast<std::size_t>((d * rows_) + k * hidden_ + unit) * hidden_ + from];
  }
  double bias(const std::vector<float>& of, int d, int k, int j) const {
    return of[static_cast<std::size_t>(d) * rows_ + static_cast<std::size_t>(k) * hidden_ + j];
  }
  /// The fp16 number nearest to x.
  static double nearest_half(double x) {
    const int digit = x == 0.0 ? 0 : std::max(std::ilogb(x), -14) - 10;
    return std::ldexp(std::nearbyint(std::ldexp(x, -digit)), digit);
  }
  static double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
  void expect_states(const Numbers& n, const Left& left, int e, int d) const;
  void expect_deltas(const Numbers& n, const Left& left, int e, int d) const;
};

/// Each step from the states that the kernel has left of the step before, as fp16 numbers.
void CudaSteps::expect_states(const Numbers& n, const Left& left, int e, int d) const {
  const int gates = is_lstm_ ? 4 : 3;
  std::vector<double> total(static_cast<std::size_t>(hidden_));
  for (int s = 0; s < length_of(e); ++s)
    for (int j = 0; j < hidden_; ++j) {
      double sum[4] = {};
      for (int k = 0; k < gates; ++k)
        for (int i = 0; s > 0 && i < hidden_; ++i)
          sum[k] += weight(d, k, j, i) * nearest_half(left.h[state(e, d, s - 1, i)]);
      double x[4] = {};
      for (int k = 0; k < gates; ++k) x[k] = n.inputs[gate(e, d, s, k, j)] + bias(bias_, d, k, j);
      double want[4], h = 0;
      if (is_lstm_) {
        const double before = s > 0 ? left.c[state(e, d, s - 1, j)] : 0.0;
        for (int k = 0; k < 4; ++k)
          want[k] = k == 2 ? std::tanh(x[k] + sum[k]) : sigmoid(x[k] + sum[k]);
        const double c = want[1] * before + want[0] * want[2];
        EXPECT_NEAR(left.c[state(e, d, s, j)], c, 1e-5);
        h = want[3] * std::tanh(c);
      } else {
        const double before = s > 0 ? left.h[state(e, d, s - 1, j)] : 0.0;
        for (int k = 0; k < 2; ++k) want[k] = sigmoid(x[k] + sum[k] + bias(state_bias_, d, k, j));
        want[3] = sum[2] + bias(state_bias_, d, 2, j);
        want[2] = std::tanh(x[2] + want[0] * want[3]);
        h = (1 - want[1]) * want[2] + want[1] * before;
      }
      for (int k = 0; k < 4; ++k)
        ASSERT_NEAR(left.gates[gate(e, d, s, k, j)], want[k], 1e-5)
            << "text " << e << ", step " << s << ", unit " << j << ", gate " << k;
      ASSERT_NEAR(left.h[state(e, d, s, j)], h, 1e-5);
      total[j] += left.h[state(e, d, s, j)];
      if (output_ == device::StatesOut::sequence) {
        EXPECT_EQ(left.out[state(e, d, s, j)], left.h[state(e, d, s, j)]);
      }
    }
  if (output_ == device::StatesOut::sequence) return;
  const int length = length_of(e);
  for (int j = 0; j < hidden_; ++j) {
    const double want = length == 0                          ? 0.0
                        : output_ == device::StatesOut::mean ? total[j] / length
                                                             : left.h[state(e, d, length - 1, j)];
    EXPECT_NEAR(left.out[static_cast<std::size_t>(e * out_ + d * hidden_ + j)], want, 1e-6);
  }
}

/// From the deltas that the kernel has left of the step behind. They were rounded to fp16 after a
/// multiplication that makes the derivative by the logits at least 32: to 11 bits, but to no less
/// than 2^-25 / 32 of it.
void CudaSteps::expect_deltas(const Numbers& n, const Left& left, int e, int d) const {
  const int gates = is_lstm_ ? 4 : 3, length = length_of(e);
  const double size = size_of(e), least = size * 0x1p-30;
  std::vector<double> carry(static_cast<std::size_t>(hidden_));
  for (int s = length - 1; s >= 0; --s)
    for (int j = 0; j < hidden_; ++j) {
      double dh = 0, error = 0;
      for (int k = 0; s + 1 < length && k < gates; ++k)
        for (int i = 0; i < hidden_; ++i) {
          const int kept = !is_lstm_ && k == 2 ? 3 : k;
          const double term = weight(d, k, i, j) * left.deltas[gate(e, d, s + 1, kept, i)];
          dh += term;
          error += std::abs(term) * 0x1p-11 + std::abs(weight(d, k, i, j)) * least;
        }
      const std::size_t at = output_ == device::StatesOut::sequence
                                 ? state(e, d, s, j)
                                 : static_cast<std::size_t>(e * out_ + d * hidden_ + j);
      if (output_ != device::StatesOut::last || s == length - 1)
        dh += n.dy[at] / static_cast<float>(output_ == device::StatesOut::mean ? length : 1);
      double v[4], want[4];
      for (int k = 0; k < 4; ++k) v[k] = left.gates[gate(e, d, s, k, j)];
      if (is_lstm_) {
        const double c = left.c[state(e, d, s, j)], of_c = std::tanh(c);
        const double dc = carry[j] + dh * v[3] * (1 - of_c * of_c);
        want[0] = dc * v[2] * v[0] * (1 - v[0]);
        want[1] = dc * (s > 0 ? left.c[state(e, d, s - 1, j)] : 0.0) * v[1] * (1 - v[1]);
        want[2] = dc * v[0] * (1 - v[2] * v[2]);
        want[3] = dh * of_c * v[3] * (1 - v[3]);
        carry[j] = dc * v[1];
      } else {
        dh += carry[j];
        want[2] = dh * (1 - v[1]) * (1 - v[2] * v[2]);
        want[1] = dh * ((s > 0 ? left.h[state(e, d, s - 1, j)] : 0.0) - v[2]) * v[1] * (1 - v[1]);
        want[0] = want[2] * v[3] * v[0] * (1 - v[0]);
        want[3] = want[2] * v[0];
        carry[j] = dh * v[1];
      }
      // The error of dc or dh that a step passes on is not known to it: at most those of all steps.
      for (int k = 0; k < 4; ++k)
        ASSERT_NEAR(left.deltas[gate(e, d, s, k, j)], want[k], kPlaces * error + 1e-5 * size)
            << "text " << e << ", step " << s << ", unit " << j << ", gate " << k;
    }
}

TEST_P(CudaSteps, AreThoseOfTheTextAlone) {
  const Numbers n = numbers();
  const Left left = run_steps(n, all_texts(), GetParam().examples);
  for (int e = 0; e < kTexts; ++e) {
    for (int d = 0; d < 2; ++d) {
      expect_states(n, left, e, d);
      expect_deltas(n, left, e, d);
    }
    for (int i = length_of(e) * 2 * hidden_; i < states_; ++i)
      ASSERT_EQ(left.h[static_cast<std::size_t>(e * states_ + i)], kLoud) << "behind the end";
  }
}

/// In another order, beside a text whose numbers are not finite, or alone: the same bits.
TEST_P(CudaSteps, NoBitDependsOnOtherTexts) {
  Numbers n = numbers();
  const Left first = run_steps(n, all_texts(), GetParam().examples);
  constexpr int kBad = 13;
  n.inputs[std::size_t{kBad} * gates_ + 1] = kNan;
  std::vector<int> backwards = all_texts();
  std::reverse(backwards.begin(), backwards.end());
  const Left moved = run_steps(n, backwards, GetParam().is_resident ? 8 : 16);
  for (int e = 0; e < kTexts; ++e)
    if (e != kBad) expect_same(moved, first, e);
  EXPECT_TRUE(std::isnan(moved.deltas[gate(kBad, 0, 0, 0, 1)]));
  for (const int e : {0, 6, 9}) expect_same(run_steps(n, {e}, 8), first, e);
}

/// A delta beyond fp16 leaves no finite one in the steps before it, and changes no other text.
TEST_P(CudaSteps, ADeltaThatFp16DoesNotHoldIsNotFinite) {
  Numbers n = numbers();
  const Left first = run_steps(n, all_texts(), GetParam().examples);
  constexpr int kLarge = 12;  // five words
  for (int i = 0; i < out_; ++i) n.dy[std::size_t{kLarge} * out_ + i] = 1e7f * size_of(kLarge);
  const Left left = run_steps(n, all_texts(), GetParam().examples);
  for (int e = 0; e < kTexts; ++e)
    for (int i = 0; i < gates_; ++i) {
      const auto at = static_cast<std::size_t>(e) * gates_ + i;
      if (e == kLarge) continue;
      ASSERT_TRUE(left.deltas[at] == first.deltas[at] || std::isnan(first.deltas[at])) << e;
    }
  for (int d = 0; d < 2; ++d)
    for (int j = 0; j < hidden_; ++j)
      EXPECT_FALSE(std::isfinite(left.deltas[gate(kLarge, d, 0, 0, j)])) << j;
}

const auto kSteps =
    testing::Values(steps_of<LstmCell, true>("lstm", 20, 8, device::StatesOut::last),
                    steps_of<LstmCell, true>("lstm_104", 104, 8, device::StatesOut::sequence),
                    steps_of<GruCell, true>("gru", 33, 8, device::StatesOut::mean),
                    steps_of<LstmCell, false>("wide_lstm", 70, 32, device::StatesOut::mean),
                    steps_of<GruCell, false>("wide_gru", 66, 16, device::StatesOut::sequence));
std::string name_of_steps(const testing::TestParamInfo<Steps>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(All, CudaSteps, kSteps, name_of_steps);

}  // namespace
}  // namespace cudp
