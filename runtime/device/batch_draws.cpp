#include "runtime/device/batch_draws.hpp"

#include <algorithm>
#include <numeric>
#include <variant>

#include "kernels/common/simd_level.hpp"
#include "runtime/base/error.hpp"

namespace cudp {
namespace {

/// Number of examples that a thread takes at a time, a multiple of 256 (a tile of random words).
constexpr std::int64_t kRange = std::int64_t{64} * 256;

std::size_t ranges(std::int64_t n) { return static_cast<std::size_t>((n + kRange - 1) / kRange); }

}  // namespace

BatchDraws::BatchDraws(const Dataset& data, Generator generator, SharedKey key, ThreadTeam& team)
    : generator_(generator),
      key_(std::move(key)),
      team_(team),
      k_(cpu_kernels(best_simd_level())),
      numbering_(data),
      drawn_(std::make_unique_for_overwrite<std::uint32_t[]>(numbering_.count())) {}

std::span<const std::uint32_t> BatchDraws::draw(std::uint64_t step, const Draw& draw,
                                                std::span<const float> norms) {
  std::size_t count = 0;
  if (const auto* const allocation = std::get_if<Allocation>(&draw)) {
    count = draw_allocated(*allocation, step);
  } else {
    const auto* const poisson = std::get_if<Poisson>(&draw);
    const auto* const candidates = std::get_if<Candidates>(&draw);
    const auto first = static_cast<std::int64_t>(numbering_.begin());
    const auto n = static_cast<std::int64_t>(numbering_.count());
    std::vector<float>
        numbered;  // norms by example number; empty if numbers equal indices in the training set
    if (candidates != nullptr && !numbering_.are_indices()) numbered = numbering_.by_number(norms);
    const float* const all_norms = numbered.empty() ? norms.data() : numbered.data();
    std::vector<std::int64_t> counts(ranges(n));
    team_.run(counts.size(), [&](std::size_t i, int) {
      const std::int64_t begin = static_cast<std::int64_t>(i) * kRange;
      counts[i] = k_.sample({.stream = stream(Stream::sampling, step),
                             .threshold = poisson != nullptr ? poisson->threshold : 0,
                             .begin = first + begin,
                             .end = first + std::min(begin + kRange, n),
                             .drawn = drawn_.get() + begin,
                             .norms = candidates != nullptr ? all_norms : nullptr,
                             .rule = candidates != nullptr ? candidates->rule : ImportanceRule{},
                             .first = first});
    });
    for (std::size_t i = 0; i < counts.size(); ++i) {
      std::copy_n(drawn_.get() + static_cast<std::int64_t>(i) * kRange, counts[i],
                  drawn_.get() + count);
      count += static_cast<std::size_t>(counts[i]);
    }
  }
  return {drawn_.get(), numbering_.to_indices({drawn_.get(), count})};
}

/// Writes the examples that are allocated to a step to drawn_. Returns their number.
std::size_t BatchDraws::draw_allocated(const Allocation& allocation, std::uint64_t step) {
  const std::uint64_t number = step / allocation.steps;
  if (!epoch_ || epoch_->number != number || epoch_->steps != allocation.steps)
    allocate(number, allocation.steps);
  const std::size_t bin = step % allocation.steps;
  const std::size_t count = epoch_->first[bin + 1] - epoch_->first[bin];
  std::copy_n(epoch_->examples.data() + epoch_->first[bin], count, drawn_.get());
  return count;
}

void BatchDraws::allocate(std::uint64_t number, std::uint64_t steps) {
  const auto first = static_cast<std::int64_t>(numbering_.begin());
  const auto n = static_cast<std::int64_t>(numbering_.count());
  std::vector<std::uint32_t> step_of(numbering_.count());
  team_.run(ranges(n), [&](std::size_t i, int) {
    const std::int64_t begin = static_cast<std::int64_t>(i) * kRange;
    const Allocate args{.stream = stream(Stream::allocation, number),
                        .steps = static_cast<std::uint32_t>(steps),
                        .begin = first + begin,
                        .end = first + std::min(begin + kRange, n),
                        .step = step_of.data() + begin};
    validate(args);
    k_.allocate(args);
  });
  if (!epoch_) epoch_.emplace();
  epoch_->number = number;
  epoch_->steps = steps;
  epoch_->first.assign(steps + 1, 0);
  for (const std::uint32_t s : step_of) ++epoch_->first[s + 1];
  std::partial_sum(epoch_->first.begin(), epoch_->first.end(), epoch_->first.begin());
  epoch_->examples.resize(step_of.size());
  std::vector<std::size_t> next(epoch_->first.begin(), epoch_->first.end() - 1);
  for (std::size_t i = 0; i < step_of.size(); ++i)
    epoch_->examples[next[step_of[i]]++] = static_cast<std::uint32_t>(i);
}

}  // namespace cudp
