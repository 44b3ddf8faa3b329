#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/layers/kinds.hpp"
#include "runtime/data/target.hpp"
#include "runtime/results/predictions.hpp"

namespace cudp {

/// A point of a ROC curve: the shares of the other classes, and of the class, that are let through.
struct RocPoint {
  double false_positives = 0.0;
  double true_positives = 0.0;
};

/// How well predictions fit targets, in the targets' own unit. What is not defined is NaN.
struct TargetErrors {
  double rmse = 0.0;  ///< root of the mean squared error
  double mae = 0.0;   ///< mean absolute error
  /// 1 - the mean squared error over that of always saying the mean of these targets; not defined
  /// where all are the same.
  double r2 = 0.0;
  double mean_baseline_rmse = 0.0;  ///< of always saying that mean
};

/// How well predictions fit labels: every number, table and curve that is shown of a test set. A
/// number that is not defined (AUC of one class, precision of a class that is never predicted) is
/// NaN, and so is one that logits made NaN. A prediction that is none (predicted_class) is wrong.
struct Evaluation {
  Loss loss = Loss::softmax_cross_entropy;
  int classes = 0;  ///< 1: there are targets, and nothing below but `examples` and `target`
  std::uint64_t examples = 0;
  TargetErrors target = {};

  double accuracy = 0.0;
  double mean_loss = 0.0;  ///< of the network's loss: log loss, but for hinge
  /// The accuracy of always predicting the class that is most frequent in these examples, the first
  /// of equals, and that class.
  double majority_baseline = 0.0;
  int majority_class = 0;
  /// The log loss of predicting the shares that classes have in these examples; NaN for hinge.
  double log_loss_of_class_shares = 0.0;
  double balanced_accuracy = 0.0;  ///< mean recall of the classes that occur
  /// Area under the ROC curve, ties counted half: of the second class where there are two; else the
  /// mean over the classes, each against all others, that occur and are not all. Logits that are
  /// NaN lose against all. NaN beyond kMaxScores.
  double auc = 0.0;
  /// Expected calibration error: the mean, weighted by examples, over `reliability` of
  /// |share - confidence|; NaN for hinge.
  double calibration_error = 0.0;

  struct OfClass {
    std::uint64_t examples = 0;   ///< of the class
    std::uint64_t predicted = 0;  ///< as the class
    double precision = 0.0;
    double recall = 0.0;
    double f1 = 0.0;
    std::vector<RocPoint> roc;  ///< thinned; empty where not defined, and of the first of two
  };
  std::vector<OfClass> of_class;         ///< [classes]
  std::vector<std::uint64_t> confusion;  ///< [classes, classes]: rows the label, columns predicted

  /// The examples whose p is in one of kBins equal intervals of 0 to 1: of two classes p of the
  /// second, and the share of the second among them; of more the largest p, and the share right.
  struct Bin {
    std::uint64_t examples = 0;
    double confidence = 0.0;  ///< mean
    double share = 0.0;
  };
  static constexpr int kBins = 15;
  std::vector<Bin> reliability;  ///< [kBins]; empty for hinge

  /// Scores, of one class where there are two, that are kept for AUC: 128 MiB.
  static constexpr std::size_t kMaxScores = std::size_t{1} << 25;
};

/// Evaluates predictions that come block by block. Of an example it keeps the label and a score a
/// class (one where there are two), for AUC; all else is counted as it comes.
class Evaluator {
 public:
  /// outputs: of the network; bounds: of its targets.
  Evaluator(Loss loss, int outputs, const TargetBounds& bounds = {});

  /// Throws Error where the block is of another loss or number of outputs.
  void add(const Predictions& block);
  /// Adds one example of the block.
  void add(const Predictions& block, std::size_t example);
  Evaluation evaluation() const;

 private:
  struct Sum {
    std::uint64_t examples = 0;
    double confidence = 0.0;
    std::uint64_t hits = 0;
  };

  void add_class(const float* logits, std::uint8_t label);
  void add_target(float output, float target);
  TargetErrors target_errors() const;
  void add_score(const float* logits, std::uint8_t label);
  void calibrate(int predicted, std::uint8_t label);
  void rank(Evaluation& e) const;

  Loss loss_;
  int outputs_;
  TargetBounds bounds_;
  int classes_;
  std::size_t scores_per_example_;
  std::uint64_t examples_ = 0;
  double loss_sum_ = 0.0;
  double loss_of_block_ = 0.0;            ///< of the last examples, fewer than a block
  std::vector<std::uint64_t> confusion_;  ///< [classes, classes + 1]: the last has no prediction
  std::vector<Sum> bins_;
  bool not_a_number_ = false;         ///< some probability
  std::vector<float> probabilities_;  ///< of the example at hand
  std::vector<float> scores_;         ///< [examples, scores_per_example_]
  std::vector<std::uint8_t> labels_;  ///< [examples]
  bool keeps_scores_ = true;

  /// Of predictions and targets in the targets' unit: sums for means and variances (Welford 1962),
  /// whose rounding does not grow with the mean.
  struct TargetSums {
    double squares = 0.0;      ///< of prediction - target
    double distances = 0.0;    ///< |prediction - target|
    double mean = 0.0;         ///< of the targets so far
    double off_squares = 0.0;  ///< of target - mean
  };
  TargetSums target_;
};

/// All at once.
Evaluation evaluate(const Predictions& predictions, const TargetBounds& bounds = {});

}  // namespace cudp
