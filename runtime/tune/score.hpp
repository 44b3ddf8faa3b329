#pragma once
#include <optional>
#include <string>

#include "runtime/results/result.hpp"
#include "runtime/tune/request.hpp"

namespace cudp {

/// Score of a training: the larger, the better.
struct Score {
  std::string name;    ///< of the figure, for people
  double value = 0.0;  ///< the figure
  double rank = 0.0;   ///< larger is better; -infinity for a training without a score
};

/// Returns the score of a training. result: nullopt if it was refused. metric: "accuracy",
/// "balanced-accuracy", "auc", ..., or "" for accuracy, which for held-out rows stand for accuracy
/// or balanced accuracy. A target is scored by its RMSE. The score is a function of released
/// figures alone.
Score score_of(const std::optional<RunResult>& result, ScoreRows rows, const std::string& metric);

}  // namespace cudp
