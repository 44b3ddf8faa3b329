#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "privacy/certificate/certificate.hpp"
#include "runtime/base/gnuplot.hpp"
#include "runtime/results/holdout_figures.hpp"
#include "runtime/results/metrics.hpp"
#include "runtime/results/released_model.hpp"
#include "runtime/run/folder.hpp"
#include "runtime/training/prepare.hpp"

namespace cudp {

/// Returns the text of NOT-FOR-RELEASE.txt, with the reasons why the run must not be released.
std::string note_of(const std::vector<std::string>& reasons);

/// Writes the results of a run, each file into release/ if it may be published, otherwise into
/// private/: metrics on test rows that are not public, and all results of a run without privacy
/// (release/ then has a note that states so). Draws no pictures of rows held out of the training
/// data, because whether a picture exists could reveal something about these rows.
class Outputs {
 public:
  Outputs(RunFolder folder, const Experiment& experiment);

  /// Writes all settings of the run to config.toml.
  void write_config(const TrainConfig& config) const;
  /// Writes the privacy certificate, privacy.json. Writes nothing if the run has no privacy. If the
  /// certificate states reasons why the run must not be published, other than that it is not
  /// finished, also writes these reasons to NOT-FOR-RELEASE.txt in release/.
  void write_certificate(const privacy::Certificate& certificate) const;
  /// Writes the pages of release/ (report, privacy statement, model card), which are made from this
  /// certificate and the other files in release/. Writes nothing if the run has no privacy. Call it
  /// before write_certificate(): if there is a crash in between, no finished run then has a
  /// certificate but no pages. Returns the pages.
  std::vector<std::filesystem::path> write_pages(const privacy::Certificate& certificate) const;
  /// Writes the lines of metrics so far to metrics.jsonl, without syncing the file to disk, because
  /// the next checkpoint replaces it anyway.
  void write_metrics(const std::vector<MetricsRow>& metrics) const;
  /// Writes all lines of metrics of a complete run. Call it before write_pages(), which reads them;
  /// otherwise a crash could leave pages that do not agree with the metrics file.
  void write_last_metrics(const std::vector<MetricsRow>& metrics) const;
  /// Writes the model, for a model of texts also its vocabulary, and for a model of a table its
  /// schema.
  void write_model(const ReleasedModel& model) const;
  /// Writes the released noisy test results of held-out rows to holdout.json. classes: names of the
  /// classes; empty for a regression model.
  void write_holdout(const HoldoutFigures& figures, const std::vector<std::string>& classes) const;
  /// Writes the evaluation on the test set to evaluation.json, and starts to draw its pictures (ROC
  /// curves etc.). Draws no pictures for held-out rows, or if `pictures` is null.
  void write_evaluation(const Evaluation& evaluation, const std::vector<std::string>& classes,
                        const std::string& title, Pictures* pictures) const;
  /// Returns the lines of metrics without those test metrics that must stay in private/.
  std::vector<MetricsRow> public_part(const std::vector<MetricsRow>& metrics) const;
  /// Starts to draw a picture of test metric and epsilon over epochs. Returns false if there are no
  /// lines of metrics, so that there is nothing to draw.
  bool start_curves(const std::vector<MetricsRow>& metrics, const std::string& model,
                    const privacy::Certificate& certificate, Pictures& pictures) const;

 private:
  /// Path and permissions with which a file is written.
  struct Destination {
    std::filesystem::path path;
    unsigned mode;  ///< permissions of the files
  };
  void write_metrics(Sync sync, const std::vector<MetricsRow>& metrics) const;
  Destination destination(const char* name) const;
  Destination private_destination(const char* name) const { return {folder_.owner(name), 0600}; }

  RunFolder folder_;
  bool gives_privacy_;
  bool has_holdout_;       ///< whether rows are held out; their number may be 0
  bool has_private_test_;  ///< metrics of test rows must stay in private/
  bool test_is_public_;
  /// Key of the metric to draw over epochs, if the user or the schema states one; otherwise "".
  std::string metric_;
};

}  // namespace cudp
