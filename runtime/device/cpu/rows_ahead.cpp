#include "runtime/device/cpu/rows_ahead.hpp"

#include <numeric>
#include <utility>

#include "runtime/base/error.hpp"

namespace cudp::cpu {

std::unique_ptr<RowsAhead> RowsAhead::open(const Dataset& train, BatchDraws& draws,
                                           const EngineSettings& settings,
                                           const StageLimits& limits) {
  if (train.rows == nullptr || train.rows->stays_in_memory()) return nullptr;
  std::unique_ptr<RowReader> reader = RowReader::open(*train.rows);
  if (reader == nullptr) return nullptr;
  return std::unique_ptr<RowsAhead>(
      new RowsAhead(train, draws, std::move(reader), StagedSteps::open(train, settings, limits)));
}

RowsAhead::RowsAhead(const Dataset& train, BatchDraws& draws, std::unique_ptr<RowReader> reader,
                     std::unique_ptr<StagedSteps> staged)
    : train_(train),
      draws_(draws),
      batches_(1 + (staged != nullptr ? staged->plan().ahead : StagePlan{}.ahead)),
      reader_(std::move(reader)),
      staged_(std::move(staged)) {}

/// Releases the groups of steps that the batches keep alive, and with them the readers of their
/// files, before the batches are destroyed. Reads in progress may still write to a batch.
RowsAhead::~RowsAhead() {
  for (Batch& batch : batches_) batch.staged.reset();
}

RowsAhead::Step RowsAhead::take(std::uint64_t step, const Draw& draw) {
  ensure(!std::holds_alternative<Candidates>(draw), "candidates depend on norms, which change");
  Batch& now = begin(step, draw);
  for (std::uint64_t next = step + 1; next < step + batches_.size(); ++next) begin(next, draw);
  now.step.reset();  // copies are used once
  if (!now.is_read) return {now.drawn, &train_, now.drawn};
  finish(now);
  return {now.drawn, &now.copies.copies(), now.copies.indices()};
}

RowsAhead::Batch& RowsAhead::begin(std::uint64_t step, const Draw& draw) {
  Batch& batch = batches_.at(step % batches_.size());
  if (batch.step == step && batch.draw == draw) return batch;
  if (batch.is_read) finish(batch);
  batch.step.reset();  // if a call below throws, old rows must not look like this step's
  this->draw(batch, step, draw);
  batch.draw = draw;
  if (batch.drawn.size() * train_.rows->row_bytes() <= kMaxBytes) {
    batch.reading.to = batch.copies.fetch_all_but_features(train_, batch.drawn);
    batch.reader->start(batch.reading);
    batch.is_read = true;
  }
  batch.step = step;
  return batch;
}

void RowsAhead::draw(Batch& batch, std::uint64_t step, const Draw& draw) {
  batch.staged = staged_ != nullptr ? staged_->find(step, draw) : nullptr;
  if (batch.staged != nullptr) {
    const std::span<const std::uint32_t> drawn = batch.staged->batch(step);
    batch.drawn.assign(drawn.begin(), drawn.end());
    batch.staged_rows.resize(drawn.size());
    std::iota(batch.staged_rows.begin(), batch.staged_rows.end(),
              static_cast<std::uint32_t>(batch.staged->first_row(step)));
    batch.reader = batch.staged->file->reader.get();
    batch.reading.rows = batch.staged_rows;
    ++staged_batches_;
  } else {
    const std::span<const std::uint32_t> drawn = draws_.draw(step, draw);
    batch.drawn.assign(drawn.begin(), drawn.end());
    batch.reader = reader_.get();
    batch.reading.rows = batch.drawn;
  }
}

void RowsAhead::finish(Batch& batch) {
  batch.is_read = false;
  batch.reader->wait(batch.reading);
  batch.staged.reset();
  check_features(train_, batch.reading.to, batch.reading.rows.size());
}

}  // namespace cudp::cpu
