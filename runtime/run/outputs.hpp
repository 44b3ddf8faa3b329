#pragma once
#include <string>
#include <vector>

#include "privacy/certificate/certificate.hpp"
#include "runtime/results/holdout_figures.hpp"
#include "runtime/results/metrics.hpp"
#include "runtime/results/released_model.hpp"
#include "runtime/run/folder.hpp"
#include "runtime/training/prepare.hpp"

namespace cudp {

/// Writes what a run makes for others, and decides where each file goes: into release/, or into
/// private/ where it is not for others. Without privacy all of it is private, and release/ has a
/// note that says so. Accuracies on test rows that are not public are private. Of held-out rows no
/// picture is drawn: whether gnuplot takes their numbers, and which files there are, would tell.
class Outputs {
 public:
  Outputs(RunFolder folder, const Experiment& experiment);

  /// The resolved settings.
  void write_config(const TrainConfig& config) const;
  /// Writes nothing without privacy. Where it says that the run is not for release, for another
  /// reason than that it is not finished, a note in release/ says so too.
  void write_certificate(const privacy::Certificate& certificate) const;
  /// The rows so far.
  void write_metrics(const std::vector<MetricsRow>& metrics) const;
  /// The model, its words where it is of texts, and its schema where it is of a table.
  void write_model(const ReleasedModel& model) const;
  /// What was released of held-out rows. classes: their names.
  void write_holdout(const HoldoutFigures& figures, const std::vector<std::string>& classes) const;
  /// How well the model does on the test set, and pictures of it but for held-out rows. Returns
  /// false where gnuplot is missing or fails.
  bool write_evaluation(const Evaluation& evaluation, const std::vector<std::string>& classes,
                        const std::string& title) const;
  /// Returns false where gnuplot is missing or fails.
  bool draw_curves(const std::vector<MetricsRow>& metrics, const std::string& model,
                   const privacy::Certificate& certificate) const;

 private:
  struct Place {
    std::filesystem::path path;
    unsigned mode;  ///< permissions
  };
  Place place(const char* name) const;
  Place private_place(const char* name) const { return {folder_.owner(name), 0600}; }
  std::vector<MetricsRow> public_part(const std::vector<MetricsRow>& metrics) const;

  RunFolder folder_;
  bool gives_privacy_;
  bool has_holdout_;       ///< of which there may be no rows
  bool has_private_test_;  ///< whose accuracies are kept apart
  bool test_is_public_;
  std::string metric_;  ///< of the curves, as the user or the schema states it; or empty
};

}  // namespace cudp
