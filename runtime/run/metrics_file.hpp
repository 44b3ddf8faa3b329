#pragma once
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "runtime/base/reporter.hpp"

namespace cudp {

/// Writes a run's progress to a file for a monitoring system, in the textfile format of Prometheus'
/// node exporter. The file has the numbers that the progress bar shows (step, epsilon, ...), which
/// are public. It is replaced atomically, at most once a second.
class MetricsFile {
 public:
  /// Writes the first content of the file. path: path of the file. run: name of the run, with which
  /// each number in the file is labelled. Throws InputError if the file cannot be written.
  MetricsFile(std::filesystem::path path, const std::string& run, Reporter& reporter);

  void progressed(const Progress& progress);
  void checkpointed();
  /// Updates the file when the training is finished or interrupted: it then states that no training
  /// is running.
  void ended();

  /// Returns the content of the file for a run. running: whether the training is in progress.
  /// checkpoint: time of the last checkpoint; nullopt if there is none. now: the current time.
  /// Times are in seconds since 1970.
  static std::string text(const std::string& run, const Progress& progress, bool running,
                          std::optional<double> checkpoint, double now);

 private:
  void write(bool running);

  std::filesystem::path path_;
  std::string run_;
  Reporter& reporter_;
  Progress progress_;
  std::optional<double> checkpoint_;  ///< time of the last checkpoint [s since 1970]
  std::chrono::steady_clock::time_point written_{};
  bool failed_ = false;  ///< whether the user has been warned of a failed write
};

}  // namespace cudp
