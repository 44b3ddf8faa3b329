#pragma once
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "runtime/base/reporter.hpp"

namespace cudp {

/// File with a run's progress for a monitoring system, in the textfile format of Prometheus' node
/// exporter. It has the numbers of the progress bar, which are public. It is replaced at most every
/// second, each time by a complete file.
class MetricsFile {
 public:
  /// run: name of the run, as a label. Throws InputError if the file cannot be written.
  MetricsFile(std::filesystem::path path, const std::string& run, Reporter& reporter);

  void progressed(const Progress& progress);
  void checkpointed();
  /// The training is finished or interrupted.
  void ended();

  /// Returns the content of the file. Times are in seconds since 1970.
  static std::string text(const std::string& run, const Progress& progress, bool running,
                          std::optional<double> checkpoint, double now);

 private:
  void write(bool running);

  std::filesystem::path path_;
  std::string run_;
  Reporter& reporter_;
  Progress progress_;
  std::optional<double> checkpoint_;  ///< time of the last one [s since 1970]
  std::chrono::steady_clock::time_point written_{};
  bool failed_ = false;  ///< the user has been warned
};

}  // namespace cudp
