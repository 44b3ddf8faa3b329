#include "runtime/device/cpu/coordinates.hpp"

#include <algorithm>
#include <cmath>
#include <variant>

namespace cudp::cpu {
namespace {

constexpr std::size_t kRange = 4096;  // parameters that one task handles

}  // namespace

PackedCoordinates::PackedCoordinates(const Graph& graph)
    : graph_(graph),
      mean_(static_cast<std::size_t>(graph.packed_size)),
      inverse_(mean_.size()),
      square_(mean_.size()),
      product_(mean_.size()),
      shifts_(graph.ops.size(), 0.0) {}

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
      const auto at = static_cast<std::size_t>(graph_.where[j]);
      const float inverse = 1.0f / (std::sqrt(deviation[j]) * scale_.root);
      mean_[at] = scale_.shrink * mean[j];
      inverse_[at] = inverse;
      square_[at] = inverse * inverse;
      product_[at] = mean_[at] * square_[at];
    });
  });
  team.run(graph_.ops.size(), [&](std::size_t i, int) {
    const Op& op = graph_.ops[i];
    if (!std::holds_alternative<Dense>(op.layer->layer)) return;
    shifts_[i] = 0.0;
    for (std::int64_t at = op.packed; at < op.packed + op.packed_size(); ++at) {
      const double m = mean_[static_cast<std::size_t>(at)];
      shifts_[i] += m * m * static_cast<double>(square_[static_cast<std::size_t>(at)]);
    }
  });
  return {.transform = {mean_.data(), inverse_.data()},
          .square = square_.data(),
          .product = product_.data(),
          .shifts = shifts_};
}

}  // namespace cudp::cpu
