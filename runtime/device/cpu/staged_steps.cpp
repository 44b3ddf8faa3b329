#include "runtime/device/cpu/staged_steps.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "runtime/base/available_memory.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/interrupt.hpp"
#include "runtime/device/cpu/rows_ahead.hpp"

namespace cudp::cpu {
namespace {

// The following costs are used to decide how rows are read. They do not change any result. A cost
// is measured in bytes: the number of bytes that the disk could deliver in the same time if it read
// in order.

/// Cost of one read at a random position of the file [bytes]. (A cloud disk delivered 64,000 such
/// reads per second, or 1.4 GB per second in order: 22 KB per read. For local disks it is less.)
constexpr double kReadCost = 16384.0;
/// Cost [bytes] of deciding whether one example is drawn, which takes 1 ns.
constexpr double kDrawCost = 1.4;

/// Maximum time for which a step waits until a pass over the file has copied its rows [ms], and the
/// cost of this time [bytes]. After that the step reads its rows one by one, which slows the pass
/// down. The time is short, so that a training can be interrupted.
constexpr std::chrono::milliseconds kWait{500};
constexpr double kWaitCost = 0.7e9;

/// Size of the pieces in which the rows of a step are read from a temporary file [bytes].
constexpr std::size_t kPieceBytes = std::size_t{1} << 17;

/// Minimum number of steps whose rows one pass over the file copies. For fewer, no pass is planned.
constexpr std::uint64_t kMinSteps = 8;

/// Maximum cost [bytes] of drawing the batches of one pass: 25 s of one core.
constexpr double kMaxDrawing = 0x1p35;

/// Maximum number of steps whose rows are read ahead.
constexpr std::uint64_t kMaxAhead = 4;
/// Maximum size of the rows that are read ahead [bytes]. The rows of one step are read ahead even
/// if they are larger.
constexpr std::uint64_t kAheadBytes = std::uint64_t{1} << 25;

double expected_rows(const Dataset& train, double expected_batch) {
  return expected_batch * static_cast<double>(train.size()) /
         static_cast<double>(std::max<std::size_t>(1, train.whole_size()));
}

}  // namespace

std::uint64_t StagePlan::memory() const {
  if (steps == 0) return 0;
  // Memory for the indices of the rows of three groups of steps: one group whose batches are being
  // drawn, one whose rows are being copied, and one that is being trained. If there is only one
  // pass, there is one group.
  const std::uint64_t groups = files == 1 ? 1 : 3;
  return groups * sizeof(std::uint32_t) * steps * slot_rows +
         (steps + RowPass::kWrites) * chunk_bytes + RowPass::kReadBytes + 2 * RowReader::kMaxBytes;
}

StagePlan plan_stage(const Dataset& train, const Draw& draw, double expected_batch,
                     std::uint64_t steps, bool is_read_anyway, const StageLimits& limits) {
  const RowFile& file = *train.rows;
  const double rate = rate_of(draw);
  const double batch = expected_rows(train, expected_batch);
  const auto row = static_cast<double>(file.row_bytes());
  if (!(batch >= 1.0) || rate <= 0.0 || file.row_bytes() > RowPass::kMaxRowBytes) return {};
  // Drawing batches costs kDrawCost / rate per drawn row. If this is more than half of the cost of
  // a random read, the draws take most of the time, and no pass is made only to copy rows.
  const bool draws_take_longer = !limits.always && kDrawCost / rate > kReadCost / 2.0;
  if (draws_take_longer && !is_read_anyway) return {};
  StagePlan plan;
  // Number of rows for which a step has space in a temporary file: the expected batch size plus 8
  // standard deviations plus 16. A step whose batch is larger, which is improbable, reads its rows
  // from the data set's own file.
  const double largest = batch + 8.0 * std::sqrt(batch) + 16.0;
  // Batches of more than kMaxBytes are not read ahead, so no pass is planned for them.
  if (largest * row > static_cast<double>(RowsAhead::kMaxBytes)) return {};
  plan.slot_rows = RowPass::slot_of(static_cast<std::size_t>(largest), file.row_bytes());
  // Returns the maximum number of steps that one pass can copy if there are `files` temporary files
  // (1 or 2). Together they have at most two thirds of the data file's size. If there is only one,
  // one group of row indices is in memory instead of three (see memory()), so it may be three times
  // as large.
  const double all_rows = static_cast<double>(file.rows());
  const std::uint64_t chunks = limits.chunks / limits.min_chunk;
  const auto most_steps = [&](std::uint64_t files) {
    const double part = all_rows * 2.0 / 3.0 / static_cast<double>(files);
    const double indices = static_cast<double>(limits.rows) * (files == 1 ? 3.0 : 1.0);
    double most = std::min({std::min(indices, part) / batch, static_cast<double>(chunks)});
    // Each step's space in a temporary file is a whole number of pages (slot_rows), which must fit
    // with this rounding, too.
    if (!limits.always)
      most = std::min(
          {most, part / static_cast<double>(plan.slot_rows), kMaxDrawing / (kDrawCost * all_rows)});
    return static_cast<std::uint64_t>(most);
  };
  plan.files = draws_take_longer || (steps > 0 && steps <= most_steps(1)) ? 1 : 2;
  plan.steps = most_steps(plan.files);
  if (plan.steps < kMinSteps) return {};
  const double bytes = all_rows * row;
  const auto cost_of_pass = [&](std::uint64_t of) {
    return bytes + row * batch * static_cast<double>(of);
  };
  const auto cost_of_reads = [&](std::uint64_t of) {
    return kReadCost * batch * static_cast<double>(of);
  };
  if (!limits.always) {
    const double drawing = kDrawCost * all_rows * static_cast<double>(plan.steps);
    plan.delay = static_cast<std::uint64_t>((cost_of_pass(plan.steps) + drawing) /
                                            (kWaitCost + cost_of_reads(1)));
  }
  if (steps == 0) return {};
  // Divides the steps into groups of equal size, one pass per group.
  const std::uint64_t groups = (steps + plan.steps - 1) / plan.steps;
  plan.steps = (steps + groups - 1) / groups;
  // Cost of a group: reading the file and writing the copies (cost_of_pass), and reading the copies
  // back. If the file is read anyway, reading it costs nothing.
  const double cost = cost_of_pass(plan.steps) + row * batch * static_cast<double>(plan.steps) -
                      (is_read_anyway ? bytes : 0.0);
  if (!limits.always && cost > cost_of_reads(plan.steps)) return {};
  const std::uint64_t chunk = std::max<std::uint64_t>(
      1, limits.chunks / (plan.steps + RowPass::kWrites) / RowPass::kDirectPage);
  const double slot = static_cast<double>(plan.slot_rows) * row;
  plan.chunk_bytes =
      std::min<std::uint64_t>(chunk * RowPass::kDirectPage, static_cast<std::uint64_t>(slot));
  plan.ahead = std::clamp<std::uint64_t>(
      kAheadBytes / std::max<std::uint64_t>(1, static_cast<std::uint64_t>(slot)), 1, kMaxAhead);
  if (!limits.always && plan.memory() > available_memory() / 2) return {};
  return plan;
}

std::unique_ptr<StagedSteps> StagedSteps::open(const Dataset& train, const EngineSettings& settings,
                                               const StageLimits& limits) {
  const RowFile& file = *train.rows;
  const StagePlan plan = plan_stage(train, settings.recipe.draw, settings.expected_batch,
                                    settings.steps, true, limits);
  if (plan.steps == 0 || file.folder_for_copies().empty()) return nullptr;
  std::unique_ptr<StagedSteps> staged(new StagedSteps(train, settings, limits));
  staged->plan_ = plan;
  staged->files_.resize(plan.files);
  try {
    for (std::shared_ptr<File>& f : staged->files_) {
      f = std::make_shared<File>();
      f->rows = make_empty_rows(file.folder_for_copies(), file.name(), file.row_bytes(),
                                plan.steps * plan.slot_rows);
      if (f->rows != nullptr) f->reader = RowReader::open(*f->rows, kPieceBytes);
      if (f->reader == nullptr) return nullptr;
    }
  } catch (const Error&) {
    return nullptr;  // no temporary file can be created there
  }
  return staged;
}

StagedSteps::StagedSteps(const Dataset& train, const EngineSettings& settings,
                         const StageLimits& limits)
    : train_(train),
      limits_(limits),
      expected_batch_(settings.expected_batch),
      steps_(settings.steps),
      team_(settings.threads),
      draws_(train, settings.generator, settings.key, team_) {}

StagedSteps::~StagedSteps() {
  stop_ = true;
  if (drawing_.valid()) drawing_.wait();
  if (passing_.valid()) passing_.wait();
}

std::shared_ptr<const StagedSteps::Group> StagedSteps::find(std::uint64_t step, const Draw& draw) {
  if (draw_ && *draw_ != draw) return nullptr;
  if (!draw_) {
    draw_ = draw;
    draw_next(step + plan_.delay);
  }
  if (now_ != nullptr && step >= now_->end()) now_ = nullptr;
  start_pass();
  if (now_ == nullptr) use_passed(step);
  start_pass();
  if (now_ == nullptr || !now_->has(step) || now_->batch(step).size() > now_->slot_rows)
    return nullptr;
  return now_;
}

template <class T>
bool StagedSteps::is_ready(const std::future<T>& result) const {
  if (!result.valid()) return false;
  if (limits_.always) result.wait();
  return result.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

void StagedSteps::draw_next(std::uint64_t from, bool is_read_anyway) {
  drawn_until_ = std::max(drawn_until_, from);
  if (drawn_until_ >= steps_) return;
  const StagePlan plan =
      plan_stage(train_, *draw_, expected_batch_, steps_ - drawn_until_, is_read_anyway, limits_);
  const std::uint64_t count = std::min(plan_.steps, plan.steps);
  if (count == 0) return;
  const BlockedSignals blocked;  // other threads handle signals
  drawing_ = std::async(std::launch::async, [this, first = drawn_until_, count] {
    auto group = std::make_shared<Group>();
    group->first = first;
    group->slot_rows = plan_.slot_rows;
    for (std::uint64_t k = 0; k < count && !stop_; ++k) {
      const std::span<const std::uint32_t> batch = draws_.draw(first + k, *draw_);
      group->batches.emplace_back(batch.begin(), batch.end());
    }
    return group;
  });
  drawn_until_ += count;
}

void StagedSteps::start_pass() {
  if (ended_ || passing_.valid() || !is_ready(drawing_)) return;
  const auto file = std::ranges::find_if(files_, [](const auto& f) { return f.use_count() == 1; });
  if (file == files_.end()) return;
  std::shared_ptr<Group> group = drawing_.get();
  group->file = *file;
  const BlockedSignals blocked;  // other threads handle signals
  passing_ = std::async(std::launch::async, [this, group = std::move(group)]() mutable {
    if (!copy_rows(*group)) group = nullptr;
    return std::move(group);
  });
  draw_next(drawn_until_);
}

bool StagedSteps::copy_rows(const Group& group, const RowUse* use) {
  return copy_in_one_pass({.from = *train_.rows,
                           .lists = group.batches,
                           .to = *group.file->rows,
                           .slot_rows = group.slot_rows,
                           .chunk_bytes = plan_.chunk_bytes,
                           .use = use,
                           .team = &team_},
                          stop_);
}

void StagedSteps::end_passes() {
  ended_ = true;
  for (std::shared_ptr<File>& file : files_) file.reset();
}

bool StagedSteps::read_all_rows(std::uint64_t step, const Draw& draw, const RowUse& use) {
  if (draw_ || use.multiple * train_.rows->row_bytes() > RowPass::kBlockBytes) return false;
  draw_ = draw;
  draw_next(step, true);
  if (!drawing_.valid()) return false;
  std::shared_ptr<Group> group = drawing_.get();
  group->file = files_.front();
  if (!copy_rows(*group, &use)) {
    group.reset();
    end_passes();  // another pass would fail, too
    return false;
  }
  now_ = std::move(group);
  draw_next(drawn_until_);
  return true;
}

void StagedSteps::use_passed(std::uint64_t step) {
  if (ended_) return;
  if (passing_.valid())
    passing_.wait_for(kWait);
  else if (drawing_.valid())
    drawing_.wait_for(kWait);
  if (!is_ready(passing_)) return;
  std::shared_ptr<Group> group = passing_.get();
  // If the training has already made all steps of the group by reading rows one by one, passes are
  // too slow, and there are no more. There are none after a failed pass either: the steps then read
  // rows one by one, which throws an error if the file cannot be read.
  if (group == nullptr || step >= group->end())
    end_passes();
  else
    now_ = std::move(group);
}

}  // namespace cudp::cpu
