#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/threads.hpp"
#include "runtime/results/scorer.hpp"

namespace cudp {

/// How a file of predictions is written.
struct PredictionFormat {
  Loss loss = Loss::logistic;
  int outputs = 1;                     ///< of the network
  std::vector<std::string> classes{};  ///< their names; empty: numbers
  bool ids = false;                    ///< a row begins with its id, else with its number from 1
  /// The second of two classes is predicted where its probability is at least this; empty: where it
  /// is the larger.
  std::optional<double> threshold{};
  TargetBounds target{};  ///< of a model whose loss has a target
};

/// Writes predictions as CSV: a header, then a line a row:
///   id or row, prediction, p_CLASS of each class
/// A probability is the shortest text that reads back as the same float. A model whose loss is
/// hinge gives no probabilities: the column `margin`, above 0 for the second class, takes their
/// place. Of a target the prediction is the number, in the target's own unit and within its bounds.
class PredictionWriter {
 public:
  /// threads: as ThreadTeam has it. Throws InputError where a threshold is given and there are not
  /// two classes with probabilities.
  PredictionWriter(PredictionFormat format, int threads);

  std::string header() const;
  /// The lines of the block, in order. Throws InputError, naming the row of `data_name`, where the
  /// model gave no finite number.
  std::string lines(const ScoredBlock& block, const std::string& data_name);

 private:
  void append_lines(const ScoredBlock& block, std::size_t begin, std::size_t end,
                    std::string& to) const;

  PredictionFormat format_;
  std::vector<std::string> cells_;  ///< of the classes' names, quoted where need be
  ThreadTeam team_;
  std::vector<std::string> parts_;
};

/// A text as a cell of CSV: in quotes where it holds a comma, a quote, a line's end, or blanks at
/// an end.
std::string csv_cell(std::string_view text);

}  // namespace cudp
