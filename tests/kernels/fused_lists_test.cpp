// The fused kernel of lists of layers that no model file has (fused_lists.hpp), under the emulator,
// and of cnn and scatter-cnn with the memory of a group filled where no phase may read it.
#include "tests/support/simt/emulated_gpu.hpp"

namespace cudp {
class TestGpu : public EmulatedGpu {  // with as much shared memory as an H100's
 public:
  TestGpu() : EmulatedGpu(1, {.multiprocessors = 3, .shared_bytes = std::size_t{227} * 1024}) {}
};
}

#include "tests/kernels/fused_kernel_fixture.hpp"
#include "tests/kernels/fused_lists.hpp"
#include "tests/kernels/fused_plane_fill.hpp"

namespace cudp {
namespace {

using fused::Input, fused::Split;

const cases::Case kOdd{"odd", fused::kOddModel, {3, 8, 7}, 3};
const cases::Case kDeep{"deep", fused::kDeepModel, {1, 16, 16}, 32};
const cases::Case kRows{"rows", fused::kRowsModel, {2, 8, 12}, 5};

/// E = 1, 2 and 4, but for what is too large.
template <class N, Split split, Input input>
SameBits each_size(const cases::Case& network) {
  SameBits all{tensor_instance<N, split, input, 1>("one", network),
               tensor_instance<N, split, input, 2>("two", network)};
  if constexpr (fused::shared_bytes<fused::Plan<N, split, input, 4, false>>() <= fused::kMaxShared)
    all.push_back(tensor_instance<N, split, input, 4>("four", network));
  return all;
}

/// All instances of the lists without a transform: both precisions, E = 1, 2, 4.
const std::vector<SameBits>& list_instances() {
  static const std::vector<SameBits> all = {
      each_size<fused::Odd, Split::forward, Input::numbers>(kOdd),
      each_size<fused::Odd, Split::all, Input::numbers>(kOdd),
      each_size<fused::Deep, Split::forward, Input::bytes>(kDeep),
      each_size<fused::Deep, Split::all, Input::numbers>(kDeep),
      each_size<fused::Rows, Split::forward, Input::numbers>(kRows),
      each_size<fused::Rows, Split::all, Input::bytes>(kRows)};
  return all;
}

class FusedLists : public TensorStep {};

TEST_F(FusedLists, GiveTheGradientOfOneExample) {
  for (const SameBits& all : list_instances()) {
    use(all.back());
    expect_gradients(all.back());
  }
}
TEST_F(FusedLists, AnExampleGivesTheSameBitsInEveryPlace) {
  for (const SameBits& all : list_instances()) expect_same_bits(all);
}
TEST_F(FusedLists, NormsAndLogits) {
  for (const SameBits& all : list_instances()) expect_norms_and_logits(all);
}
TEST_F(FusedLists, AcceptCandidates) {
  for (const SameBits& all : list_instances()) expect_accepted(all);
}

TEST_F(FusedLists, TransformGradients) {
  const auto of = [&]<class N, Split split, Input input, int... E>(const cases::Case& network) {
    expect_transformed({tensor_instance<N, split, input, E, true>("transforms", network)...});
  };
  of.operator()<fused::Odd, Split::forward, Input::numbers, 1, 2>(kOdd);
  of.operator()<fused::Deep, Split::forward, Input::bytes, 1, 2, 4>(kDeep);
  of.operator()<fused::Deep, Split::all, Input::numbers, 1>(kDeep);
  of.operator()<fused::Rows, Split::forward, Input::numbers, 1, 4>(kRows);
  of.operator()<fused::Rows, Split::all, Input::bytes, 2>(kRows);
}

/// Every E, both precisions, all tasks.
TEST_F(FusedLists, WeighClasses) {
  for (const SameBits& all : list_instances()) expect_weighted(all);
  weighs_ = true;
  expect_transformed(
      {tensor_instance<fused::Odd, Split::forward, Input::numbers, 1, true>("one", kOdd),
       tensor_instance<fused::Odd, Split::forward, Input::numbers, 2, true>("two", kOdd)});
  expect_transformed(
      {tensor_instance<fused::Rows, Split::all, Input::bytes, 2, true>("two", kRows)});
}

/// Of a class of weight 0, an example that is not finite is left out, too, as 0 NaN is NaN:
/// clipped, transformed or accepted, alone or beside another.
TEST_F(FusedLists, SkipExamplesThatAreNotFiniteAlsoOfWeightZero) {
  const auto plain = tensor_instance<fused::Odd, Split::forward, Input::numbers, 2>("two", kOdd);
  const auto transformed =
      tensor_instance<fused::Odd, Split::forward, Input::numbers, 1, true>("one", kOdd);
  use(plain);
  weighs_ = true;
  mean_.assign(d_, 0.01f);
  inverse_.assign(d_, 1.0f);
  const ClipSettings clip{Clipping::flat, 0.7f, 0.05f};
  const std::vector<std::int64_t> none(d_, 0);
  for (const Activation f : {Activation::tanh, Activation::relu})
    for (const float bad : {kNan, -1e6f}) {  // fp16 does not hold the second
      choose({f});
      Dataset data = features(plain, 2);
      data.labels = {2, 0};
      ASSERT_EQ(class_weight(data.labels[0]), 0.0f);
      EXPECT_NE(sum_of(transformed, data, {0}, 1, clip).sum, none) << "w is -m / scale";
      data.floats[40] = bad;
      EXPECT_EQ(sum_of(transformed, data, {0}, 1, clip).sum, none) << bad;
      EXPECT_EQ(sum_of(plain, data, {0, 1}, 1, clip).sum, sum_of(plain, data, {1}, 1, clip).sum);
      FusedSum a = arguments(FusedTask::accept, plain, data, 1);
      set_acceptance(a, 2);
      EXPECT_EQ(left_by(plain, a, {0}).sum, none) << bad;
      EXPECT_EQ(host(a.norms, 2)[0], 0.0f) << bad;
    }
}

/// What a group leaves in memory changes no bit of the next one's results.
class FusedPlanes : public TensorStep {
 protected:
  template <class N, Split split, Input input, int E, bool transforms = false>
  void expect_unchanged(const cases::Case& network) {
    using P = fused::Plan<N, split, input, E, transforms>;
    const TensorInstance t = tensor_instance<N, split, input, E, transforms>(network.name, network);
    use(t);
    const Dataset data = features(t, 3);
    const std::vector<std::uint32_t> order{0, 1, 2, 1, 0, 2};
    const ClipSettings clip{Clipping::flat, 0.7f, 0.05f};
    const Left plain = sum_of(t, data, order, 1, clip);
    simt::set_at_barrier(PlaneFill<P>(FusedTask::clip, static_cast<int>(order.size())));
    const Left filled = sum_of(t, data, order, 1, clip);
    EXPECT_NE(plain.sum, std::vector<std::int64_t>(d_, 0)) << t.name;
    EXPECT_EQ(filled.sum, plain.sum) << t.name;
    EXPECT_EQ(filled.squared_norms, plain.squared_norms) << t.name;
    EXPECT_EQ(filled.losses, plain.losses) << t.name;
    simt::set_at_barrier(nullptr);
    if (transforms) return;
    const auto logits = [&] {
      FusedSum a = arguments(FusedTask::forward, t, data, 1);
      a.batch = batch(0, 3, 3);
      a.logits = device(std::vector<float>(3 * static_cast<std::size_t>(net_.outputs), kLoud));
      run_tensor(t, a);
      return host(a.logits, 3 * static_cast<std::size_t>(net_.outputs));
    };
    const std::vector<float> want = logits();
    simt::set_at_barrier(PlaneFill<P>(FusedTask::forward, 3));
    EXPECT_EQ(logits(), want) << t.name;
    simt::set_at_barrier(nullptr);
  }
};

TEST_F(FusedPlanes, OfCnn) {
  expect_unchanged<fused::Cnn, Split::forward, Input::bytes, 4>(kTensorCnn);
  expect_unchanged<fused::Cnn, Split::forward, Input::bytes, 1, true>(kTensorCnn);
  expect_unchanged<fused::Cnn, Split::all, Input::numbers, 2>(kTensorCnn);
}
TEST_F(FusedPlanes, OfScatterCnn) {
  expect_unchanged<fused::ScatterCnn, Split::forward, Input::numbers, 2>(kTensorScatter);
  expect_unchanged<fused::ScatterCnn, Split::all, Input::numbers, 1>(kTensorScatter);
}
TEST_F(FusedPlanes, OfLists) {
  expect_unchanged<fused::Odd, Split::forward, Input::numbers, 2>(kOdd);
  expect_unchanged<fused::Odd, Split::all, Input::numbers, 1>(kOdd);
  expect_unchanged<fused::Deep, Split::forward, Input::bytes, 4>(kDeep);
  expect_unchanged<fused::Deep, Split::all, Input::numbers, 2>(kDeep);
  expect_unchanged<fused::Rows, Split::forward, Input::numbers, 4>(kRows);
  expect_unchanged<fused::Rows, Split::all, Input::bytes, 2>(kRows);
}

}  // namespace
}  // namespace cudp
