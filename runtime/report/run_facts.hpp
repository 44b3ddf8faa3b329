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

  /// Returns the text of a setting; empty if it is not set.
  std::string setting(const char* key) const;
  bool is_private() const { return certificate.has_value(); }
  /// Returns whether the last line of metrics has figures of test rows.
  bool has_figures() const { return !rows.empty() && !rows.back().test.empty(); }
  /// Returns model, method and data set as text: "cnn, dpsgd, on mnist".
  std::string subject() const;
};

/// Parses the files of a run. Throws InputError if one is damaged.
RunFacts facts_of(const ReportFiles& files);

/// Returns the metric with this key; if there is none, the first metric of the kind.
const Metric& metric_of(PredictionKind kind, const std::string& key);

/// Returns a metric's name with the word test: "test accuracy".
std::string name_of_test(const Metric& metric);

}  // namespace cudp
