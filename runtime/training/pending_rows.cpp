#include "runtime/training/pending_rows.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "runtime/base/error.hpp"

namespace cudp {
namespace {

template <class Result>
bool is_ready(const std::future<Result>& result) {
  return result.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace

bool PendingRows::Pending::is_known() const {
  return is_ready(epsilon) && (!test.valid() || is_ready(test));
}

void PendingRows::start(std::function<double()> spent) {
  ensure(!started_.valid(), "an epsilon was started for which no row was added");
  const std::size_t max_at_once = std::max(1u, std::thread::hardware_concurrency());
  if (rows_.size() >= max_at_once) rows_[rows_.size() - max_at_once].epsilon.wait();
  started_ = std::async(std::launch::async, std::move(spent));
}

void PendingRows::add(const MetricsRow& row) {
  ensure(started_.valid(), "a row needs an epsilon that was started");
  rows_.push_back({.row = row, .epsilon = std::move(started_), .test = {}});
}

void PendingRows::add(const MetricsRow& row, std::function<Metrics()> test) {
  add(row);
  rows_.back().test = std::async(std::launch::async, std::move(test));
}

MetricsRow PendingRows::take_first() {
  Pending first = std::move(rows_.front());
  rows_.pop_front();
  first.row.epsilon = first.epsilon.get();
  if (first.test.valid()) first.row.test = first.test.get();
  return first.row;
}

std::vector<MetricsRow> PendingRows::known() {
  std::vector<MetricsRow> rows;
  while (!rows_.empty() && rows_.front().is_known()) rows.push_back(take_first());
  return rows;
}

std::vector<MetricsRow> PendingRows::all() {
  std::vector<MetricsRow> rows;
  while (!rows_.empty()) rows.push_back(take_first());
  return rows;
}

}  // namespace cudp
