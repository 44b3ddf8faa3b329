#pragma once
// Networks that have fused kernels (kernels/fused/), and launches of these.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/device/cuda/fused.hpp"
#include "tests/kernels/fused_network.hpp"

namespace cudp {
namespace {

/// A network that has a fused kernel, and bytes of shared memory that make for different ones:
/// the last for networks of dense layers makes a block take two tiles.
struct FusedCase {
  cases::Case network;
  std::vector<std::size_t> shared_bytes;
  Precision precision = Precision::fp32;
};
constexpr std::size_t kKB = 1024, kH200 = 227 * kKB, kA100 = 163 * kKB, kAda = 99 * kKB;
void PrintTo(const FusedCase& c, std::ostream* os) { *os << c.network.name; }

/// Neither side of any layer is a multiple of four.
constexpr const char* kOddMlp = R"(
name = "odd"
activation = "tanh"
layers = [
  { type = "dense", name = "a", out = 33 },
  { type = "activation" },
  { type = "dense", name = "b", out = "outputs" },
]
)";

/// Two hidden layers: one as wide as several blocks of warps, one whose sums are divided into
/// parts.
constexpr const char* kDeepMlp = R"(
name = "deep"
activation = "tanh"
layers = [
  { type = "dense", name = "a", out = 144 },
  { type = "activation" },
  { type = "dense", name = "b", out = 32 },
  { type = "activation" },
  { type = "dense", name = "c", out = "outputs" },
]
)";

/// As many layers as the kernel has, of which no side is a multiple of four.
constexpr const char* kOddDeepMlp = R"(
name = "odd_deep"
activation = "tanh"
layers = [
  { type = "dense", name = "a", out = 150 },
  { type = "activation" },
  { type = "dense", name = "b", out = 17 },
  { type = "activation" },
  { type = "dense", name = "c", out = 41 },
  { type = "activation" },
  { type = "dense", name = "d", out = 9 },
  { type = "activation" },
  { type = "dense", name = "e", out = "outputs" },
]
)";

const FusedCase kFusedCases[] = {
    {{"cnn", "cnn", {1, 28, 28}, 10}, {kH200}},
    {{"cnn_tf32", "cnn", {1, 28, 28}, 10}, {kH200, kA100}, Precision::tf32},
    {{"scatter_cnn", "scatter-cnn", {81, 7, 7}, 10}, {kH200}},
    {{"scatter_cnn_tf32", "scatter-cnn", {81, 7, 7}, 10}, {kH200, kA100}, Precision::tf32},
    {{"adult", "logistic", {124, 1, 1}, 2}, {kH200, 2900}},
    {{"svm", "svm", {9, 1, 1}, 2}, {kAda, 900}},
    {{"softmax", "logistic", {1, 28, 28}, 10}, {kH200, kAda, 16 * kKB}},
    {{"odd_softmax", "logistic", {37, 1, 1}, 11}, {kH200, 1900}},
    {{"mlp", "mlp", {60, 1, 1}, 10}, {kH200, kAda, 40 * kKB}},
    {{"odd_mlp", kOddMlp, {21, 1, 1}, 2}, {kH200, 4000}},
    {{"deep_mlp", kDeepMlp, {60, 1, 1}, 10}, {kH200, 11 * kKB}},
    {{"odd_deep_mlp", kOddDeepMlp, {21, 1, 1}, 3}, {kH200, 11 * kKB}},
};

class FusedStep : public FusedNetworkTest, public testing::WithParamInterface<FusedCase> {
 protected:
  FusedStep() : FusedNetworkTest(GetParam().network) {}

  void SetUp() override {
    if (shared_bytes() < kernels_[0].shared_bytes)
      GTEST_SKIP() << "the device has too little shared memory";
  }

  /// What a launch leaves.
  struct Left {
    std::vector<std::int32_t> slabs;
    std::vector<float> losses, squared_norms, factors;
    std::vector<FixedPoint> fixed;  ///< from the reduction
    std::vector<float> norms;       ///< of candidates: of the whole data set
  };

  /// Which examples a launch takes: those of a list from `first` on, by so many blocks.
  struct Listed {
    std::vector<std::uint32_t> examples;
    int blocks = 1;
    int first = 0;
  };

  /// Who is accepted.
  struct Candidacy {
    ImportanceRule rule;
    RandomStream stream;
    std::uint64_t step;
    std::vector<float> seen;  ///< norms of the whole data set
  };

  Left sum_of(const Dataset& data, const std::vector<std::uint32_t>& examples, int blocks,
              const ClipSettings& clip, const cuda::FusedKernel& kernel, int first = 0) {
    FusedSum a = arguments(FusedTask::clip, data, blocks, kernel);
    a.clip = {clip.kind, clip.stability};
    a.sum_scale = device_scale(clip.clip_norm, unit_of(clip.clip_norm));
    return left_by(a, {examples, blocks, first}, kernel);
  }

  Left accepted_of(const Dataset& data, const Listed& listed, const Candidacy& c,
                   const cuda::FusedKernel& kernel) {
    FusedSum a = arguments(FusedTask::accept, data, listed.blocks, kernel);
    a.accept = {.rule = device(std::vector{c.rule}),
                .stream = c.stream,
                .step = device(std::vector{c.step})};
    a.norms = device(c.seen);
    a.sum_scale = device_scale(static_cast<float>(c.rule.clip), unit_of(1.0f));
    Left left = left_by(a, listed, kernel);
    left.norms = host(a.norms, c.seen.size());
    return left;
  }

  /// The norms, or the logits, of n examples from number `first` on, behind `first` places that
  /// nobody writes.
  std::vector<float> norms_of(const Dataset& data, int first, int n,
                              const cuda::FusedKernel& kernel) {
    FusedSum a = arguments(FusedTask::norms, data, 3, kernel);
    a.batch = batch(first, n, static_cast<unsigned>(first + n));
    a.norms = device(std::vector<float>(static_cast<std::size_t>(first + n) + 1, kLoud));
    run_fused(kernel.sum, a, kernel.shared_bytes, kernel.threads);
    return host(a.norms, static_cast<std::size_t>(first + n) + 1);
  }
  std::vector<float> logits_of(const Dataset& data, int first, int n,
                               const cuda::FusedKernel& kernel) {
    FusedSum a = arguments(FusedTask::forward, data, 3, kernel);
    a.batch = batch(first, n + 1, static_cast<unsigned>(first + n));
    const auto size = static_cast<std::size_t>(net_.outputs) * (n + 1);
    a.logits = device(std::vector<float>(size, kLoud));
    run_fused(kernel.sum, a, kernel.shared_bytes, kernel.threads);
    return host(a.logits, size);
  }

  FusedSum arguments(FusedTask task, const Dataset& data, int blocks,
                     const cuda::FusedKernel& kernel) {
    FusedSum a = arguments_of(task, data, blocks);
    a.dense = kernel.dense;
    a.loss = net_.spec.loss;
    a.stripe = kernel.stripe();
    if (kernel.packing.places != nullptr)
      set_packed(a, kernel.packing.places(), kernel.packing.image(), kernel.packing.low);
    return a;
  }

  /// Of a sum, whose arguments have all but the examples and what is written.
  Left left_by(FusedSum a, const Listed& listed, const cuda::FusedKernel& kernel) {
    const int capacity = fused_capacity(a.blocks, a.stripe);
    const std::vector<std::uint32_t>& examples = listed.examples;
    a.batch = batch(listed.first, capacity, static_cast<unsigned>(examples.size()));
    a.examples = device(examples.empty() ? std::vector<std::uint32_t>{0} : examples);
    const std::size_t slab_size = static_cast<std::size_t>(a.blocks) * d_;
    const auto rows = static_cast<std::size_t>(capacity);
    a.slabs = device(std::vector<std::int32_t>(slab_size, kLoudUnits));
    a.losses = device(std::vector<float>(rows, kLoud));
    a.squared_norms = device(std::vector<float>(layers_ * rows, kLoud));
    a.factors = device(std::vector<float>(layers_ * rows, kLoud));
    run_fused(kernel.sum, a, kernel.shared_bytes, kernel.threads);
    FusedReduce r{};
    r.block_sums = {a.batch, a.slabs, a.stripe, a.blocks};
    r.n = static_cast<std::int64_t>(d_);
    r.fixed = device(std::vector<FixedPoint>(d_, 0));
    run(fused_reduce_kernel, r);
    return {.slabs = host(a.slabs, slab_size),
            .losses = host(a.losses, rows),
            .squared_norms = host(a.squared_norms, layers_ * rows),
            .factors = host(a.factors, layers_ * rows),
            .fixed = host(r.fixed, d_),
            .norms = {}};
  }

  static float unit_of(float max_norm) {
    return static_cast<float>(sum_grid(static_cast<double>(max_norm)));
  }

  Dataset examples(std::size_t n) const { return cases::examples_for(GetParam().network, n); }

  /// Gives the network functions of three kinds in turn, the first of them by `first`.
  void choose(std::size_t first) {
    const Activate kinds[] = {
        {Activation::tanh}, {Activation::relu}, {Activation::tempered_sigmoid, 1.6f, 1.3f, 0.7f}};
    for (NetworkLayer& l : net_.layers)
      if (auto* a = std::get_if<Activate>(&l.layer)) *a = kinds[first++ % 3];
  }

  /// The kernels that take any features; those for bytes alone are TensorStep's (
  /// tests/kernels/fused_kernel_tests.hpp).
  static std::vector<cuda::FusedKernel> kernels_for(const Network& net, bool transforms = false) {
    std::vector<cuda::FusedKernel> kernels;
    for (const std::size_t bytes : GetParam().shared_bytes)
      for (const cuda::FusedKernel& k :
           cuda::fused_kernels_for(net, {.multiprocessors = 1, .shared_bytes = bytes},
                                   GetParam().precision, transforms))
        if (!k.wants_bytes) kernels.push_back(k);
    return kernels;
  }
  /// Relative error of norms and sums.
  static double precision() { return GetParam().precision == Precision::tf32 ? 1.5e-3 : 1e-5; }
  static void expect_near(double got, double want, double scale, int at) {
    EXPECT_TRUE(std::abs(got - want) <= precision() * scale)
        << "at " << at << ": " << got << ", " << want;
  }

  static constexpr std::int32_t kLoudUnits = 0x7eadbeef;
  std::vector<cuda::FusedKernel> kernels_ = kernels_for(net_);
};

}  // namespace
}  // namespace cudp
