#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/safetensors.hpp"
#include "runtime/results/metrics.hpp"

namespace cudp {

// Names of the pages in release/.
inline constexpr const char* kReportPage = "report.html";   ///< the run's report
inline constexpr const char* kPrivacyText = "PRIVACY.txt";  ///< the privacy statement
inline constexpr const char* kModelCard = "README.md";      ///< the model card

/// Contents of the files of a run from which its report pages (report, privacy statement, model
/// card) are made. The text of a file that does not exist is empty.
struct ReportFiles {
  std::string certificate;          ///< privacy.json; empty if the run has no privacy
  std::string settings;             ///< config.toml
  std::string metrics;              ///< metrics.jsonl
  std::string holdout;              ///< holdout.json
  std::string schema;               ///< schema.toml
  std::optional<TensorFile> model;  ///< names, shapes and metadata of model.safetensors, no values
  /// Whether `metrics` is the content of private/metrics.jsonl, which has exact metrics of private
  /// test rows. No privacy budget covers these, so they must not be published.
  bool has_unpaid = false;
};

/// Reads the files of a run from its folder `release`, which is safe to publish. Throws InputError
/// if a file exists but cannot be read.
ReportFiles read_release_files(const std::filesystem::path& release);

/// Reads the files of a run from its folder. If a file is in private/, it is used instead of the
/// file of the same name in release/. Throws InputError if a file exists but cannot be read.
ReportFiles read_run_files(const std::filesystem::path& run);

/// Returns the parsed lines of a run's metrics file. files: contents of the run's files. Throws
/// InputError if the text is damaged.
std::vector<MetricsRow> rows_of(const ReportFiles& files);

}  // namespace cudp
