// The random streams' kernels on a device, for the tests that random_backends.hpp serves.
#include <algorithm>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/random/random.cuh"
#include "kernels/random/rounded_normal.cuh"
#include "kernels/step/release.cuh"
#include "kernels/step/sample.cuh"
#include "kernels/step/update.cuh"
#include "runtime/device/cuda/buffer.hpp"
#include "runtime/device/cuda/gpu.hpp"
#include "tests/support/random_backends.hpp"

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
  void fill_normals(const RandomStream& s, std::int64_t begin, std::int64_t end, float* normals) {
    Array<float> to(gpu(), normals, end - begin);
    gpu().launch("fill_normals", fill_normals_kernel, shape((end - begin + 255) / 256 * 16), s,
                 begin, end, to.get());
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
      gpu().launch(
          "rounded_normals", rounded_normals_kernel, shape((n + 127) / 128 * 16), a,
          UndecidedPairs{list.get(), counted.get(), static_cast<std::uint32_t>(pairs.size())});
    }
    fill_undecided(args, pairs.data(), count);
  }
  std::int64_t sample(const SampleArgs& args) {
    const std::int64_t tiles = (args.end - args.begin + 255) / 256;
    std::vector<std::uint16_t> no_flags(static_cast<std::size_t>(16 * tiles), 0x5a5a);
    std::vector<std::uint32_t> no_offsets(static_cast<std::size_t>(tiles), 0x5a5a5a5a);
    std::uint32_t count = 0;
    {
      Array<std::uint16_t> flags(gpu(), no_flags.data(), 16 * tiles);
      Array<std::uint32_t> offsets(gpu(), no_offsets.data(), tiles);
      Array<std::uint32_t> counted(gpu(), &count, 1);
      Array<std::uint32_t> drawn(gpu(), args.drawn, args.end - args.begin);
      SampleArgs a = args;
      a.drawn = drawn.get();
      const SampleSpace space{flags.get(), offsets.get(), counted.get(), nullptr};
      gpu().launch("sample_flags", sample_flags_kernel, shape(tiles * 16), a, space);
      gpu().launch("sample_scan", sample_scan_kernel,
                   LaunchShape{.grid = {1}, .block = {256}, .shared_bytes = 32}, a, space);
      gpu().launch("sample_scatter", sample_scatter_kernel, shape(tiles * 16), a, space);
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
                 static_cast<const StepScalars*>(nullptr));
  }
  void release(const ReleaseSum& args) {
    std::vector<FixedPoint> in_order(static_cast<std::size_t>(args.end));
    for (std::size_t j = 0; j < in_order.size(); ++j)
      in_order[j] = static_cast<FixedPoint>(args.sum[args.where != nullptr ? args.where[j] : j]);
    StepScalars with_noise{};
    with_noise.noise_std = args.noise_std;
    std::uint64_t at = args.noise.step;
    std::uint32_t found = 0;
    std::vector<HostPair> list(in_order.size() + 1);
    const auto n = static_cast<std::int64_t>(list.size());
    Array<StepScalars> scalars(gpu(), &with_noise, 1);
    {
      Array<std::uint32_t> count(gpu(), &found, 1);
      Array<HostPair> pairs(gpu(), list.data(), n);
      const ListUndecided a{args.noise,  at,          scalars.get(),
                            1,           args.end,    args.grid,
                            pairs.get(), count.get(), static_cast<std::uint32_t>(n)};
      gpu().launch("list_undecided", list_undecided_kernel, launch_shape(a), a);
    }
    for (std::uint32_t i = 0; i < found; ++i)
      list[i].k = exact_rounded_pair(args.noise, list[i].pair, list[i].words,
                                     static_cast<double>(args.noise_std) / args.grid);
    Array<std::uint32_t> count(gpu(), &found, 1);
    Array<HostPair> pairs(gpu(), list.data(), n);
    Array<std::uint64_t> step(gpu(), &at, 1);
    Array<FixedPoint> sum(gpu(), in_order.data(), args.end);
    Array<float> released(gpu(), args.released, args.end);
    const ReleaseFixed a{sum.get(),   args.grid,   args.noise, step.get(),    scalars.get(),
                         pairs.get(), count.get(), args.end,   released.get()};
    gpu().launch("release", release_kernel, launch_shape(a), a);
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
    cuda::Buffer<cuda::CudaGpu, T> memory_;
  };

  static LaunchShape shape(std::int64_t threads) { return strided_shape(threads, 128); }
  /// Made late: without a device every test is skipped before it. Never released: GoogleTest keeps
  /// what tests hold until the CUDA runtime is gone.
  cuda::CudaGpu& gpu() {
    if (gpu_ == nullptr) gpu_ = new cuda::CudaGpu;
    return *gpu_;
  }
  cuda::CudaGpu* gpu_ = nullptr;
};

}  // namespace

std::vector<RandomBackend> random_backends() {
  const auto k = std::make_shared<GpuKernels>();
  return {{.name = "cuda",
           .fill_words = [k](auto&&... a) { k->fill_words(a...); },
           .fill_normals = [k](auto&&... a) { k->fill_normals(a...); },
           .rounded_normals = [k](const RoundedNormals& a) { k->rounded_normals(a); },
           .sample = [k](const SampleArgs& a) { return k->sample(a); },
           .release = [k](const ReleaseSum& a) { k->release(a); },
           .update = [k](const UpdateArgs& a) { k->update(a); }}};
}

}  // namespace cudp
