#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/layers/kinds.hpp"
#include "runtime/data/target.hpp"
#include "runtime/results/predictions.hpp"

namespace cudp {

/// Point of an ROC curve: the false positive rate and the true positive rate at one threshold.
struct RocPoint {
  double false_positives = 0.0;
  double true_positives = 0.0;
};

/// Point of a precision-recall curve: recall and precision at one threshold.
struct PrecisionRecallPoint {
  double recall = 0.0;
  double precision = 0.0;
};

/// Confusion counts of two classes at a threshold on the probability of the second class: examples
/// whose probability reaches the threshold are predicted positive, the others negative. An example
/// without a probability (NaN) counts as an error: a false negative or a false positive. Ratios
/// with denominator 0 are NaN.
struct ThresholdCounts {
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

/// Errors of the predictions of a regression model, in the target's unit. An undefined value is
/// NaN.
struct TargetErrors {
  double rmse = 0.0;  ///< root of the mean squared error
  double mae = 0.0;   ///< mean absolute error
  /// 1 - mean squared error / variance of the targets. NaN if all targets are equal.
  double r2 = 0.0;
  double mean_baseline_rmse = 0.0;  ///< RMSE of always predicting the mean target
};

/// Everything that is reported about a model's predictions on a test set: metrics, tables and
/// curves. A value that is undefined (AUC of one class, precision of a class that is never
/// predicted), or computed from NaN logits, is NaN. An example whose logits are NaN, so that no
/// class can be predicted, counts as wrong.
struct Evaluation {
  Loss loss = Loss::softmax_cross_entropy;
  int classes = 0;  ///< 1 for regression: then only `examples` and `target` are set
  std::uint64_t examples = 0;
  TargetErrors target = {};

  double accuracy = 0.0;
  double mean_loss = 0.0;  ///< mean of the network's loss: log loss, or hinge loss
  /// Result of always predicting the most frequent class of the examples. majority_baseline: its
  /// accuracy. majority_class: index of that class (the first of several equally frequent ones).
  double majority_baseline = 0.0;
  int majority_class = 0;
  /// Log loss of a model that always predicts the frequencies of the classes in the test set; NaN
  /// for hinge loss.
  double log_loss_of_class_shares = 0.0;
  double balanced_accuracy = 0.0;  ///< mean recall over the classes that occur
  /// Area under the ROC curve; ties count half. NaN if there are more than kMaxScores scores. Two
  /// classes: AUC of the second class's score. More classes: the mean of the AUCs of each class
  /// against all others, over the classes for which it is defined. An example with a NaN score
  /// counts as an error: as ranked below all others if it is of the class, otherwise above all
  /// others.
  double auc = 0.0;
  /// Average precision: the sum over distinct scores, in descending order, of the precision at that
  /// score times the increase of recall. For two classes: of the second class. For more: the mean
  /// over the classes with positive and negative examples.
  double average_precision = 0.0;
  /// Brier score. Two classes: the mean squared difference between the probability of the second
  /// class and the 0/1 label. More classes: the mean over examples of the sum of these squares over
  /// all classes. NaN for hinge loss.
  double brier_score = 0.0;
  double log_loss = 0.0;  ///< equal to mean_loss; NaN for hinge
  /// Expected calibration error: the mean of |share - confidence| over the bins of the reliability
  /// diagram `reliability`, weighted by the number of examples in each bin. NaN for hinge loss.
  double calibration_error = 0.0;

  /// Counts, metrics and curves of the predictions for one class.
  struct ClassFigures {
    std::uint64_t examples = 0;   ///< number of examples of the class
    std::uint64_t predicted = 0;  ///< number of examples predicted as the class
    double precision = 0.0;
    double recall = 0.0;
    double f1 = 0.0;
    /// ROC curve of this class against all others, without points that are closer than kCurveStep
    /// to their neighbours. Empty if it is undefined. Also empty for the first of two classes,
    /// because the curve of the second has the same information.
    std::vector<RocPoint> roc;
    /// Precision-recall curve of this class against all others, without points that are close to
    /// their neighbours.
    std::vector<PrecisionRecallPoint> precision_recall;
  };
  std::vector<ClassFigures> of_class;    ///< [classes]
  std::vector<std::uint64_t> confusion;  ///< [classes, classes]: row label, column predicted class

  /// One bin of a reliability diagram: the examples whose probability p is in one of kBins equal
  /// intervals of 0 to 1. Two classes: p is the probability of the second class, and `share` the
  /// fraction of examples of that class. More classes: p is the largest probability, and `share`
  /// the fraction of correct predictions.
  struct Bin {
    std::uint64_t examples = 0;
    double confidence = 0.0;  ///< mean of the probabilities p of the bin's examples
    double share = 0.0;
  };
  static constexpr int kBins = 15;
  std::vector<Bin> reliability;  ///< [kBins]; empty for hinge
  /// Reliability diagram with bins that have equal numbers of examples, in ascending order of
  /// probability; `reliability` has bins of equal width. Equal probabilities are in one bin, so
  /// there may be fewer than kBins bins, and none is empty. Empty for hinge loss, and if there are
  /// more than kMaxScores scores.
  std::vector<Bin> reliability_by_count;

  /// Confusion counts of a model of two classes with probabilities. thresholds: counts at each
  /// threshold of kThresholds; empty for other models. at_threshold: counts at the user's own
  /// threshold, if one is set; `confusion`, and everything computed from it, are then for that
  /// threshold, too.
  std::vector<ThresholdCounts> thresholds;
  std::optional<ThresholdCounts> at_threshold;
  static constexpr double kThresholds[] = {0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3,
                                           0.4,  0.5,  0.6,  0.7, 0.8,  0.9};

  /// Maximum number of scores that are kept to compute AUC (128 MiB). A score is a class's output
  /// of the network for one example; a model of two classes has one score per example.
  static constexpr std::size_t kMaxScores = std::size_t{1} << 25;
};

/// Parts of an Evaluation that are computed. metrics: the numbers that a line of metrics has
/// (runtime/results/metrics.hpp), and the counts that they follow from; no curves, no
/// Evaluation::reliability_by_count and no Evaluation::thresholds, which take longer.
enum class EvaluationParts { all, metrics };

/// Computes an Evaluation from predictions that are added block by block. It keeps the label and
/// the scores of each example (one score per class; a single one for two classes) and accumulates
/// everything else.
class Evaluator {
 public:
  /// Makes an evaluator of no predictions. outputs: number of the network's outputs. bounds: bounds
  /// of a regression target. threshold: probability from which the second of two classes is
  /// predicted; if empty, the more probable class is predicted. A threshold requires two classes
  /// and a loss that gives probabilities.
  Evaluator(Loss loss, int outputs, const TargetBounds& bounds = {},
            std::optional<double> threshold = {}, EvaluationParts parts = EvaluationParts::all);

  /// Adds a block of predictions. Throws Error if the loss or the number of outputs of the
  /// predictions differs from that passed to the constructor.
  void add(const Predictions& block);
  /// Adds the prediction for the example with the index `example` in a block of predictions.
  void add(const Predictions& block, std::size_t example);
  Evaluation evaluation() const;

  /// Returns the counts at the best threshold with PPV (precision) >= min_ppv, the one with the
  /// highest sensitivity. Returns nullopt if no threshold reaches min_ppv, or if there were more
  /// than Evaluation::kMaxScores scores. Requires a model of two classes with probabilities.
  std::optional<ThresholdCounts> at_precision(double min_ppv) const;
  /// Returns the counts at the largest threshold with sensitivity (recall) >= min_sensitivity.
  /// Returns nullopt if no threshold reaches min_sensitivity, or if there were more than
  /// Evaluation::kMaxScores scores. Requires a model of two classes with probabilities.
  std::optional<ThresholdCounts> at_recall(double min_sensitivity) const;

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
  std::vector<ThresholdCounts> thresholds() const;
  void rank(Evaluation& e) const;

  Loss loss_;
  int outputs_;
  TargetBounds bounds_;
  std::optional<double> threshold_;
  EvaluationParts parts_;
  int classes_;
  std::size_t scores_per_example_;
  std::uint64_t examples_ = 0;
  double loss_sum_ = 0.0;
  double loss_of_block_ = 0.0;  ///< sum of the losses of the last examples, fewer than kBlock
  double brier_sum_ = 0.0;
  double brier_of_block_ = 0.0;
  /// Confusion matrix [classes, classes + 1]: row label, column predicted class; the last column
  /// counts examples without a valid prediction.
  std::vector<std::uint64_t> confusion_;
  std::vector<Sum> bins_;
  /// Counts from which Evaluation::thresholds is computed; empty unless the model has two classes
  /// with probabilities. One array of two parts. The first part is [2, number of thresholds + 1]:
  /// element (y, k) is the number of examples with label y whose probability reaches k of the
  /// thresholds in kThresholds. The second, [2], has for each label the number of examples whose
  /// probability is NaN.
  std::vector<std::uint64_t> reached_;
  bool not_a_number_ = false;         ///< at least one probability was NaN
  std::vector<float> probabilities_;  ///< probabilities of the current example
  std::vector<float> scores_;         ///< [examples, scores_per_example_]
  std::vector<std::uint8_t> labels_;  ///< [examples]
  bool keeps_scores_ = true;

  /// Sums of errors of a regression model, in the target's unit. The targets' mean and variance are
  /// updated by Welford's method (1962), whose rounding error does not grow with the mean.
  struct TargetSums {
    double squares = 0.0;             ///< sum of (prediction - target)^2
    double distances = 0.0;           ///< sum of |prediction - target|
    double mean = 0.0;                ///< mean of the targets so far
    double squared_deviations = 0.0;  ///< sum of (target - mean)^2
  };
  TargetSums target_;
};

/// Computes an Evaluation (all metrics) from the predictions for a whole test set. bounds: bounds
/// of a regression target. threshold: probability from which the second of two classes is
/// predicted; if empty, the more probable class is predicted. parts: what is computed.
Evaluation evaluate(const Predictions& predictions, const TargetBounds& bounds = {},
                    std::optional<double> threshold = {},
                    EvaluationParts parts = EvaluationParts::all);

}  // namespace cudp
