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

constexpr double kEpsilon = 1e-5;  // the value that PyTorch uses

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

void to_unit_norm(std::span<float> row) {
  double squares = 0.0;
  for (const float x : row) squares += static_cast<double>(x) * x;
  if (squares == 0.0) return;
  const double norm = std::sqrt(squares);
  for (float& x : row) x = static_cast<float>(x / norm);
}

/// Calls one(part) for each of the consecutive parts of `values` that have `size` numbers each, on
/// several threads.
template <class One>
void for_each_part(std::vector<float>& values, std::size_t size, int threads, const One& one) {
  constexpr std::size_t kTask = 4096;
  const std::size_t count = values.size() / size;
  ThreadTeam team(threads);
  team.run((count + kTask - 1) / kTask, [&](std::size_t task, int) {
    for (std::size_t i = task * kTask; i < std::min(count, (task + 1) * kTask); ++i)
      one(std::span(values).subspan(i * size, size));
  });
}

}  // namespace

void normalise_groups(std::vector<float>& values, const Shape& shape, int groups, int threads) {
  if (groups < 1 || shape.channels % groups != 0)
    throw std::invalid_argument("expected groups that divide " + std::to_string(shape.channels) +
                                " channels, found " + std::to_string(groups));
  const auto size = static_cast<std::size_t>(shape.size() / groups);
  for_each_part(values, size, threads, normalise);
}

void normalise_rows(std::vector<float>& values, std::size_t width, Normalise how, int threads) {
  if (how == Normalise::none || values.empty()) return;
  const auto one = how == Normalise::unit ? to_unit_norm : normalise;
  for_each_part(values, width, threads, [&](std::span<float> row) {
    one(row);
    const bool finite =
        std::all_of(row.begin(), row.end(), [](float x) { return std::isfinite(x); });
    if (!finite) std::fill(row.begin(), row.end(), 0.0f);
  });
}

}  // namespace cudp
