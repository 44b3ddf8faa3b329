#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/threads.hpp"
#include "runtime/results/scorer.hpp"

namespace cudp {

/// The format of a file of predictions: its columns, the names of classes, and the threshold on the
/// probability of the second class.
struct PredictionFormat {
  Loss loss = Loss::logistic;
  int outputs = 1;                     ///< number of outputs of the network
  std::vector<std::string> classes{};  ///< names of the classes; empty to write their numbers
  bool ids = false;  ///< whether the first column is the row's id; otherwise its number, from 1
  /// Probability from which the second of two classes is predicted; empty to predict the more
  /// probable class.
  std::optional<double> threshold{};
  TargetBounds target{};  ///< bounds of the target, for models that predict one
};

/// Writes predictions as CSV: a header, then a line per row:
///   id or row, prediction, p_CLASS of each class
/// A probability is written as the shortest text that reads back as the same float. Hinge loss
/// gives no probabilities: instead there is a column `margin`, above 0 for the second class. A
/// regression model's prediction is a number in the target's unit, within its bounds.
class PredictionWriter {
 public:
  /// Makes a writer. threads: number of threads that format lines; 0 for all cores. Throws
  /// InputError if a threshold is given and the model does not predict two classes with
  /// probabilities.
  PredictionWriter(PredictionFormat format, int threads);

  std::string header() const;
  /// Returns the CSV lines of the block's rows, in order. data_name: name of the rows' file, for
  /// messages. Throws InputError, with the number of the row, if an output of the model is NaN or
  /// infinite.
  std::string lines(const ScoredBlock& block, const std::string& data_name);

 private:
  void append_lines(const ScoredBlock& block, std::size_t begin, std::size_t end,
                    std::string& to) const;

  PredictionFormat format_;
  std::vector<std::string> cells_;  ///< names of the classes as CSV cells
  ThreadTeam team_;
  std::vector<std::string> parts_;
};

/// Returns a text as a CSV cell. Quotes it if it contains a comma, a quote or a line break, or
/// begins or ends with a blank.
std::string csv_cell(std::string_view text);

}  // namespace cudp
