// What is counted or measured of rows beside the steps: the number of training examples, second
// moments, moments of channels; of held-out rows how many there are of each class. In double, from
// the rows of one part alone.
#include <algorithm>
#include <cmath>
#include <cstddef>

#include <spdlog/fmt/fmt.h>

#include "runtime/data/examples.hpp"
#include "tests/support/recomputer.hpp"

namespace cudp::recomputing {
namespace {

std::size_t to_size(int n) { return static_cast<std::size_t>(n); }

/// The numbers of an example.
Values numbers_of(const Dataset& d, std::size_t example) {
  const std::size_t width = to_size(d.shape.size());
  Values x(width);
  for (std::size_t i = 0; i < width; ++i)
    x[i] = d.is_bytes() ? double{d.scale} * d.bytes[example * width + i] + double{d.shift}
                        : static_cast<double>(d.floats[example * width + i]);
  return x;
}

/// x at norm 1 at most; of what is not finite zeros.
void shorten(Values& x) {
  const double norm = norm_of(x);
  for (double& v : x) v = !std::isfinite(norm) ? 0.0 : norm > 1.0 ? v / norm : v;
}

}  // namespace

void Recomputer::check_numbers(const transcript::Release& r, const Values& expected,
                               double allowed) {
  if (r.sums.size() != expected.size())
    return fault(fmt::format("stream {}: expected {} sums, found {}", r.stream, expected.size(),
                             r.sums.size()));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double found = static_cast<double>(r.sums[i]) * r.grid;
    if (!(std::fabs(found - expected[i]) <= allowed))
      return fault(fmt::format("stream {}, sum {}: expected {:.9g} within {:.3g}, found {:.9g}",
                               r.stream, i, expected[i], allowed, found));
  }
}

void Recomputer::check_size(const transcript::Release& r) {
  check_numbers(r, {static_cast<double>(train().size())}, 0.0);
}

void Recomputer::check_second_moments(const transcript::Release& r) {
  const Dataset rows = dense(as_read_);
  const std::size_t d = to_size(rows.shape.size());
  Values sum;
  for (std::size_t e = 0; e < rows.size(); ++e) {
    Values x = numbers_of(rows, e);
    shorten(x);
    std::size_t at = 0;
    const auto add = [&](double product) {
      if (at == sum.size()) sum.push_back(0.0);
      sum[at++] += product;
    };
    for (std::size_t i = 0; i < d; ++i)
      for (std::size_t j = r.step == 0 ? i : i + 1; j < (r.step == 0 ? i + 1 : d); ++j)
        add(x[i] * x[j]);
  }
  if (rows.size() == 0) sum.assign(r.sums.size(), 0.0);
  // Each number of a row is cut to 13 bits, or to fewer beside large noise.
  const int bits = std::clamp((39 - std::ilogb(r.noise_std)) / 2, 1, 13);
  check_numbers(r, sum, static_cast<double>(rows.size()) * std::ldexp(2.0, -bits));
}

void Recomputer::check_channel_moments(const transcript::Release& r) {
  const std::size_t channels = to_size(as_read_.shape.channels);
  const std::size_t pixels = to_size(as_read_.shape.size()) / channels;
  Values sum(2 * channels, 0.0);
  for (std::size_t e = 0; e < as_read_.size(); ++e) {
    const Values x = numbers_of(as_read_, e);
    Values row(2 * channels, 0.0);
    for (std::size_t c = 0; c < channels; ++c) {
      // The usual size of a channel of order 0, 1 and 2, of which a colour has 1, 16 and 64.
      const std::size_t place = c % 81;
      const double usual = place == 0 ? 0.25 : place <= 16 ? 1.0 / 32.0 : 1.0 / 512.0;
      for (std::size_t p = 0; p < pixels; ++p) {
        const double v = x[c * pixels + p] / usual;
        row[c] += v / static_cast<double>(pixels);
        row[channels + c] += v * v / static_cast<double>(pixels);
      }
    }
    for (double& v : row) v /= 2.0 * std::sqrt(static_cast<double>(channels));
    shorten(row);
    for (std::size_t i = 0; i < row.size(); ++i) sum[i] += row[i];
  }
  const int bits = std::clamp(39 - std::ilogb(r.noise_std), 1, 24);
  check_numbers(r, sum, static_cast<double>(as_read_.size()) * std::ldexp(2.0, -bits));
}

void Recomputer::check_held_out(const transcript::Release& r) {
  const Dataset& held = experiment_.data.test;
  if (held.has_targets()) {
    if (r.step == 0) check_numbers(r, {static_cast<double>(held.size())}, 0.0);
    return;
  }
  const std::size_t classes = to_size(held.classes);
  Values expected(classes, 0.0);
  for (const std::uint8_t label : held.labels) expected[label] += 1.0;
  transcript::Release rows = r;
  rows.sums.assign(classes, 0);
  for (std::size_t i = 0; i < r.sums.size(); ++i) rows.sums[i / classes] += r.sums[i];
  check_numbers(rows, expected, 0.0);
}

}  // namespace cudp::recomputing
