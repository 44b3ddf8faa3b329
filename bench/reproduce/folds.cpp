#include "bench/reproduce/folds.hpp"

#include <algorithm>
#include <numeric>
#include <random>

#include "runtime/data/examples.hpp"

namespace cudp {
Dataset whole(const DataSplit& split) {
  Dataset all = split.train;
  append_examples(split.test, all);
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
      append_example(all, order[i], i % splits.size() == f ? splits[f].test : splits[f].train);
  }
  return splits;
}

}  // namespace cudp
