#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "runtime/base/busy.hpp"
#include "runtime/base/timings.hpp"

namespace spdlog {
class logger;
}

namespace cudp {

/// Progress of a training run, for a progress bar. Public quantities only.
struct Progress {
  double epoch = 0.0;
  double epochs = 0.0;
  std::uint64_t step = 0;
  std::uint64_t steps = 0;
  /// Epsilon spent at the last evaluation; nullopt if it is not known.
  std::optional<double> epsilon;
  std::optional<double> test_accuracy;
  double examples_per_second = 0.0;
  double seconds_left = 0.0;
};

/// Returns the width of a terminal, given its file descriptor [columns]: 80 if the terminal does
/// not state it, 0 if the file is not a terminal.
int terminal_width(int file);

/// Returns a duration as text: "1h 02m", "3m 05s", "12s".
std::string duration_text(double seconds);

/// Returns the line of a progress bar, at most `width` columns: "epoch 3/40  [==>   ]  step
/// 351/4680  epsilon 0.71 ...".
std::string progress_line(const Progress& progress, int width);
/// Returns the progress of a training as a line for a log file: progress_line() without the bar.
std::string progress_text(const Progress& progress);

/// Form of log lines: plain text, or a JSON object with time, level and message.
enum class LogForm { text, json };

/// Returns a log message as JSON in one line, without a line break: {"time":
/// "2026-01-31T12:00:00Z", "level": "info", "message": "..."}. The time is the current one. level:
/// info, warning or error.
std::string json_log_line(const std::string& level, const std::string& message);

/// Returns whether text written to this file descriptor may have colours: the file must be a
/// terminal, and the environment variable NO_COLOR must be unset or empty.
bool may_colour(int file);

/// Reports to the user on stderr: log lines, and the progress of the training. Progress is a bar if
/// stderr is a terminal, otherwise a line for every tenth of the training. A quiet reporter prints
/// warnings only. With JSON log lines there is no progress bar.
class Reporter {
 public:
  explicit Reporter(bool quiet, LogForm form = LogForm::text);
  /// Type of an argument that selects the constructor of a reporter which prints nothing. Used if
  /// another process (rank) reports.
  struct Silent {};
  explicit Reporter(Silent);
  ~Reporter();
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;

  /// Sets a log file, to which all log lines, but no progress bars, are also written from now on.
  void keep_log(const std::filesystem::path& file);

  /// Returns whether info() prints on stderr. If false, its lines are written to the log file only.
  bool prints_info() const { return !quiet_; }
  void info(const std::string& line);
  void warn(const std::string& line);
  /// Reports a line that depends on private data, marked PRIVATE, to the run's owner only. Writes
  /// it to the log file, which only the owner can read, and also to stderr if that is a terminal
  /// and the reporter is not quiet.
  void report_to_owner(const std::string& line);
  /// Writes the error message with which the program ends to the log file, but not to stderr, where
  /// the program prints it anyway.
  void log_end(const std::string& line);
  void progress(const Progress& progress);
  /// Returns whether and where the progress of work before the training, such as reading a file,
  /// may be shown: on a terminal only, because it may depend on private data; nowhere if the
  /// reporter is quiet.
  Busy::Shown shown_work() const {
    return has_bar() ? Busy::Shown::on_terminal : Busy::Shown::never;
  }
  /// Shows the progress of work before the training as a bar, if stderr is a terminal. what:
  /// description of the work. share: fraction that is done, 0 to 1.
  void work(const std::string& what, double share);
  /// Returns the object that measures the durations of the program's phases.
  Timings& timings() { return *timings_; }
  /// Returns the object of timings(), as a shared pointer for a thread that may outlive the
  /// reporter.
  std::shared_ptr<Timings> shared_timings() const { return timings_; }
  /// Reports the duration of each phase of the program. are_public: whether everyone who can read
  /// stderr may see them; if false, they are reported to the run's owner only (report_to_owner).
  void show_timings(bool are_public);

 private:
  enum class Level { info, warning, error };
  void to_stderr(Level level, const std::string& line);
  void to_file(Level level, const std::string& line);
  bool has_bar() const { return terminal_ && !quiet_ && form_ == LogForm::text; }
  void clear_bar();

  LogForm form_;
  std::shared_ptr<spdlog::logger> log_;  ///< logger that writes to stderr
  /// Logger that writes to the log file; null if there is none.
  std::shared_ptr<spdlog::logger> file_log_;
  bool quiet_;
  bool terminal_;
  bool bar_shown_ = false;
  std::chrono::steady_clock::time_point last_drawn_{};
  int tenths_ = 0;
  std::shared_ptr<Timings> timings_ = std::make_shared<Timings>();
};

}  // namespace cudp
