#pragma once
#include <optional>
#include <string>
#include <vector>

#include "privacy/verify/settings.hpp"
#include "runtime/data/schema.hpp"
#include "runtime/report/files.hpp"
#include "runtime/report/run_certificate.hpp"

namespace cudp {

/// What the pages of a run are about, read from its files.
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
  /// Whether figures of test rows are among the rows.
  bool has_figures() const { return !rows.empty() && !rows.back().test.empty(); }
  /// Returns "cnn, dpsgd, on mnist".
  std::string subject() const;
};

/// Throws InputError if a file is damaged.
RunFacts facts_of(const ReportFiles& files);

/// Returns the metric with this key, or the first one of the kind.
const Metric& metric_of(PredictionKind kind, const std::string& key);

/// Returns a metric's name with the word test: "test accuracy".
std::string name_of_test(const Metric& metric);

}  // namespace cudp
