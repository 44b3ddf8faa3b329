#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
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

/// A point of a precision-recall curve.
struct PrecisionRecallPoint {
  double recall = 0.0;
  double precision = 0.0;
};

/// What a threshold on the probability of the second of two classes makes of the examples: those
/// that reach it are predicted positive, the others negative. An example without a probability is
/// wrong: a false negative or a false positive. A share of no examples is NaN.
struct AtThreshold {
  double threshold = 0.0;
  std::uint64_t true_positives = 0;
  std::uint64_t false_positives = 0;
  std::uint64_t true_negatives = 0;
  std::uint64_t false_negatives = 0;

  double sensitivity() const;  ///< recall of the second class
  double specificity() const;  ///< recall of the first class
  double ppv() const;          ///< positive predictive value: precision of the second class
  double npv() const;          ///< negative predictive value: precision of the first class
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
  /// Average precision of the classes that auc is of: the sum over scores, from the largest down,
  /// of the precision of all examples down to that score times the recall that the score adds.
  double average_precision = 0.0;
  /// Mean squared distance of probabilities from 1 for the label and 0 else: of two classes of the
  /// second's, of more summed over classes; NaN for hinge.
  double brier_score = 0.0;
  double log_loss = 0.0;  ///< mean_loss, NaN for hinge
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
    std::vector<PrecisionRecallPoint> precision_recall;  ///< likewise
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
  /// The same in bins of equal counts, as far as equal probabilities allow, of rising probability;
  /// at most kBins, none without examples. Empty for hinge, and beyond kMaxScores.
  std::vector<Bin> reliability_by_count;

  /// Of two classes with probabilities: each of kThresholds, and the one that predictions were made
  /// by, if there was one: `confusion`, and what follows from it, is then of that threshold.
  std::vector<AtThreshold> thresholds;
  std::optional<AtThreshold> at_threshold;
  static constexpr double kThresholds[] = {0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3,
                                           0.4,  0.5,  0.6,  0.7, 0.8,  0.9};

  /// Scores, of one class where there are two, that are kept for AUC: 128 MiB.
  static constexpr std::size_t kMaxScores = std::size_t{1} << 25;
};

/// Evaluates predictions that come block by block. Of an example it keeps the label and a score a
/// class (one where there are two), for AUC; all else is counted as it comes.
class Evaluator {
 public:
  /// outputs: of the network; bounds: of its targets. threshold: the second of two classes is
  /// predicted if its probability reaches it; empty: if it is the more probable one. Requires
  /// check_threshold.
  Evaluator(Loss loss, int outputs, const TargetBounds& bounds = {},
            std::optional<double> threshold = {});

  /// Throws Error where the block is of another loss or number of outputs.
  void add(const Predictions& block);
  /// Adds one example of the block.
  void add(const Predictions& block, std::size_t example);
  Evaluation evaluation() const;

  /// The threshold of the highest sensitivity among those whose PPV is at least min_ppv. Empty if
  /// there is none, and beyond Evaluation::kMaxScores. Requires check_threshold.
  std::optional<AtThreshold> at_precision(double min_ppv) const;
  /// The largest threshold whose sensitivity is at least min_sensitivity. Empty and required as
  /// above.
  std::optional<AtThreshold> at_recall(double min_sensitivity) const;

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
  void calibrate(int likelier, std::uint8_t label);
  void count_thresholds(std::uint8_t label);
  std::vector<AtThreshold> thresholds() const;
  void rank(Evaluation& e) const;

  Loss loss_;
  int outputs_;
  TargetBounds bounds_;
  std::optional<double> threshold_;
  int classes_;
  std::size_t scores_per_example_;
  std::uint64_t examples_ = 0;
  double loss_sum_ = 0.0;
  double loss_of_block_ = 0.0;  ///< of the last examples, fewer than a block
  double brier_sum_ = 0.0;
  double brier_of_block_ = 0.0;
  std::vector<std::uint64_t> confusion_;  ///< [classes, classes + 1]: the last has no prediction
  std::vector<Sum> bins_;
  /// [2, kThresholds + 1]: examples of each label, by how many thresholds they reach; then, [2],
  /// those without a probability. Empty unless there are thresholds.
  std::vector<std::uint64_t> reached_;
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
Evaluation evaluate(const Predictions& predictions, const TargetBounds& bounds = {},
                    std::optional<double> threshold = {});

}  // namespace cudp
