#pragma once
// Backends of random streams, sampling and updates, for parametrised tests.
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
#include "kernels/step/sample.cuh"  // host build: the kernels' text itself, run by the emulator
#include "kernels/step/update.cuh"
#include "tests/kernels/compiled_finish.hpp"
#include "tests/support/random_kernels.cuh"
#endif

namespace cudp {

inline constexpr Generator kEveryGenerator[] = {Generator::chacha20, Generator::philox};

struct RandomBackend {
  std::string name;
  std::function<void(const RandomStream&, std::int64_t, std::int64_t, std::uint32_t*)> fill_words;
  /// Null for CUDA, which draws no normal numbers that are not rounded.
  std::function<void(const RandomStream&, std::int64_t, std::int64_t, float*)> fill_normals = {};
  /// Computes rounded normals. A device leaves some pairs undecided; they are filled in.
  std::function<void(const RoundedNormals&)> rounded_normals;
  std::function<std::int64_t(const SampleArgs&)> sample;
  /// Releases a sum. A device's sum is already in the order of the parameters.
  std::function<void(const ReleaseSum&)> release;
  std::function<void(const UpdateArgs&)> update;
  bool emulated = false;  ///< thousands of times slower: fewer and smaller cases
};
inline void PrintTo(const RandomBackend& b, std::ostream* os) { *os << b.name; }

#ifdef CUDP_TEST_ON_GPU
/// Returns the device's backend; tests/gpu/random_gpu.cu.
std::vector<RandomBackend> random_backends();
#else
/// CUDA kernels under the emulator, always launched with this shape. If a grid is too small for the
/// work, the kernels' loops run several times. Every launch has a warp schedule of its own.
class EmulatedKernels {
 public:
  EmulatedKernels(unsigned blocks, unsigned threads) : blocks_(blocks), threads_(threads) {}

  void fill_words(const RandomStream& s, std::int64_t begin, std::int64_t end,
                  std::uint32_t* words) {
    launch("fill_words", fill_words_kernel, s, begin, end, words);
  }
  void rounded_normals(const RoundedNormals& args) {
    std::vector<std::uint32_t> pairs(static_cast<std::size_t>(args.end - args.begin) + 1, 0x5a5a);
    std::uint32_t count = 0;
    launch("rounded_normals", rounded_normals_kernel, args, UndecidedPairs{pairs.data(), &count});
    fill_undecided(args, pairs.data(), count);
  }
  std::int64_t sample(const SampleArgs& args) {
    const auto tiles = static_cast<std::size_t>((args.end - args.begin + 255) / 256);
    std::vector<std::uint16_t> flags(16 * tiles, 0x5a5a);
    std::vector<std::uint32_t> counts(tiles + 1, 0x5a5a5a5a);
    std::uint32_t count = 0x5a5a5a5a;
    SampleArgs a = args;
    SampleSpace space{flags.data(), counts.data(), &count};
    // In a run that has come to the step, or by itself; with and without a scan.
    StepCursor cursor{.first = args.stream.step - 2, .end = 3, .index = 2, .candidates = args.rule};
    ListedStep list[3] = {};
    list[2].scalars.learning_rate = 7.0f;
    list[2].scale.clip_norm = 3.0f;
    if (seed_ % 2 == 0) {
      a.stream.step = ~args.stream.step;  // is not read
      space.cursor = &cursor;
      space.list = list;
      space.capacity = static_cast<std::uint32_t>(args.end - args.begin);
    }
    space.scanned = seed_ % 3 == 0;
    launch("sample_flags", sample_flags_kernel, a, space);
    if (space.scanned)
      simt::launch(sample_scan_kernel, 1, threads_, threads_ / 32 * sizeof(std::uint32_t),
                   options("sample_scan"), a, space);
    launch("sample_place", sample_place_kernel, a, space);
    if (space.cursor != nullptr &&
        (cursor.active != 1 || cursor.index != 3 || cursor.step != args.stream.step ||
         cursor.scalars.learning_rate != 7.0f || cursor.scale.clip_norm != 3.0f))
      throw std::runtime_error("the cursor has not begun the step");
    return count;
  }
  void update(const UpdateArgs& args) {
    const StepScalars scalars = args.scalars;
    if (seed_ % 2 == 0) {  // the step's numbers as arguments
      launch("update", update_kernel_of(args.optimizer.kind), args,
             static_cast<const StepScalars*>(nullptr), AdaptStepSize{});
    } else {  // in memory
      UpdateArgs a = args;
      a.scalars = {};
      launch("update", update_kernel_of(args.optimizer.kind), a, &scalars, AdaptStepSize{});
    }
  }
  void release(const ReleaseSum& args) {
    std::vector<FixedPoint> sum(static_cast<std::size_t>(args.end));
    for (std::size_t j = 0; j < sum.size(); ++j)
      sum[j] = static_cast<FixedPoint>(args.sum[args.where != nullptr ? args.where[j] : j]);
    const auto n = static_cast<std::int64_t>(sum.size());
    std::vector<std::uint32_t> undecided(static_cast<std::size_t>(words_of_pairs(n)), 0);
    StepCursor cursor{.active = 1, .step = args.noise.step};
    cursor.scalars.noise_std = args.noise_std;
    cursor.scale.grid = args.grid;
    RandomStream stream = args.noise;
    stream.step = ~args.noise.step;  // is not read
    const FinishStep finish{.cursor = &cursor,
                            .sum = sum.data(),
                            .unfinished = {},
                            .noise = stream,
                            .n = n,
                            .undecided = undecided.data(),
                            .released = args.released,
                            .update = {},
                            .by_pairs = seed_ % 2 == 0};
    launch("finish", finish_kernel_of(OptimizerKind::sgd), finish);
    if (const std::vector<DecidedPair> pairs = decided_pairs(undecided, cursor, stream);
        !pairs.empty()) {
      if (pairs.size() != cursor.pending) throw std::runtime_error("pairs are counted wrongly");
      launch("finish_pairs", finish_pairs_kernel_of(OptimizerKind::sgd),
             FinishPairs{finish, pairs.data(), static_cast<std::uint32_t>(pairs.size())});
    }
    if (cursor.pending != 0) throw std::runtime_error("pairs are left undecided");
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
          .rounded_normals = [k](const RoundedNormals& a) { k->rounded_normals(a); },
          .sample = [k](const SampleArgs& a) { return k->sample(a); },
          .release = [k](const ReleaseSum& a) { k->release(a); },
          .update = [k](const UpdateArgs& a) { k->update(a); },
          .emulated = true};
}

/// Returns a backend for every SIMD level that this build and processor have.
inline std::vector<RandomBackend> cpu_backends() {
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
  return backends;
}

/// Returns the CPU's backends and the emulated CUDA kernels.
inline std::vector<RandomBackend> random_backends() {
  std::vector<RandomBackend> backends = cpu_backends();
  backends.push_back(emulated_backend(1, 32));
  backends.push_back(emulated_backend(3, 96));
  return backends;
}
#endif

}  // namespace cudp
