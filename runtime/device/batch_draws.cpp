#include "runtime/device/batch_draws.hpp"

#include <algorithm>
#include <variant>

#include "kernels/common/simd_level.hpp"
#include "runtime/base/error.hpp"

namespace cudp {
namespace {

/// Number of examples in a range. A thread draws for one range of consecutive examples at a time.
/// Must be a multiple of 256, the number of examples whose random words are computed together.
constexpr std::int64_t kRange = std::int64_t{64} * 256;

/// Maximum number of batches that BatchDraws::allocate() draws at once.
constexpr std::uint64_t kMaxBatches = std::uint64_t{1} << 16;

/// Maximum number of tasks into which a draw is divided. Each task draws for one or more
/// consecutive ranges of kRange examples.
constexpr std::size_t kMaxTasks = 64;

std::size_t ranges(std::int64_t n) { return static_cast<std::size_t>((n + kRange - 1) / kRange); }

}  // namespace

BatchDraws::BatchDraws(const Dataset& data, Generator generator, SharedKey key, ThreadTeam& team)
    : generator_(generator),
      key_(std::move(key)),
      team_(team),
      k_(cpu_kernels(best_simd_level())),
      numbering_(data),
      scratch_(static_cast<std::size_t>(team.size())) {}

std::span<const std::uint32_t> BatchDraws::draw(std::uint64_t step, const Draw& draw,
                                                std::span<const float> norms) {
  if (const auto* const allocation = std::get_if<Allocation>(&draw))
    draw_allocated(*allocation, step);
  else
    draw_each(step, draw, norms);
  drawn_.resize(numbering_.to_indices(drawn_));
  return drawn_;
}

/// Draws a batch in which each example is drawn independently of the others (Poisson or importance
/// sampling). Writes to drawn_ the sampling indices of the drawn examples, i.e. the indices with
/// which batches are drawn (class Numbering). They are relative to numbering_.begin(). norms:
/// stored gradient norm of each example, for importance sampling. draw: Poisson or Candidates
/// (importance sampling).
void BatchDraws::draw_each(std::uint64_t step, const Draw& draw, std::span<const float> norms) {
  const auto* const poisson = std::get_if<Poisson>(&draw);
  const auto* const candidates = std::get_if<Candidates>(&draw);
  const auto first = static_cast<std::int64_t>(numbering_.begin());
  const auto n = static_cast<std::int64_t>(numbering_.count());
  std::vector<float>
      numbered;  // norms by example number; empty if numbers equal indices in the training set
  if (candidates != nullptr && !numbering_.are_indices()) numbered = numbering_.by_number(norms);
  const float* const all_norms = numbered.empty() ? norms.data() : numbered.data();
  const std::size_t tasks = std::min(ranges(n), kMaxTasks);
  parts_.resize(tasks);
  team_.run(tasks, [&](std::size_t task, int thread) {
    std::vector<std::uint32_t>& scratch = scratch_[static_cast<std::size_t>(thread)];
    scratch.resize(static_cast<std::size_t>(kRange));
    std::vector<std::uint32_t>& part = parts_[task];
    part.clear();
    const std::size_t end = ranges(n) * (task + 1) / tasks;
    for (std::size_t range = ranges(n) * task / tasks; range < end; ++range) {
      const std::int64_t begin = static_cast<std::int64_t>(range) * kRange;
      const std::int64_t count =
          k_.sample({.stream = stream(Stream::sampling, step),
                     .threshold = poisson != nullptr ? poisson->threshold : 0,
                     .begin = first + begin,
                     .end = first + std::min(begin + kRange, n),
                     .drawn = scratch.data(),
                     .norms = candidates != nullptr ? all_norms : nullptr,
                     .rule = candidates != nullptr ? candidates->rule : ImportanceRule{},
                     .first = first});
      part.insert(part.end(), scratch.begin(), scratch.begin() + count);
    }
  });
  drawn_.clear();
  for (const auto& part : parts_) drawn_.insert(drawn_.end(), part.begin(), part.end());
}

/// Random allocation: writes to drawn_ the sampling indices of the examples in the batch of this
/// step, i.e. the indices with which batches are drawn (class Numbering). They are relative to
/// numbering_.begin(). If the batches of the step's epoch have not been drawn yet, draws them
/// first.
void BatchDraws::draw_allocated(const Allocation& allocation, std::uint64_t step) {
  const std::uint64_t number = step / allocation.steps;
  const std::uint64_t in_epoch = step % allocation.steps;
  if (!epoch_ || !epoch_->has(number, allocation.steps, in_epoch))
    allocate(number, allocation.steps, in_epoch);
  drawn_ = epoch_->batches[in_epoch - epoch_->begin];
}

void BatchDraws::allocate(std::uint64_t number, std::uint64_t steps, std::uint64_t begin) {
  const auto first = static_cast<std::int64_t>(numbering_.begin());
  const auto n = static_cast<std::int64_t>(numbering_.count());
  const std::uint64_t of_a_step = numbering_.count() / steps + 1;
  if (of_a_step * steps <= kMaxAllocated && steps <= kMaxBatches) begin = 0;
  const std::uint64_t count =
      std::clamp<std::uint64_t>(std::min(kMaxAllocated / of_a_step, kMaxBatches), 1, steps - begin);
  if (!epoch_) epoch_.emplace();
  *epoch_ = {.number = number, .steps = steps, .begin = begin, .batches = {}};
  epoch_->batches.resize(count);
  for (auto& batch : epoch_->batches) batch.reserve(of_a_step + of_a_step / 8);
  std::vector<std::uint32_t> step_of(static_cast<std::size_t>(kRange) * kMaxTasks);
  for (std::size_t at = 0; at < ranges(n); at += kMaxTasks) {
    const std::int64_t from = static_cast<std::int64_t>(at) * kRange;
    const std::size_t now = std::min(kMaxTasks, ranges(n) - at);
    team_.run(now, [&](std::size_t i, int) {
      const std::int64_t start = from + static_cast<std::int64_t>(i) * kRange;
      const Allocate args{.stream = stream(Stream::allocation, number),
                          .steps = static_cast<std::uint32_t>(steps),
                          .begin = first + start,
                          .end = first + std::min(start + kRange, n),
                          .step = step_of.data() + (start - from)};
      validate(args);
      k_.allocate(args);
    });
    const std::int64_t to = std::min(from + static_cast<std::int64_t>(now) * kRange, n);
    for (std::int64_t i = from; i < to; ++i)
      if (const std::uint64_t step = step_of[static_cast<std::size_t>(i - from)];
          step >= begin && step - begin < count)
        epoch_->batches[step - begin].push_back(static_cast<std::uint32_t>(i));
  }
}

}  // namespace cudp
