#include "runtime/device/cpu/coordinates.hpp"

#include <algorithm>
#include <cmath>

namespace cudp::cpu {
namespace {

constexpr std::size_t kRange = 4096;  // number of parameters per task

}  // namespace

PackedCoordinates::PackedCoordinates(const CpuLayout& layout)
    : layout_(layout),
      mean_(to_size(layout.storage.packed)),
      inverse_(mean_.size()),
      square_(mean_.size()),
      product_(mean_.size()),
      shifts_(to_size(layout.network->groups), 0.0) {}

Coordinates PackedCoordinates::refresh(const std::vector<float>& mean,
                                       const std::vector<float>& deviation, ThreadTeam& team) {
  const std::size_t d = mean.size();
  const std::size_t tasks = (d + kRange - 1) / kRange;
  const auto for_each = [&](std::size_t task, const auto& body) {
    for (std::size_t j = task * kRange; j < std::min(d, (task + 1) * kRange); ++j) body(j);
  };
  struct Sums {
    double deviations = 0.0;
    double ratios = 0.0;
  };
  std::vector<Sums> parts(tasks);
  team.run(tasks, [&](std::size_t task, int) {
    for_each(task, [&](std::size_t j) {
      const double m = mean[j];
      const double s = deviation[j];
      parts[task].deviations += s;
      parts[task].ratios += m * m / s;
    });
  });
  Sums all;
  for (const Sums& part : parts) {
    all.deviations += part.deviations;
    all.ratios += part.ratios;
  }
  scale_ = coordinate_scale(all.deviations, all.ratios);

  team.run(tasks, [&](std::size_t task, int) {
    for_each(task, [&](std::size_t j) {
      const std::size_t at = to_size(layout_.storage.packed_offset[j]);
      const float inverse = 1.0f / (std::sqrt(deviation[j]) * scale_.root);
      mean_[at] = scale_.shrink * mean[j];
      inverse_[at] = inverse;
      square_[at] = inverse * inverse;
      product_[at] = mean_[at] * square_[at];
    });
  });
  const Coordinates coordinates{.transform = {mean_.data(), inverse_.data()},
                                .square = square_.data(),
                                .product = product_.data(),
                                .shifts = shifts_};
  team.run(layout_.layers.size(), [&](std::size_t i, int) {
    const CpuLayer& layer = *layout_.layers[i];
    if (layer.has_parameters())
      shifts_[to_size(layer.group())] = layer.coordinate_shift(coordinates);
  });
  return coordinates;
}

}  // namespace cudp::cpu
