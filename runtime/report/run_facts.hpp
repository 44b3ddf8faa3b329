#pragma once
#include <optional>
#include <string>
#include <vector>

#include "privacy/verify/settings.hpp"
#include "runtime/data/schema.hpp"
#include "runtime/report/files.hpp"
#include "runtime/report/run_certificate.hpp"

namespace cudp {

/// Content of a run's files, parsed, from which its report and model card are made.
struct RunFacts {
  std::optional<RunCertificate> certificate;  ///< empty without privacy
  verify::Settings settings{""};
  std::vector<MetricsRow> rows;
  std::optional<TableSchema> schema;
  std::string dataset;
  std::string model;   ///< name of the network; empty if nothing was trained
  std::string metric;  ///< key of the metric that is shown first
  bool has_unpaid = false;

  /// Returns the value of a setting of the run as text; "" if it is not set. key: the setting's key
  /// in config.toml.
  std::string setting(const char* key) const;
  bool is_private() const { return certificate.has_value(); }
  /// Returns whether the last line of metrics has metrics of test rows.
  bool has_figures() const { return !rows.empty() && !rows.back().test.empty(); }
  /// Returns the run's model, training method and data set as text: "cnn, dpsgd, on mnist".
  std::string subject() const;
};

/// Parses the contents of a run's files. Throws InputError if a file is damaged.
RunFacts facts_of(const ReportFiles& files);

/// Returns the metric with this key (its name in files); if there is none, the first metric for
/// this kind of prediction: accuracy, or RMSE.
const Metric& metric_of(PredictionKind kind, const std::string& key);

/// Returns the name of a metric for readers, beginning with the word test: "test accuracy".
std::string name_of_test(const Metric& metric);

}  // namespace cudp
