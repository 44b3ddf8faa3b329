#pragma once
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace cudp {

/// A fixed team of threads that runs numbered tasks. Which thread runs a task is not fixed, so a
/// task must not care: results are made independent of the team's size by numbering the tasks the
/// same way whatever the size is.
class ThreadTeam {
 public:
  /// threads: 0 takes every core this process may use. The caller counts as one of them.
  explicit ThreadTeam(int threads);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls task(index, thread) for index 0..count-1, thread in 0..size()-1, and returns when all
  /// are done. The first exception is rethrown here. Not reentrant.
  void run(std::size_t count, const std::function<void(std::size_t index, int thread)>& task);

 private:
  void work(int thread);
  void take_tasks(int thread);

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable start_;
  std::condition_variable done_;
  const std::function<void(std::size_t, int)>* task_ = nullptr;
  std::size_t count_ = 0;
  std::size_t next_ = 0;
  std::size_t busy_ = 0;
  std::uint64_t round_ = 0;
  bool stop_ = false;
  std::exception_ptr error_;
};

/// Cores this process may use, at least 1.
int available_cores();
/// From now on available_cores() is one of so many equal shares.
void share_cores(int processes);

}  // namespace cudp
