#include "runtime/base/threads.hpp"

#include <algorithm>

#include <sched.h>
#include <unistd.h>

namespace cudp {
namespace {

int cores_of_process() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  const unsigned n = std::thread::hardware_concurrency();
  return n > 0 ? static_cast<int>(n) : 1;
}

int shares = 1;

}  // namespace

int available_cores() { return std::max(cores_of_process() / shares, 1); }

int cores_of_node() { return std::max(1, static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN))); }

void share_cores(int processes) { shares = processes; }

ThreadTeam::ThreadTeam(int threads) {
  const int n = threads > 0 ? threads : available_cores();
  for (int t = 1; t < n; ++t) workers_.emplace_back([this, t] { work(t); });
}

ThreadTeam::~ThreadTeam() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  start_.notify_all();
  for (std::thread& w : workers_) w.join();
}

void ThreadTeam::run(std::size_t count, const std::function<void(std::size_t, int)>& task) {
  if (count == 0) return;
  if (workers_.empty() || count == 1) {
    for (std::size_t i = 0; i < count; ++i) task(i, 0);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    task_ = &task;
    count_ = count;
    next_ = 0;
    busy_ = workers_.size();
    error_ = nullptr;
    ++round_;
  }
  start_.notify_all();
  take_tasks(0);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return busy_ == 0; });
  if (error_) std::rethrow_exception(error_);
}

void ThreadTeam::work(int thread) {
  std::uint64_t seen = 0;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      start_.wait(lock, [&] { return stop_ || round_ != seen; });
      if (stop_) return;
      seen = round_;
    }
    take_tasks(thread);
    {
      const std::lock_guard lock(mutex_);
      --busy_;
    }
    done_.notify_one();
  }
}

void ThreadTeam::take_tasks(int thread) {
  for (;;) {
    std::size_t index = 0;
    {
      const std::lock_guard lock(mutex_);
      if (error_ || next_ == count_) return;
      index = next_++;
    }
    try {
      (*task_)(index, thread);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }
}

}  // namespace cudp
