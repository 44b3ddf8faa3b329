#pragma once
#include <optional>
#include <string>

#include "runtime/results/result.hpp"
#include "runtime/tune/request.hpp"

namespace cudp {

/// Score of a training, by which a tuning chooses the best of its trainings.
struct Score {
  std::string name;    ///< name of the metric that is the score, for people
  double value = 0.0;  ///< value of that metric
  double rank = 0.0;   ///< larger is better; -infinity for a training without a score
};

/// Returns the score of a training. The score depends on public and released numbers only. result:
/// result of the training; nullopt if it could not train within its budget. rows: the rows on which
/// trainings are scored. metric: "accuracy", "balanced-accuracy", "auc", ..., or "" for accuracy.
/// On held-out rows the score is accuracy if `metric` is accuracy or "", and balanced accuracy for
/// any other metric. If the training does not have that metric, its score is the first metric of
/// its kind of prediction: accuracy, or RMSE for a regression model.
Score score_of(const std::optional<RunResult>& result, ScoreRows rows, const std::string& metric);

}  // namespace cudp
