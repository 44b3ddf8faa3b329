#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "runtime/base/busy.hpp"

namespace spdlog {
class logger;
}

namespace cudp {

/// The progress of a training. It has public quantities only.
struct Progress {
  double epoch = 0.0;
  double epochs = 0.0;
  std::uint64_t step = 0;
  std::uint64_t steps = 0;
  std::optional<double> epsilon;  ///< at the last evaluation
  std::optional<double> test_accuracy;
  double examples_per_second = 0.0;
  double seconds_left = 0.0;
};

/// Columns of the terminal that a file is, 80 where it does not say; 0 where it is no terminal.
int terminal_width(int file);

/// "1h 02m", "3m 05s", "12s".
std::string duration_text(double seconds);

/// "epoch 3/40  [==>   ]  step 351/4680  epsilon 0.71 ...", at most `width` columns.
std::string progress_line(const Progress& progress, int width);

/// Tells the user on stderr what happens: log lines, and a progress bar if stderr is a terminal (a
/// line every tenth of the way if not). `quiet` leaves warnings only.
class Reporter {
 public:
  explicit Reporter(bool quiet);
  /// Says nothing to anybody: another process does.
  struct Silent {};
  explicit Reporter(Silent);
  ~Reporter();
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;

  /// Log lines go to this file too, from now on.
  void keep_log(const std::filesystem::path& file);

  void info(const std::string& line);
  void warn(const std::string& line);
  /// Tells the owner alone something private: it goes to the log file, and to stderr only where
  /// that is a terminal and not `quiet`, marked PRIVATE.
  void tell_owner(const std::string& line);
  void progress(const Progress& progress);
  /// Where other work that comes before training shows how far it is: on a terminal that is not to
  /// be quiet.
  Busy::Shown shown_work() const { return quiet_ ? Busy::Shown::never : Busy::Shown::on_terminal; }
  /// A share of something that comes before training, 0 to 1: a bar on a terminal, else nothing.
  void work(const std::string& what, double share);

 private:
  void clear_bar();

  std::shared_ptr<spdlog::logger> log_;
  std::shared_ptr<spdlog::logger> file_log_;  ///< the log file alone; null: none is kept
  bool quiet_;
  bool terminal_;
  bool bar_shown_ = false;
  std::chrono::steady_clock::time_point last_drawn_{};
  int tenths_ = 0;
};

}  // namespace cudp
