#pragma once
#include <chrono>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace cudp {

/// Wall and processor time of the phases of a program, for `cudp train --timings`. The main thread
/// is in one phase at a time; work of other threads is listed separately.
class Timings {
 public:
  /// Wall time and processor time. [seconds]
  struct Duration {
    double wall = 0.0;
    double cpu = 0.0;
  };
  struct Phase {
    std::string name;
    Duration spent;
  };

  /// Starts with a phase "program start". Its wall time is set to the processor time that the
  /// process has used, because a program does not know when it was started.
  Timings();
  Timings(const Timings&) = delete;
  Timings& operator=(const Timings&) = delete;
  ~Timings() = default;

  /// Ends the current phase of the main thread and starts another. Durations of phases with the
  /// same name are added. The processor time of a phase includes all threads, and child processes
  /// that ended in it. Called by the main thread only.
  void enter(std::string_view phase);

  /// Adds the duration of work that the calling thread did in parallel to the main thread's phases.
  /// work: name of it. Thread-safe.
  void add_beside(std::string_view work, Duration spent);

  /// Returns the phases so far in the order in which they first began, including the current one.
  std::vector<Phase> phases() const;
  /// Returns the work of other threads, in the order in which it was first added.
  std::vector<Phase> beside() const;

 private:
  Duration spent_in_phase() const;

  std::vector<Phase> phases_;
  std::size_t current_ = 0;
  std::chrono::steady_clock::time_point wall_ = std::chrono::steady_clock::now();
  double cpu_ = 0.0;  ///< processor time of the process when the current phase began

  mutable std::mutex mutex_;  ///< guards beside_
  std::vector<Phase> beside_;
};

/// Measures wall and processor time of the calling thread since construction.
class ThreadClock {
 public:
  ThreadClock();
  Timings::Duration spent() const;

 private:
  std::chrono::steady_clock::time_point wall_ = std::chrono::steady_clock::now();
  double cpu_;
};

/// Returns the lines of a table: a row for each phase and for each work of other threads, and the
/// sum of the phases.
std::vector<std::string> timings_table(const Timings& timings);

}  // namespace cudp
