#pragma once
// The backends that random streams, sampling and the update run on, for parametrised tests.
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/common/simd_level.hpp"
#include "kernels/cpu_kernels.hpp"
#include "kernels/random/random.hpp"
#include "kernels/random/rounded_normal.hpp"
#include "kernels/step/release.hpp"
#include "kernels/step/sample.hpp"
#include "kernels/step/update.hpp"
#ifndef CUDP_TEST_ON_GPU
#include "kernels/random/random.cuh"  // host build: the kernels' text itself, run by the emulator
#include "kernels/random/rounded_normal.cuh"
#include "kernels/step/release.cuh"
#include "kernels/step/sample.cuh"
#include "kernels/step/update.cuh"
#endif

namespace cudp {

struct RandomBackend {
  std::string name;
  std::function<void(const RandomStream&, std::int64_t, std::int64_t, std::uint32_t*)> fill_words;
  std::function<void(const RandomStream&, std::int64_t, std::int64_t, float*)> fill_normals;
  /// The device's with what it leaves undecided filled in.
  std::function<void(const RoundedNormals&)> rounded_normals;
  std::function<std::int64_t(const SampleArgs&)> sample;
  /// A device's sum is already in the order of the parameters.
  std::function<void(const ReleaseSum&)> release;
  std::function<void(const UpdateArgs&)> update;
  bool emulated = false;  ///< thousands of times slower: fewer and smaller cases
};
inline void PrintTo(const RandomBackend& b, std::ostream* os) { *os << b.name; }

#ifdef CUDP_TEST_ON_GPU
/// The device alone; tests/gpu/random_gpu.cu.
std::vector<RandomBackend> random_backends();
#else
/// The CUDA kernels under the emulator, always launched with this shape. Grids too small for the
/// work make the kernels' loops go round; every launch has a warp schedule of its own.
class EmulatedKernels {
 public:
  EmulatedKernels(unsigned blocks, unsigned threads) : blocks_(blocks), threads_(threads) {}

  void fill_words(const RandomStream& s, std::int64_t begin, std::int64_t end,
                  std::uint32_t* words) {
    launch("fill_words", fill_words_kernel, s, begin, end, words);
  }
  void fill_normals(const RandomStream& s, std::int64_t begin, std::int64_t end, float* normals) {
    launch("fill_normals", fill_normals_kernel, s, begin, end, normals);
  }
  void rounded_normals(const RoundedNormals& args) {
    std::vector<std::uint32_t> pairs(static_cast<std::size_t>(args.end - args.begin) + 1, 0x5a5a);
    std::uint32_t count = 0;
    launch("rounded_normals", rounded_normals_kernel, args,
           UndecidedPairs{pairs.data(), &count, static_cast<std::uint32_t>(pairs.size())});
    fill_undecided(args, pairs.data(), count);
  }
  std::int64_t sample(const SampleArgs& args) {
    const auto tiles = static_cast<std::size_t>((args.end - args.begin + 255) / 256);
    std::vector<std::uint16_t> flags(16 * tiles, 0x5a5a);
    std::vector<std::uint32_t> offsets(tiles, 0x5a5a5a5a);
    std::uint32_t count = 0x5a5a5a5a;
    const std::uint64_t step = args.stream.step;
    SampleArgs a = args;
    a.stream.step = ~step;  // not read where the space has a step
    const SampleSpace space{flags.data(), offsets.data(), &count, &step};
    launch("sample_flags", sample_flags_kernel, a, space);
    simt::launch(sample_scan_kernel, 1, threads_, threads_ / 32 * sizeof(std::uint32_t),
                 options("sample_scan"), a, space);
    launch("sample_scatter", sample_scatter_kernel, a, space);
    return count;
  }
  void update(const UpdateArgs& args) {
    const StepScalars scalars = args.scalars;
    if (seed_ % 2 == 0) {  // the step's numbers as arguments
      launch("update", update_kernel_of(args.optimizer.kind), args,
             static_cast<const StepScalars*>(nullptr));
    } else {  // in memory
      UpdateArgs a = args;
      a.scalars = {};
      launch("update", update_kernel_of(args.optimizer.kind), a, &scalars);
    }
  }
  void release(const ReleaseSum& args) {
    std::vector<FixedPoint> sum(static_cast<std::size_t>(args.end));
    for (std::size_t j = 0; j < sum.size(); ++j)
      sum[j] = static_cast<FixedPoint>(args.sum[args.where != nullptr ? args.where[j] : j]);
    std::vector<HostPair> pairs(sum.size() + 1);
    std::uint32_t count = 0;
    StepScalars scalars{};
    scalars.noise_std = args.noise_std;
    RandomStream stream = args.noise;
    stream.step = ~args.noise.step;  // is not read
    launch("list_undecided", list_undecided_kernel,
           ListUndecided{stream, args.noise.step, &scalars, 1, args.end, args.grid, pairs.data(),
                         &count, static_cast<std::uint32_t>(pairs.size())});
    for (std::uint32_t i = 0; i < count; ++i)
      pairs[i].k = exact_rounded_pair(args.noise, pairs[i].pair, pairs[i].words,
                                      static_cast<double>(args.noise_std) / args.grid);
    launch("release", release_kernel,
           ReleaseFixed{sum.data(), args.grid, stream, &args.noise.step, &scalars, pairs.data(),
                        &count, args.end, args.released});
    for (const FixedPoint s : sum)
      if (s != 0) throw std::runtime_error("a release leaves the sum behind");
  }

 private:
  simt::Options options(const char* name) { return {.name = name, .seed = ++seed_}; }
  template <class... P, class... A>
  void launch(const char* name, void (*kernel)(P...), A... args) {
    simt::launch(kernel, blocks_, threads_, 0, options(name), args...);
  }

  unsigned blocks_;
  unsigned threads_;
  unsigned seed_ = 0;
};

inline RandomBackend emulated_backend(unsigned blocks, unsigned threads) {
  const auto k = std::make_shared<EmulatedKernels>(blocks, threads);
  return {.name = "simt_" + std::to_string(blocks) + "x" + std::to_string(threads),
          .fill_words = [k](auto&&... a) { k->fill_words(a...); },
          .fill_normals = [k](auto&&... a) { k->fill_normals(a...); },
          .rounded_normals = [k](const RoundedNormals& a) { k->rounded_normals(a); },
          .sample = [k](const SampleArgs& a) { return k->sample(a); },
          .release = [k](const ReleaseSum& a) { k->release(a); },
          .update = [k](const UpdateArgs& a) { k->update(a); },
          .emulated = true};
}

/// Every SIMD level this build and processor have, and the emulated CUDA kernels.
inline std::vector<RandomBackend> random_backends() {
  std::vector<RandomBackend> backends;
  for (const SimdLevel level : {SimdLevel::baseline, SimdLevel::avx2, SimdLevel::avx512}) {
    try {
      const CpuKernels& k = cpu_kernels(level);
      backends.push_back({.name = std::string(simd_name(level)),
                          .fill_words = k.fill_words,
                          .fill_normals = k.fill_normals,
                          .rounded_normals = k.rounded_normals,
                          .sample = k.sample,
                          .release = k.release_sum,
                          .update = k.update});
    } catch (const std::invalid_argument&) {  // this processor lacks it
    }
  }
  backends.push_back(emulated_backend(1, 32));
  backends.push_back(emulated_backend(3, 96));
  return backends;
}
#endif

}  // namespace cudp
