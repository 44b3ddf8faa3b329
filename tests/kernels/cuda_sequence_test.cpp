// Gradients of texts' weights, and products with them, under the emulator.
#include "tests/support/simt/emulated_gpu.hpp"

namespace cudp {
using TestGpu = EmulatedGpu;
}

#include "tests/kernels/cuda_sequence_tests.hpp"
#include "tests/kernels/cuda_text_product_tests.hpp"
#include "tests/kernels/half_fill.hpp"
#include "tests/support/same_bits.hpp"

namespace cudp {
namespace {

class FilledSequence : public CudaSequence {};

/// Texts 0, 4 and 6, beside others of any numbers, which a sum skips.
TEST_P(FilledSequence, NoBitDependsOnWhatMemoryHolds) {
  make_numbers(false);
  const auto d = static_cast<std::size_t>(parameters_);
  std::vector<float> factors(kCapacity, 0.0f);
  for (const std::size_t e : {0u, 4u, 6u}) factors[e] = 0.3f;
  const SumScale* const scale = device_scale(1.0f, 0x1p-14);
  const auto all = [&] {
    const SequenceGradient g = gradient(kCapacity);
    const std::vector<float> rows = single_gradients(g), parts = norm_parts(g);
    cases::Bits bits;
    for (std::size_t e = 0; e < kCapacity; ++e) {
      if (factors[e] == 0.0f) continue;
      bits.add(std::vector<float>(&rows[e * d], &rows[e * d] + d));
      for (std::size_t i = e; i < parts.size(); i += kCapacity) bits.add(parts[i]);
    }
    const SequenceGradientSum a{.gradient = g,
                                .factors = device(factors),
                                .factor_stride = 1,
                                .stripes = 2,
                                .sum = device(std::vector<FixedPoint>(d, 0)),
                                .scale = scale};
    run(GetParam().sum, a);
    return std::pair{bits, host(a.sum, d)};
  };
  const SharedFill zeros(0);
  const auto first = all();
  const auto spoil = [&](std::vector<float>& v) {
    const std::size_t each = v.size() / kCapacity;
    for (std::size_t i = 0; i < v.size(); ++i)
      if (factors[i / each] == 0.0f) v[i] = hostile(i);
  };
  for (std::vector<float>* const v : {&x_, &h_, &dy_}) spoil(*v);
  for (const unsigned char byte : kFills) {
    simt::set_first_byte(byte);
    simt::set_at_barrier(fill_other_half<HalfTile>(byte));
    EXPECT_TRUE(all() == first) << int{byte};
  }
}
INSTANTIATE_TEST_SUITE_P(Tiles, FilledSequence,
                         testing::Values(kSequenceKernels[3], kSequenceKernels[4]), name_of_tile);

class FilledTextProduct : public CudaTextProduct {};

/// Texts 0, 1 and 3, beside others of any numbers.
TEST_P(FilledTextProduct, NoBitDependsOnWhatMemoryHolds) {
  const std::vector<int> order{4, 0, 2, 1, 3};
  const auto fill = forward_ ? fill_other_half<TextTile<true>> : fill_other_half<TextTile<false>>;
  const SharedFill zeros(0);
  const std::vector<float> first = run_plain(order);
  const std::size_t each = a_.size() / kTexts, n = first.size() / kTexts;
  for (std::size_t i = 0; i < a_.size(); ++i)
    if (i / each == 2 || i / each == 4) a_[i] = hostile(i);
  for (const unsigned char byte : kFills) {
    simt::set_first_byte(byte);
    simt::set_at_barrier(fill(byte));
    const std::vector<float> got = run_plain(order);
    for (const std::size_t e : {0u, 1u, 3u})
      EXPECT_EQ(std::memcmp(&got[e * n], &first[e * n], n * sizeof(float)), 0) << e;
  }
}
INSTANTIATE_TEST_SUITE_P(All, FilledTextProduct, testing::ValuesIn(kTextProducts), name_of_product);

}  // namespace
}  // namespace cudp
