#pragma once
#include <chrono>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace cudp {

/// Durations of the phases of a program, for `cudp train --timings`. The main thread is in one
/// phase at a time; work of other threads is listed apart.
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

  /// Starts with a phase "program start", which lasts as long as the processor time of the process
  /// so far: a program does not know when it was started.
  Timings();
  Timings(const Timings&) = delete;
  Timings& operator=(const Timings&) = delete;
  ~Timings() = default;

  /// Ends the phase in progress and starts another. Phases of the same name are added up. The
  /// processor time of a phase is that of all threads, and of child processes that ended in it.
  /// Called by the main thread only.
  void enter(std::string_view phase);

  /// Adds work that the calling thread did while the main thread was in its own phases. Any thread
  /// may call it.
  void add_beside(std::string_view work, Duration spent);

  /// Returns the phases so far in the order of their beginnings, including the one in progress.
  std::vector<Phase> phases() const;
  /// Returns the work of other threads in the order of its first end.
  std::vector<Phase> beside() const;

 private:
  Duration spent_in_phase() const;

  std::vector<Phase> phases_;
  std::size_t current_ = 0;
  std::chrono::steady_clock::time_point wall_ = std::chrono::steady_clock::now();
  double cpu_ = 0.0;  ///< processor time of the process when the phase in progress began

  mutable std::mutex mutex_;  ///< guards beside_
  std::vector<Phase> beside_;
};

/// Clock of work in one thread, from its construction on.
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
