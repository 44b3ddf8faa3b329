#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace cudp {

/// Indicator on stderr that a long computation is in progress. On a terminal it is a line that
/// changes and is removed at the end; otherwise it is an occasional log line. A thread of its own
/// shows it (none is started if it must not be shown, see Shown).
class Busy {
 public:
  /// Where the indicator may be shown. A text that depends on private rows, such as the fraction of
  /// a file that has been read, may be shown on a terminal only, because others may read a log
  /// file.
  enum class Shown { never, on_terminal, always };

  /// Starts to measure the duration of the computation. Also starts the indicator's thread, unless
  /// `where` is `never`, or is `on_terminal` and stderr is not a terminal. what: description of the
  /// computation, shown in the indicator. where: whether and where the indicator may be shown.
  /// patience: time until the indicator is first shown.
  explicit Busy(std::string what, Shown where = Shown::always,
                std::chrono::milliseconds patience = std::chrono::seconds(2));
  ~Busy();
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

  /// Sets the fraction of the work that is done, 0 to 1; 0: unknown. Thread-safe.
  void done(double share) { share_ = share; }
  /// Returns the current text of the indicator: "reading 'a.csv': 40 % after 3 s".
  std::string line();
  /// Starts the next part of the computation. what: its description. Thread-safe.
  void next(std::string what);

 private:
  void show();
  bool is_over(std::chrono::milliseconds wait);

  std::string what_;  ///< description of the computation; guarded by mutex_
  std::chrono::milliseconds patience_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::atomic<double> share_ = 0.0;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace cudp
