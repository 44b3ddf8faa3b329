#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace cudp {

/// Shows on stderr that a computation goes on, once it has taken a while: on a terminal a line that
/// changes and is gone in the end, else a line of log now and then. It has a thread, unless nothing
/// will be shown.
class Busy {
 public:
  /// Where the line is shown. What depends on private rows, such as the share of a file that has
  /// been read, is for a terminal alone.
  enum class Shown { never, on_terminal, always };

  /// what: the name of the computation, in the line.
  explicit Busy(std::string what, Shown where = Shown::always,
                std::chrono::milliseconds patience = std::chrono::seconds(2));
  ~Busy();
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

  /// The share of the work that is done, 0 to 1; 0 where it is not known. Any thread may call it.
  void done(double share) { share_ = share; }
  /// The line as it is at this moment: "reading 'a.csv': 40 % after 3 s".
  std::string line();
  /// Starts the next part of the computation, under another name. Any thread may call it.
  void next(std::string what);

 private:
  void show();
  bool is_over(std::chrono::milliseconds wait);

  std::string what_;  ///< guarded by mutex_
  std::chrono::milliseconds patience_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::atomic<double> share_ = 0.0;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace cudp
