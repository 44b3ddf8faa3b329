#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace cudp {

/// Shows on stderr that a computation goes on, once it has taken a while: on a terminal a line that
/// changes and is gone in the end, else a line of log now and then. It has a thread.
class Busy {
 public:
  /// what: the name of the computation, in the line. quiet: nothing is shown.
  explicit Busy(std::string what, bool quiet = false,
                std::chrono::milliseconds patience = std::chrono::seconds(2));
  ~Busy();
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

  /// The share of the work that is done, 0 to 1.
  void done(double share) { share_ = share; }

 private:
  void show();
  bool is_over(std::chrono::milliseconds wait);

  std::string what_;
  std::chrono::milliseconds patience_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::atomic<double> share_ = 0.0;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace cudp
