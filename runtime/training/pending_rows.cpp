#include "runtime/training/pending_rows.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "runtime/base/error.hpp"

namespace cudp {
namespace {

template <class Result>
bool is_ready(const std::future<Result>& result) {
  return result.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace

KeptThreads::~KeptThreads() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  is_work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void KeptThreads::start(std::function<void()> work) {
  const std::size_t max_threads = std::max(kMinThreads, 2 * std::thread::hardware_concurrency());
  bool is_idle = false;
  {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
    is_idle = idle_ >= work_.size();
  }
  if (is_idle || threads_.size() >= max_threads)
    is_work_.notify_one();
  else
    threads_.emplace_back([this] { call_all(); });
}

void KeptThreads::call_all() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    is_work_.wait(lock, [this] { return ends_ || !work_.empty(); });
    --idle_;
    if (work_.empty()) return;
    const std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    work();
    lock.lock();
  }
}

template <class Result>
std::future<Result> PendingRows::in_thread(std::function<Result()> work) {
  const auto task = std::make_shared<std::packaged_task<Result()>>(std::move(work));
  threads_.start([task] { (*task)(); });
  return task->get_future();
}

bool PendingRows::Pending::is_known() const {
  return is_ready(epsilon) && (!test.valid() || is_ready(test));
}

void PendingRows::start(std::function<double()> spent) {
  ensure(!started_.valid(), "an epsilon was started for which no row was added");
  const std::size_t max_at_once = std::max(1u, std::thread::hardware_concurrency());
  if (rows_.size() >= max_at_once) rows_[rows_.size() - max_at_once].epsilon.wait();
  started_ = in_thread(std::move(spent));
}

void PendingRows::add(const MetricsRow& row) {
  ensure(started_.valid(), "a row needs an epsilon that was started");
  rows_.push_back({.row = row, .epsilon = std::move(started_), .test = {}});
}

void PendingRows::add(const MetricsRow& row, std::function<Metrics()> test) {
  add(row);
  rows_.back().test = in_thread(std::move(test));
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
