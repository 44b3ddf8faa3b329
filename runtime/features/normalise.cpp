#include "runtime/features/normalise.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>

#include "runtime/base/threads.hpp"

namespace cudp {
namespace {

constexpr double kEpsilon = 1e-5;  // PyTorch's

void normalise(std::span<float> group) {
  const auto n = static_cast<double>(group.size());
  double sum = 0.0;
  for (const float x : group) sum += x;
  const double mean = sum / n;
  double squares = 0.0;
  for (const float x : group) squares += (x - mean) * (x - mean);
  const double scale = 1.0 / std::sqrt(squares / n + kEpsilon);
  for (float& x : group) x = static_cast<float>((x - mean) * scale);
}

}  // namespace

void normalise_groups(std::vector<float>& values, const Shape& shape, int groups, int threads) {
  if (groups < 1 || shape.channels % groups != 0)
    throw std::invalid_argument("expected groups that divide " + std::to_string(shape.channels) +
                                " channels, found " + std::to_string(groups));
  const auto size = static_cast<std::size_t>(shape.size() / groups);
  constexpr std::size_t kTask = 4096;
  const std::size_t count = values.size() / size;
  ThreadTeam team(threads);
  team.run((count + kTask - 1) / kTask, [&](std::size_t task, int) {
    for (std::size_t i = task * kTask; i < std::min(count, (task + 1) * kTask); ++i)
      normalise(std::span(values).subspan(i * size, size));
  });
}

}  // namespace cudp
