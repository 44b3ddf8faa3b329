#pragma once
#include <chrono>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace cudp {

/// Wall time and processor time of the phases of a program (such as reading data, training), for
/// `cudp train --timings`. The main thread is always in one phase. Work that other threads do at
/// the same time is listed separately.
class Timings {
 public:
  /// Wall time and processor time [seconds].
  struct Duration {
    double wall = 0.0;
    double cpu = 0.0;
  };
  /// A phase of the program, or the work of another thread, and how long it took.
  struct Phase {
    std::string name;
    Duration spent;
  };

  /// Begins the phase "program start". The process has already run for a time that it does not
  /// know. The processor time used so far stands for it: the phase's wall time starts at this
  /// value, not at 0.
  Timings();
  Timings(const Timings&) = delete;
  Timings& operator=(const Timings&) = delete;
  ~Timings() = default;

  /// Ends the current phase of the main thread and begins the phase with this name. If a phase of
  /// the same name ended before, durations are added. The processor time of a phase includes all
  /// threads, and child processes that ended during the phase. Must be called by the main thread.
  void enter(std::string_view phase);

  /// Adds the duration of work that the calling thread has done in parallel to the main thread's
  /// phases. work: name of the work. Thread-safe.
  void add_beside(std::string_view work, Duration spent);

  /// Returns the main thread's phases so far, the current one included, in the order in which they
  /// first began.
  std::vector<Phase> phases() const;
  /// Returns the work that other threads have done in parallel to the main thread (add_beside()),
  /// in the order in which it was first added.
  std::vector<Phase> beside() const;

 private:
  Duration spent_in_phase() const;

  std::vector<Phase> phases_;
  std::size_t current_ = 0;
  std::chrono::steady_clock::time_point wall_ = std::chrono::steady_clock::now();
  double cpu_ = 0.0;  ///< processor time that the process had used when the current phase began

  mutable std::mutex mutex_;  ///< guards beside_
  std::vector<Phase> beside_;
};

/// Measures the wall time and the processor time of the calling thread from its construction on.
class ThreadClock {
 public:
  ThreadClock();
  Timings::Duration spent() const;

 private:
  std::chrono::steady_clock::time_point wall_ = std::chrono::steady_clock::now();
  double cpu_;
};

/// Returns the lines of a table with wall and processor time: a line for each phase, a line for
/// each kind of work of other threads, and a line for the sum of the phases.
std::vector<std::string> timings_table(const Timings& timings);

}  // namespace cudp
