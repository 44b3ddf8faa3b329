#include "runtime/methods/noise_spans.hpp"

#include <algorithm>
#include <cmath>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/error.hpp"

namespace cudp {

std::vector<NoiseSpan> noise_spans(std::uint64_t steps, const NoiseOfStep& alpha,
                                   std::uint64_t every) {
  std::vector<NoiseSpan> spans;
  const double first = alpha(0);
  for (std::uint64_t t = 0, until = 0; t < steps; t = until) {
    until = t + std::min(every, steps - t);
    const double scale = alpha(t) / first;
    if (!(std::isfinite(scale) && scale > 0.0))
      throw InputError(
          fmt::format("expected finite noise above 0 on every step, found {:.3g} times that of the "
                      "first on step {} of {}",
                      scale, t, steps));
    if (spans.empty() || spans.back().scale != scale) spans.push_back({t, scale});
    spans.back().until = until;
  }
  if (spans.size() == 1) spans.clear();  // the scale of the first span is 1
  return spans;
}

std::vector<NoiseSpan> noise_spans_on_grid(std::uint64_t steps, const NoiseOfStep& alpha) {
  const double first = alpha(0);
  return noise_spans(steps, [&](std::uint64_t t) {
    return std::exp2(std::nearbyint(kNoiseGrid * std::log2(alpha(t) / first)) / kNoiseGrid);
  });
}

}  // namespace cudp
