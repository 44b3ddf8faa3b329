#pragma once
#include <optional>
#include <string>

#include "runtime/results/result.hpp"
#include "runtime/tune/request.hpp"

namespace cudp {

/// Score of a training, by which a tuning chooses the best one.
struct Score {
  std::string name;    ///< name of the figure that is the score, for people
  double value = 0.0;  ///< the figure
  double rank = 0.0;   ///< larger is better; -infinity for a training without a score
};

/// Returns the score of a training. It depends on released figures only. result: nullopt if the
/// training was refused. metric: "accuracy", "balanced-accuracy", "auc", ..., or "" for accuracy.
/// On held-out rows the score is accuracy, or balanced accuracy for any other metric. A regression
/// that lacks the metric is scored by its RMSE.
Score score_of(const std::optional<RunResult>& result, ScoreRows rows, const std::string& metric);

}  // namespace cudp
