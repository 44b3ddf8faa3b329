#include "runtime/reproduce/folds.hpp"

#include <algorithm>
#include <numeric>
#include <random>

namespace cudp {
namespace {

void append(const Dataset& from, std::size_t example, Dataset& to) {
  const auto size = static_cast<std::size_t>(from.shape.size());
  const auto copy = [&](const auto& source, auto& target) {
    if (source.empty()) return;
    const auto first = source.begin() + static_cast<std::ptrdiff_t>(example * size);
    target.insert(target.end(), first, first + static_cast<std::ptrdiff_t>(size));
  };
  copy(from.bytes, to.bytes);
  copy(from.floats, to.floats);
  to.labels.push_back(from.labels[example]);
}

Dataset empty_like(const Dataset& data) {
  Dataset out;
  out.shape = data.shape;
  out.classes = data.classes;
  out.scale = data.scale;
  out.shift = data.shift;
  return out;
}

}  // namespace

Dataset whole(const DataSplit& split) {
  Dataset all = split.train;
  for (std::size_t i = 0; i < split.test.size(); ++i) append(split.test, i, all);
  return all;
}

std::vector<DataSplit> cross_validation(const Dataset& all, int folds, std::uint64_t seed) {
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937_64 random(seed);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  std::vector<DataSplit> splits(static_cast<std::size_t>(folds));
  for (std::size_t f = 0; f < splits.size(); ++f) {
    splits[f].train = empty_like(all);
    splits[f].test = empty_like(all);
    for (std::size_t i = 0; i < order.size(); ++i)
      append(all, order[i], i % splits.size() == f ? splits[f].test : splits[f].train);
  }
  return splits;
}

}  // namespace cudp
