#include "runtime/features/pca.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include <spdlog/fmt/fmt.h>

#include "kernels/common/simd_level.hpp"
#include "kernels/cpu_kernels.hpp"
#include "runtime/base/aligned.hpp"
#include "runtime/base/ceil_log2.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/threads.hpp"
#include "runtime/data/examples.hpp"
#include "runtime/features/clipped_row.hpp"

namespace cudp {
namespace {

// Maximum number of features of an example; the covariance matrix then has 2 GiB.
constexpr int kMaxNumbers = 16384;
constexpr std::size_t kRowsAtOnce = 64;  // number of rows that fit the L2 cache while they are
                                         // multiplied
constexpr int kRowsPerTask = 16;         // rows of the matrix per task, a multiple of 4

std::size_t to_size(std::int64_t n) { return static_cast<std::size_t>(n); }
std::int64_t padded(std::int64_t n, std::int64_t tile) { return (n + tile - 1) / tile * tile; }

/// Reads the features of one example as floats into x, in the scale in which an engine reads them.
void read_example(const Dataset& data, std::size_t example, std::span<float> x) {
  if (!data.is_bytes()) {
    read_floats(data, example, x);
    return;
  }
  const std::size_t at = example * x.size();
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = std::fma(data.scale, static_cast<float>(data.byte_values()[at + i]), data.shift);
}

}  // namespace

void check_pca(const Dataset& data, std::int64_t dimensions) {
  const int d = data.shape.size();
  if (dimensions > d)
    throw InputError(
        fmt::format("--feature-dimensions: expected at most the {} numbers of an example, found {}",
                    d, dimensions));
  if (d > kMaxNumbers)
    throw InputError(fmt::format(
        "--features pca: expected examples of at most {} numbers, found {}", kMaxNumbers, d));
}

int row_bits(double max_examples, double sigma) {
  return std::clamp(std::min(53 - ceil_log2(max_examples), 40 - ceil_log2(sigma)) / 2, 1, 13);
}

std::vector<double> clipped_second_moments(const Dataset& data, int bits, int threads) {
  const CpuKernels& kernels = cpu_kernels(best_simd_level());
  const auto d = static_cast<std::int64_t>(data.shape.size());
  const std::int64_t stride = padded(d, kColumnTile);
  AlignedVector<double> rows(kRowsAtOnce * to_size(stride));
  AlignedVector<double> sum(to_size(stride * stride));
  ThreadTeam team(threads);
  const std::size_t tasks = to_size(padded(d, kRowsPerTask) / kRowsPerTask);
  for (std::size_t first = 0; first < data.size(); first += kRowsAtOnce) {
    const std::size_t count = std::min(kRowsAtOnce, data.size() - first);
    team.run(count, [&](std::size_t r, int) {
      std::vector<float> x(to_size(d));
      read_example(data, first + r, x);
      clip_row<float>(x, bits, rows.data() + r * to_size(stride));
    });
    team.run(tasks, [&](std::size_t task, int) {
      const int begin = static_cast<int>(task) * kRowsPerTask;
      kernels.second_moments({.rows = rows.data(),
                              .count = static_cast<std::int64_t>(count),
                              .stride = stride,
                              .begin = begin,
                              .end = std::min(begin + kRowsPerTask, static_cast<int>(padded(d, 4))),
                              .sum = sum.data()});
    });
  }
  std::vector<double> moments(to_size(d * d));
  for (std::int64_t i = 0; i < d; ++i)
    for (std::int64_t j = i; j < d; ++j)
      moments[to_size(i * d + j)] = moments[to_size(j * d + i)] =
          std::ldexp(sum[to_size(i * stride + j)], -2 * bits);
  return moments;
}

void add_symmetric_noise(std::vector<double>& matrix, int d, int bits, double sigma, Gate& gate) {
  const std::size_t n = to_size(d);
  const auto visit = [&](bool diagonal, const auto& entry) {
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = diagonal ? i : i + 1; j < (diagonal ? i + 1 : n); ++j) entry(i, j);
  };
  const Charge charge{.mechanism = privacy::Gaussian{sigma}, .number = {}, .parts = 2};
  const auto release = [&](bool diagonal, GaussianRelease r) {
    r.grid = noise_grid(r.noise_std, std::ldexp(1.0, -2 * bits));
    std::vector<std::int64_t> sums;
    visit(diagonal, [&](std::size_t i, std::size_t j) {
      sums.push_back(units_of(matrix[i * n + j], r.grid));
    });
    if (sums.empty()) return;
    const std::vector<double> noisy = gate.release(r, sums);
    auto next = noisy.begin();
    visit(diagonal,
          [&](std::size_t i, std::size_t j) { matrix[j * n + i] = matrix[i * n + j] = *next++; });
  };
  release(true, {.name = "second moments, on the diagonal",
                 .purpose = Stream::covariance,
                 .step = 0,
                 .grid = 0.0,
                 .noise_std = sigma,
                 .sensitivity = 1.0,
                 .charge = charge});
  // The factor 1 + 2^-51 makes the noise's standard deviation at least sigma / sqrt(2), although
  // the square root and the products are rounded.
  release(false, {.name = "second moments, off the diagonal",
                  .purpose = Stream::covariance,
                  .step = 1,
                  .grid = 0.0,
                  .noise_std = sigma * std::sqrt(0.5) * (1.0 + 0x1p-51),
                  .sensitivity = std::sqrt(0.5),
                  .charge = charge});
}

void whiten(Eigenpairs& pairs) {
  const std::size_t count = pairs.values.size();
  if (count == 0 || !(pairs.values.front() > 0.0)) return;
  std::vector<double> moments = pairs.values;
  for (double& m : moments) m = std::fmax(m, 1e-3 * pairs.values.front());
  const double mean =
      std::accumulate(moments.begin(), moments.end(), 0.0) / static_cast<double>(count);
  const std::size_t d = pairs.vectors.size() / count;
  for (std::size_t c = 0; c < count; ++c) {
    const auto scale = static_cast<float>(std::sqrt(mean / moments[c]));
    for (std::size_t i = 0; i < d; ++i) pairs.vectors[c * d + i] *= scale;
  }
}

std::vector<float> dp_pca(const Dataset& data, double max_examples, int dimensions, bool whitened,
                          double sigma, Gate& gate, int threads, Ranks& ranks) {
  const int d = data.shape.size();
  const int bits = row_bits(max_examples, sigma);
  std::vector<double> moments = clipped_second_moments(data, bits, threads);
  sum_multiples(ranks, "second moments", moments, std::ldexp(1.0, -2 * bits));
  add_symmetric_noise(moments, d, bits, sigma, gate);
  Eigenpairs pairs = leading_eigenvectors(std::move(moments), d, dimensions);
  if (whitened) whiten(pairs);
  return std::move(pairs.vectors);
}

void project(Dataset& data, const std::vector<float>& projection, int threads) {
  const CpuKernels& kernels = cpu_kernels(best_simd_level());
  const auto d = to_size(data.shape.size());
  const std::size_t k = projection.size() / d;
  const std::size_t columns = to_size(padded(static_cast<std::int64_t>(k), 16));
  AlignedVector<float> directions(d * columns);
  for (std::size_t c = 0; c < k; ++c)
    for (std::size_t i = 0; i < d; ++i) directions[i * columns + c] = projection[c * d + i];
  std::vector<float> projected(data.size() * k);
  constexpr std::size_t kTask = 256;
  ThreadTeam team(threads);
  team.run((data.size() + kTask - 1) / kTask, [&](std::size_t task, int) {
    std::vector<float> x(d);
    AlignedVector<float> y(columns);
    for (std::size_t e = task * kTask; e < std::min(data.size(), (task + 1) * kTask); ++e) {
      read_example(data, e, x);
      kernels.project_row({.x = x.data(),
                           .directions = directions.data(),
                           .inputs = static_cast<int>(d),
                           .outputs = static_cast<int>(columns),
                           .out = y.data()});
      std::copy_n(y.data(), k, projected.data() + e * k);
    }
  });
  data.floats = std::move(projected);
  data.bytes = {};
  data.borrowed = nullptr;
  data.holds_bytes = false;
  data.coded = {};
  data.layout = nullptr;
  data.shape = {.channels = static_cast<int>(k)};
}

}  // namespace cudp
