#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/safetensors.hpp"
#include "runtime/results/metrics.hpp"

namespace cudp {

// Names of the pages in release/.
inline constexpr const char* kReportPage = "report.html";
inline constexpr const char* kPrivacyText = "PRIVACY.txt";
inline constexpr const char* kModelCard = "README.md";

/// Contents of the files of a run from which its report pages are made. The text of a file that
/// does not exist is empty.
struct ReportFiles {
  std::string certificate;          ///< privacy.json; empty without privacy
  std::string settings;             ///< config.toml
  std::string metrics;              ///< metrics.jsonl
  std::string holdout;              ///< holdout.json
  std::string schema;               ///< schema.toml
  std::optional<TensorFile> model;  ///< names, shapes and metadata of model.safetensors, no values
  /// Whether `metrics` is private/metrics.jsonl, whose exact figures of private test rows no budget
  /// covers.
  bool has_unpaid = false;
};

/// Reads the files in a release folder. Throws InputError if one cannot be read.
ReportFiles read_release_files(const std::filesystem::path& release);

/// Reads the files of a run's folder. Those of private/ replace those of release/. Throws
/// InputError if one cannot be read.
ReportFiles read_run_files(const std::filesystem::path& run);

/// Returns the lines of metrics.jsonl. Throws InputError if the text is damaged.
std::vector<MetricsRow> rows_of(const ReportFiles& files);

}  // namespace cudp
