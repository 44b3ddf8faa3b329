// The random streams' kernels on a device, for the tests that random_backends.hpp serves.
#include <algorithm>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/step/sample.cuh"
#include "kernels/step/update.cuh"
#include "runtime/device/cuda/buffer.hpp"
#include "runtime/device/cuda/gpu.hpp"
#include "tests/kernels/compiled_finish.hpp"
#include "tests/support/random_backends.hpp"
#include "tests/support/random_kernels.cuh"

namespace cudp {
namespace {

class GpuKernels {
 public:
  void fill_words(const RandomStream& s, std::int64_t begin, std::int64_t end,
                  std::uint32_t* words) {
    Array<std::uint32_t> to(gpu(), words, end - begin);
    gpu().launch("fill_words", fill_words_kernel, shape((end - begin + 255) / 256 * 16), s, begin,
                 end, to.get());
  }
  void rounded_normals(const RoundedNormals& args) {
    const std::int64_t n = args.end - args.begin;
    std::vector<std::uint32_t> pairs(static_cast<std::size_t>(n) + 1, 0x5a5a);
    std::uint32_t count = 0;
    {
      Array<std::int64_t> out(gpu(), args.out, n);
      Array<std::uint32_t> list(gpu(), pairs.data(), n + 1);
      Array<std::uint32_t> counted(gpu(), &count, 1);
      RoundedNormals a = args;
      a.out = out.get();
      gpu().launch("rounded_normals", rounded_normals_kernel, shape((n + 127) / 128 * 16), a,
                   UndecidedPairs{list.get(), counted.get()});
    }
    fill_undecided(args, pairs.data(), count);
  }
  std::int64_t sample(const SampleArgs& args) {
    const std::int64_t tiles = (args.end - args.begin + 255) / 256;
    std::vector<std::uint16_t> no_flags(static_cast<std::size_t>(16 * tiles), 0x5a5a);
    std::vector<std::uint32_t> no_counts(static_cast<std::size_t>(tiles) + 1, 0x5a5a5a5a);
    std::uint32_t count = 0;
    {
      Array<std::uint16_t> flags(gpu(), no_flags.data(), 16 * tiles);
      Array<std::uint32_t> counts(gpu(), no_counts.data(), tiles + 1);
      Array<std::uint32_t> counted(gpu(), &count, 1);
      Array<std::uint32_t> drawn(gpu(), args.drawn, args.end - args.begin);
      SampleArgs a = args;
      a.drawn = drawn.get();
      const SampleSpace space{.flags = flags.get(),
                              .counts = counts.get(),
                              .count = counted.get(),
                              .scanned = is_scanned_};
      gpu().launch("flags", sample_flags_kernel, shape(tiles * 16), a, space);
      if (space.scanned)
        gpu().launch("scan", sample_scan_kernel,
                     LaunchShape{.grid = {1}, .block = {256}, .shared_bytes = 32}, a, space);
      gpu().launch("place", sample_place_kernel, shape(tiles * 16), a, space);
      is_scanned_ = !is_scanned_;
    }
    return count;
  }
  void update(const UpdateArgs& args) {
    const std::int64_t d = args.end;
    Array<float> released(gpu(), const_cast<float*>(args.released), d);
    Array<float> parameters(gpu(), args.parameters, d);
    Array<float> moment1(gpu(), args.moment1, d);
    Array<float> moment2(gpu(), args.moment2, d);
    Array<float> average(gpu(), args.average, d);
    UpdateArgs a = args;
    a.released = released.get();
    a.parameters = parameters.get();
    a.moment1 = moment1.get();
    a.moment2 = moment2.get();
    a.average = average.get();
    gpu().launch("update", update_kernel_of(a.optimizer.kind), shape(d), a,
                 static_cast<const StepScalars*>(nullptr), AdaptStepSize{});
  }
  void release(const ReleaseSum& args) {
    std::vector<FixedPoint> in_order(static_cast<std::size_t>(args.end));
    for (std::size_t j = 0; j < in_order.size(); ++j)
      in_order[j] = static_cast<FixedPoint>(args.sum[args.where != nullptr ? args.where[j] : j]);
    StepCursor at{.active = 1, .step = args.noise.step};
    at.scalars.noise_std = args.noise_std;
    at.scale.grid = args.grid;
    std::vector<std::uint32_t> bits(static_cast<std::size_t>(words_of_pairs(args.end)), 0);
    Array<FixedPoint> sum(gpu(), in_order.data(), args.end);
    Array<float> released(gpu(), args.released, args.end);
    FinishStep a{.cursor = nullptr,
                 .sum = sum.get(),
                 .unfinished = {},
                 .noise = args.noise,
                 .n = args.end,
                 .undecided = nullptr,
                 .released = released.get(),
                 .update = {},
                 .by_pairs = is_by_pairs_};
    is_by_pairs_ = !is_by_pairs_;
    {
      Array<StepCursor> cursor(gpu(), &at, 1);
      Array<std::uint32_t> undecided(gpu(), bits.data(), words_of_pairs(args.end));
      a.cursor = cursor.get();
      a.undecided = undecided.get();
      gpu().launch("finish", finish_kernel_of(OptimizerKind::sgd), launch_shape(a), a);
    }
    std::vector<DecidedPair> pairs = decided_pairs(bits, at, args.noise);
    EXPECT_EQ(pairs.size(), at.pending);
    if (pairs.empty()) return;
    Array<StepCursor> cursor(gpu(), &at, 1);
    Array<std::uint32_t> undecided(gpu(), bits.data(), words_of_pairs(args.end));
    Array<DecidedPair> made(gpu(), pairs.data(), static_cast<std::int64_t>(pairs.size()));
    a.cursor = cursor.get();
    a.undecided = undecided.get();
    const FinishPairs f{a, made.get(), static_cast<std::uint32_t>(pairs.size())};
    gpu().launch("finish pairs", finish_pairs_kernel_of(OptimizerKind::sgd), launch_shape(f), f);
  }

 private:
  /// A host array's copy on the device, brought back at the end; nothing for a null one.
  template <class T>
  class Array {
   public:
    Array(cuda::CudaGpu& gpu, T* host, std::int64_t n)
        : gpu_(gpu), host_(host), memory_(gpu, host != nullptr ? static_cast<std::size_t>(n) : 0) {
      memory_.upload({host, memory_.size()});
    }
    Array(const Array&) = delete;
    Array& operator=(const Array&) = delete;
    ~Array() {
      try {
        if (memory_.size() > 0) gpu_.download(host_, memory_.get(), memory_.size() * sizeof(T));
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
      }
    }
    T* get() const { return memory_.get(); }

   private:
    cuda::CudaGpu& gpu_;
    T* host_;
    cuda::Buffer<T> memory_;
  };

  static LaunchShape shape(std::int64_t threads) { return strided_shape(threads, 128); }
  /// Made late: without a device every test is skipped before it. Never released: GoogleTest keeps
  /// what tests hold until the CUDA runtime is gone.
  cuda::CudaGpu& gpu() {
    if (gpu_ == nullptr) gpu_ = new cuda::CudaGpu;
    return *gpu_;
  }
  cuda::CudaGpu* gpu_ = nullptr;
  bool is_scanned_ = false;   // every other batch
  bool is_by_pairs_ = false;  // every other release
};

}  // namespace

std::vector<RandomBackend> random_backends() {
  const auto k = std::make_shared<GpuKernels>();
  return {{.name = "cuda",
           .fill_words = [k](auto&&... a) { k->fill_words(a...); },
           .rounded_normals = [k](const RoundedNormals& a) { k->rounded_normals(a); },
           .sample = [k](const SampleArgs& a) { return k->sample(a); },
           .release = [k](const ReleaseSum& a) { k->release(a); },
           .update = [k](const UpdateArgs& a) { k->update(a); }}};
}

}  // namespace cudp
