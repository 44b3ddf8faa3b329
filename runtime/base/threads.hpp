#pragma once
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace cudp {

/// A fixed number of threads that run numbered tasks. Results do not depend on the number of
/// threads if two conditions hold: the result of a task does not depend on the thread that runs it,
/// and the caller divides the work into tasks in a way that does not depend on the number of
/// threads.
class ThreadTeam {
 public:
  /// Makes a team. threads: number of threads, including the calling one; 0: one for each core
  /// available to this process.
  explicit ThreadTeam(int threads);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls task(index, thread) for each index from 0 to count - 1; `thread`, from 0 to size() - 1,
  /// is the thread that calls. Returns when all calls have returned. If a task throws, rethrows the
  /// first exception. A task must not call run().
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

/// Returns the number of cores available to this process, at least 1.
int available_cores();
/// Returns the number of cores of this node, including cores that this process may not use.
int cores_of_node();
/// Limits this process to its share of the cores: from now on available_cores() returns the number
/// of cores divided evenly among `processes` processes.
void share_cores(int processes);

}  // namespace cudp
