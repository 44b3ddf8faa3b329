#include "runtime/device/cpu/rows_ahead.hpp"

#include <utility>

#include "runtime/base/error.hpp"

namespace cudp::cpu {

std::unique_ptr<RowsAhead> RowsAhead::open(const Dataset& train, BatchDraws& draws) {
  if (train.rows == nullptr || train.rows->stays_in_memory()) return nullptr;
  std::unique_ptr<RowReader> reader = RowReader::open(*train.rows);
  if (reader == nullptr) return nullptr;
  return std::unique_ptr<RowsAhead>(new RowsAhead(train, draws, std::move(reader)));
}

RowsAhead::RowsAhead(const Dataset& train, BatchDraws& draws, std::unique_ptr<RowReader> reader)
    : train_(train), draws_(draws), reader_(std::move(reader)) {}

RowsAhead::Step RowsAhead::take(std::uint64_t step, const Draw& draw) {
  ensure(!std::holds_alternative<Candidates>(draw), "candidates depend on norms, which change");
  Batch& now = begin(step, draw);
  begin(step + 1, draw);
  now.step.reset();  // copies are used once
  if (!now.is_read) return {now.drawn, &train_, now.drawn};
  finish(now);
  return {now.drawn, &now.copies.copies(), now.copies.indices()};
}

RowsAhead::Batch& RowsAhead::begin(std::uint64_t step, const Draw& draw) {
  Batch& batch = batches_.at(step % batches_.size());
  if (batch.step == step && batch.draw == draw) return batch;
  if (batch.is_read) finish(batch);
  batch.step.reset();  // what throws here must not leave another step's rows under this step
  const std::span<const std::uint32_t> drawn = draws_.draw(step, draw);
  batch.drawn.assign(drawn.begin(), drawn.end());
  batch.draw = draw;
  if (drawn.size() * train_.rows->row_bytes() <= kMaxBytes) {
    batch.reading.rows = batch.drawn;
    batch.reading.to = batch.copies.fetch_all_but_features(train_, batch.drawn);
    reader_->start(batch.reading);
    batch.is_read = true;
  }
  batch.step = step;
  return batch;
}

void RowsAhead::finish(Batch& batch) {
  batch.is_read = false;
  reader_->wait(batch.reading);
  check_features(train_, batch.reading.to, batch.reading.rows.size());
}

}  // namespace cudp::cpu
