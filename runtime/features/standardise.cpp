#include "runtime/features/standardise.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <mutex>
#include <span>

#include <spdlog/fmt/fmt.h>

#include "kernels/features/scatter.hpp"
#include "runtime/base/ceil_log2.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/threads.hpp"
#include "runtime/data/examples.hpp"
#include "runtime/features/clipped_row.hpp"

namespace cudp {
namespace {

/// Number of examples that a thread processes at a time.
constexpr std::size_t kTask = 256;

/// Returns the scattering order (0, 1 or 2) of a channel. Each colour has one channel of order 0,
/// then 2 * kScatterAngles channels of order 1 (two scales), then the channels of order 2.
int order_of(std::size_t channel) {
  const std::size_t place = channel % kScatterChannels;
  if (place == 0) return 0;
  return place <= std::size_t{2} * kScatterAngles ? 1 : 2;
}

/// Returns the typical root mean square of the values of a scattering channel, which depends on its
/// order. The numbers were measured on the built-in glyphs, which are public (0.24, 0.026, 0.0023),
/// and rounded to powers of two. If other images differ, the noisy statistics are less accurate,
/// but no privacy is lost.
double usual_size(std::size_t channel) {
  constexpr double kSizes[] = {0x1p-2, 0x1p-5, 0x1p-9};
  return kSizes[order_of(channel)];
}

/// Returns the norm to which an example's row of statistics is clipped: somewhat more than the norm
/// of a row of typical channels. (A row has two numbers per channel, each divided by its typical
/// value; see moments_of().) channels: number of channels.
double largest_row(std::size_t channels) { return 2.0 * std::sqrt(static_cast<double>(channels)); }

/// Computes the statistics of one example, the mean and the mean square of each channel, and writes
/// them to `row`: first the means of all channels, then all mean squares, 2 x channels numbers. The
/// values of a channel are first divided by their typical size (usual_size()), and each statistic
/// is divided by largest_row(), so that the row of a typical example has a norm below 1. example:
/// values of the example, [channels][pixels].
void moments_of(std::span<const float> example, std::span<double> row) {
  const std::size_t channels = row.size() / 2;
  const std::size_t pixels = example.size() / channels;
  const double scale = 1.0 / (static_cast<double>(pixels) * largest_row(channels));
  for (std::size_t c = 0; c < channels; ++c) {
    const double unit = 1.0 / usual_size(c);
    double sum = 0.0;
    double squares = 0.0;
    for (const float x : example.subspan(c * pixels, pixels)) {
      const double v = unit * static_cast<double>(x);
      sum += v;
      squares += v * v;
    }
    row[c] = scale * sum;
    row[channels + c] = scale * squares;
  }
}

}  // namespace

void check_standardise(const Dataset& data) {
  if (data.shape.channels % kScatterChannels != 0)
    throw InputError(fmt::format(
        "--feature-standardise: expected scattering features, {} channels a colour, found {}",
        kScatterChannels, data.shape.channels));
}

int moment_bits(double max_examples, double sigma) {
  return std::clamp(std::min(53 - ceil_log2(max_examples), 40 - ceil_log2(sigma)), 1, 24);
}

std::vector<double> clipped_moments(const Dataset& data, int bits, int threads) {
  const auto numbers = static_cast<std::size_t>(data.shape.size());
  const std::size_t width = 2 * static_cast<std::size_t>(data.shape.channels);
  std::vector<double> sum(width);
  std::mutex adding;
  ThreadTeam team(threads);
  team.run((data.size() + kTask - 1) / kTask, [&](std::size_t task, int) {
    std::vector<double> row(width);
    std::vector<double> clipped(width);
    std::vector<double> part(width);
    for (std::size_t e = task * kTask; e < std::min(data.size(), (task + 1) * kTask); ++e) {
      moments_of(data.float_values().subspan(e * numbers, numbers), row);
      clip_row<double>(row, bits, clipped.data());
      for (std::size_t i = 0; i < width; ++i) part[i] += clipped[i];
    }
    const std::lock_guard lock(adding);
    // The sums are whole numbers and exact, so they do not depend on the order of the additions.
    for (std::size_t i = 0; i < width; ++i) sum[i] += part[i];
  });
  return sum;
}

std::vector<float> dp_channel_scaling(const Dataset& data, double size, double max_examples,
                                      double sigma, double second_order, Gate& gate, int threads,
                                      Ranks& ranks) {
  const int bits = moment_bits(max_examples, sigma);
  std::vector<double> moments = clipped_moments(data, bits, threads);
  sum_multiples(ranks, "moments of the channels", moments, 1.0);
  for (double& m : moments) m = std::ldexp(m, -bits);
  const double grid = noise_grid(sigma, std::ldexp(1.0, -bits));
  moments = gate.release({.name = "moments of the channels",
                          .purpose = Stream::channel_moments,
                          .step = 0,
                          .grid = grid,
                          .noise_std = sigma,
                          .sensitivity = 1.0,
                          .charge = {privacy::Gaussian{sigma}, {}}},
                         units_of(moments, grid));
  const std::size_t channels = moments.size() / 2;
  const double mean_of = largest_row(channels) / size;
  for (double& m : moments) m *= mean_of;
  const double noise = mean_of * sigma;  // lower limit for a channel's variance
  std::vector<float> scaling(moments.size());
  for (std::size_t c = 0; c < channels; ++c) {
    const double mean = moments[c];
    const double square = moments[channels + c];
    const double variance = std::fmax(square - mean * mean, std::fmax(0.01 * square, noise));
    const double scale = (order_of(c) == 2 ? second_order : 1.0) / std::sqrt(variance);
    scaling[c] = static_cast<float>(scale / usual_size(c));
    scaling[channels + c] = static_cast<float>(-mean * scale);
  }
  return scaling;
}

void scale_channels(Dataset& data, const std::vector<float>& scaling, int threads) {
  own_features(data);
  const std::size_t channels = scaling.size() / 2;
  const std::size_t pixels = static_cast<std::size_t>(data.shape.size()) / channels;
  ThreadTeam team(threads);
  team.run((data.size() + kTask - 1) / kTask, [&](std::size_t task, int) {
    for (std::size_t e = task * kTask; e < std::min(data.size(), (task + 1) * kTask); ++e)
      for (std::size_t c = 0; c < channels; ++c)
        for (float& x : std::span(data.floats).subspan((e * channels + c) * pixels, pixels))
          x = std::fma(scaling[c], x, scaling[channels + c]);
  });
}

}  // namespace cudp
