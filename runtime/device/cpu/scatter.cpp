#include "runtime/device/scatter.hpp"

#include <algorithm>
#include <cstddef>

#include "kernels/common/simd_level.hpp"
#include "kernels/cpu_kernels.hpp"
#include "runtime/base/aligned.hpp"
#include "runtime/base/threads.hpp"
#include "runtime/device/scatter_tables.hpp"
#include "runtime/device/scratch_fill.hpp"

namespace cudp {

std::vector<float> scatter_on_cpu(const Dataset& images, int threads, const WorkDone& done) {
  const ScatterBank bank(images.shape.height, images.shape.width);
  const CpuKernels& kernels = cpu_kernels(best_simd_level());
  const auto lanes = static_cast<std::size_t>(kernels.lanes);
  const auto pixels = static_cast<std::size_t>(images.shape.size() / images.shape.channels);
  const std::size_t planes = images.size() * static_cast<std::size_t>(images.shape.channels);
  const auto features =
      std::size_t{kScatterChannels} * static_cast<std::size_t>(bank.tables().out_pixels());
  std::vector<float> out(planes * features);

  ThreadTeam team(threads);
  std::vector<AlignedVector<float>> work;
  work.reserve(static_cast<std::size_t>(team.size()));
  for (int t = 0; t < team.size(); ++t) work.emplace_back(scatter_work(bank.tables()) * lanes);
  const std::size_t tasks = (planes + lanes - 1) / lanes;
  const std::size_t slab = std::max<std::size_t>(tasks / 100, 64);
  for (std::size_t first = 0; first < tasks; first += slab) {
    team.run(std::min(slab, tasks - first), [&](std::size_t i, int thread) {
      const std::size_t plane = (first + i) * lanes;
      AlignedVector<float>& scratch = work[static_cast<std::size_t>(thread)];
      if (const auto fill = scratch_fill()) std::fill_n(scratch.data(), scratch.size(), *fill);
      kernels.scatter(
          {.tables = &bank.tables(),
           .bytes = images.is_bytes() ? images.byte_values().data() + plane * pixels : nullptr,
           .floats = images.is_bytes() ? nullptr : images.float_values().data() + plane * pixels,
           .scale = images.scale,
           .shift = images.shift,
           .planes = static_cast<int>(std::min(lanes, planes - plane)),
           .out = out.data() + plane * features,
           .work = scratch.data()});
    });
    done(static_cast<double>(std::min(first + slab, tasks)) / static_cast<double>(tasks));
  }
  return out;
}

}  // namespace cudp
