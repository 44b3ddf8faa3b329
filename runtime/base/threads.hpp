#pragma once
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace cudp {

/// Team of a fixed number of threads that runs numbered tasks. Any thread may run a task, so the
/// result of a task must not depend on the thread. Results do not depend on the size of the team if
/// the caller numbers the tasks in the same way for all sizes.
class ThreadTeam {
 public:
  /// threads: size of the team, including the calling thread; 0 for all cores available to this
  /// process.
  explicit ThreadTeam(int threads);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls task(index, thread) for index 0..count-1, thread in 0..size()-1, and returns when all
  /// are done. Rethrows the first exception of a task. Not reentrant.
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
/// Returns the number of cores of this node, whatever this process may use.
int cores_of_node();
/// Divides the cores evenly among this number of processes: available_cores() returns one share
/// from now on.
void share_cores(int processes);

}  // namespace cudp
