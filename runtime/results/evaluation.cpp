#include "runtime/results/evaluation.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "kernels/layers/loss_math.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/number_text.hpp"

namespace cudp {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Number of losses that are added to one partial sum before it is added to the total. The rounding
/// error then grows with the number of such blocks, not with the number of examples.
constexpr std::uint64_t kLossesPerBlock = 16;

/// Distance on both axes below which a point of an ROC or precision-recall curve is left out,
/// because it is too close to the point before it.
constexpr double kCurveStep = 1.0 / 400.0;

constexpr std::size_t kThresholdCount = std::size(Evaluation::kThresholds);

double share(std::uint64_t part, std::uint64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : kNaN;
}

/// Number of scores from which on a radix sort is faster than std::sort.
constexpr std::size_t kManyScores = 512;

/// Returns an integer by which floats are sorted in descending order: it is smaller for a larger
/// float. Of the zeros, +0 comes first.
std::uint32_t descending_key(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return bits >> 31 != 0 ? bits : ~bits & 0x7fffffffu;
}

/// Sorts numbers, none of which is NaN, in descending order: by 11 bits of their keys at a time,
/// from the lowest bits to the highest.
void sort_descending(std::vector<float>& scores) {
  if (scores.size() < kManyScores) {
    std::ranges::sort(scores, std::greater<>());
    return;
  }
  constexpr int kBits = 11;
  constexpr std::uint32_t kDigits = 1u << kBits;
  constexpr int kPasses = 3;
  static_assert(Evaluation::kMaxScores <= UINT32_MAX);
  std::array<std::array<std::uint32_t, kDigits>, kPasses> place{};  // first counts, then positions
  const auto digit = [](float x, int pass) {
    return descending_key(x) >> (kBits * pass) & (kDigits - 1);
  };
  for (const float x : scores)
    for (int pass = 0; pass < kPasses; ++pass)
      ++place[static_cast<std::size_t>(pass)][digit(x, pass)];
  std::vector<float> sorted(scores.size());
  for (int pass = 0; pass < kPasses; ++pass) {
    auto& next = place[static_cast<std::size_t>(pass)];
    std::exclusive_scan(next.begin(), next.end(), next.begin(), std::uint32_t{0});
    for (const float x : scores) sorted[next[digit(x, pass)]++] = x;
    scores.swap(sorted);
  }
}

/// Counts for one threshold on a class's score: how many examples of the class, and how many
/// others, have a score of at least `score`. An example that is not of the class and has a NaN
/// score counts as having the largest score, i.e. as an error.
struct Cut {
  float score = 0.0f;
  std::uint64_t of_class = 0;
  std::uint64_t others = 0;
};

/// Ranking of the examples by their score for one class: the scores of the class's own examples and
/// those of all other examples, both sorted. AUC and average precision are computed from it.
class Ranking {
 public:
  Ranking(std::vector<float> of_class, std::vector<float> others)
      : positives_(of_class.size()),
        negatives_(others.size()),
        of_class_(std::move(of_class)),
        others_(std::move(others)) {
    for (std::vector<float>* scores : {&of_class_, &others_}) {
      std::erase_if(*scores, [](float s) { return std::isnan(s); });
      sort_descending(*scores);
    }
  }

  std::uint64_t positives() const { return positives_; }  ///< includes examples with a NaN score
  std::uint64_t negatives() const { return negatives_; }  ///< includes examples with a NaN score
  /// Returns the number of examples that are not of the class and have a NaN score.
  std::uint64_t lost_others() const { return negatives_ - others_.size(); }
  std::uint64_t scored() const { return of_class_.size() + others_.size(); }

  /// Calls use(Cut) for each distinct score, in descending order of the scores.
  template <class Use>
  void for_each_cut(const Use& use) const {
    for (std::size_t i = 0, j = 0; i < of_class_.size() || j < others_.size();) {
      const float score = i == of_class_.size() ? others_[j]
                          : j == others_.size() ? of_class_[i]
                                                : std::max(of_class_[i], others_[j]);
      while (i < of_class_.size() && of_class_[i] == score) ++i;
      while (j < others_.size() && others_[j] == score) ++j;
      use(Cut{score, i, lost_others() + j});
    }
  }

 private:
  std::uint64_t positives_;
  std::uint64_t negatives_;
  std::vector<float> of_class_;  // scores of the class's examples, in descending order
  std::vector<float> others_;    // scores of other examples, in descending order
};

/// Returns the ranking for the class whose examples satisfy `is_of_class`. score(i) is the class's
/// score for example i.
template <class IsOfClass, class Score>
Ranking ranked(std::size_t examples, const IsOfClass& is_of_class, const Score& score) {
  std::size_t positives = 0;
  for (std::size_t i = 0; i < examples; ++i) positives += is_of_class(i) ? 1 : 0;
  // Each score is written to the end of both arrays, and one of the ends moves on: a branch would
  // be mispredicted often. The last number of each array is such an end.
  std::vector<float> of_class(positives + 1);
  std::vector<float> others(examples - positives + 1);
  std::size_t p = 0;
  for (std::size_t i = 0; i < examples; ++i) {
    of_class[p] = others[i - p] = score(i);
    p += is_of_class(i) ? 1 : 0;
  }
  of_class.pop_back();
  others.pop_back();
  return {std::move(of_class), std::move(others)};
}

double precision_of(const Cut& c) { return share(c.of_class, c.of_class + c.others); }

/// Area under the ROC curve, in which a pair with equal scores counts half, and average precision:
/// the mean over the class's examples of the precision at their score.
struct Areas {
  double roc = 0.0;
  double precision = 0.0;
};

/// Returns both areas. Requires at least one example of the class and one other.
Areas areas_of(const Ranking& r) {
  std::uint64_t twice_pairs_won = 0;  // pairs whose class example scores higher; ties: half
  double precisions = 0.0;
  Cut above{.score = 0.0f, .of_class = 0, .others = r.lost_others()};
  r.for_each_cut([&](const Cut& c) {
    if (const std::uint64_t found = c.of_class - above.of_class; found > 0) {
      twice_pairs_won += found * (2 * (r.negatives() - c.others) + (c.others - above.others));
      precisions += static_cast<double>(found) * precision_of(c);
    }
    above = c;
  });
  const auto positives = static_cast<double>(r.positives());
  return {.roc = static_cast<double>(twice_pairs_won) /
                 (2.0 * positives * static_cast<double>(r.negatives())),
          .precision = precisions / positives};
}

std::vector<RocPoint> roc_of(const Ranking& r) {
  std::vector<RocPoint> roc = {{0.0, 0.0}};
  const auto add_point = [&](const Cut& c, bool always) {
    const RocPoint p{share(c.others, r.negatives()), share(c.of_class, r.positives())};
    if (always || p.false_positives - roc.back().false_positives >= kCurveStep ||
        p.true_positives - roc.back().true_positives >= kCurveStep)
      roc.push_back(p);
  };
  Cut last{.score = 0.0f, .of_class = 0, .others = r.lost_others()};
  add_point(last, r.lost_others() > 0);
  r.for_each_cut([&](const Cut& c) {
    add_point(c, false);
    last = c;
  });
  roc.push_back({1.0, share(last.of_class, r.positives())});
  roc.push_back({1.0, 1.0});
  return roc;
}

std::vector<PrecisionRecallPoint> precision_recall_of(const Ranking& r) {
  std::vector<PrecisionRecallPoint> curve;
  PrecisionRecallPoint last;
  const auto is_far = [&](const PrecisionRecallPoint& p) {
    return curve.empty() || p.recall - curve.back().recall >= kCurveStep ||
           std::fabs(p.precision - curve.back().precision) >= kCurveStep;
  };
  r.for_each_cut([&](const Cut& c) {
    last = {.recall = share(c.of_class, r.positives()), .precision = precision_of(c)};
    if (is_far(last)) curve.push_back(last);
  });
  if (!curve.empty() && curve.back().recall != last.recall) curve.push_back(last);
  return curve;
}

/// Returns reliability bins with equal numbers of examples, in ascending order of score. Equal
/// scores are always in one bin.
std::vector<Evaluation::Bin> equal_bins(const Ranking& r) {
  struct Sums {
    std::uint64_t examples = 0;
    std::uint64_t hits = 0;
    double scores = 0.0;
  };
  constexpr auto kBins = static_cast<std::uint64_t>(Evaluation::kBins);
  std::vector<Evaluation::Bin> bins;
  std::uint64_t done = 0;  // number of examples in the bins of higher scores
  Sums bin;
  const auto close = [&] {
    if (bin.examples == 0) return;
    const auto n = static_cast<double>(bin.examples);
    bins.push_back({.examples = bin.examples,
                    .confidence = bin.scores / n,
                    .share = static_cast<double>(bin.hits) / n});
    done += bin.examples;
    bin = {};
  };
  Cut above{.score = 0.0f, .of_class = 0, .others = r.lost_others()};
  r.for_each_cut([&](const Cut& c) {
    const std::uint64_t hits = c.of_class - above.of_class;
    const std::uint64_t all = hits + (c.others - above.others);
    bin.examples += all;
    bin.hits += hits;
    bin.scores += static_cast<double>(all) * static_cast<double>(c.score);
    above = c;
    // Closes the bin when it and the earlier bins contain at least k / kBins of the examples, where
    // k is the index of the bin, counted from 1; larger if an earlier bin was too full.
    const std::uint64_t k = done * kBins / r.scored() + 1;
    if ((done + bin.examples) * kBins >= k * r.scored()) close();
  });
  close();
  std::ranges::reverse(bins);
  return bins;
}

/// Returns the confusion counts with the score of `c` as threshold. The threshold is rounded to the
/// shortest decimal number that reads back as the same float.
ThresholdCounts at_cut(const Ranking& r, const Cut& c) {
  return {.threshold = read_number<double>(number_text(c.score)).value_or(0.0),
          .true_positives = c.of_class,
          .false_positives = c.others,
          .true_negatives = r.negatives() - c.others,
          .false_negatives = r.positives() - c.of_class};
}

}  // namespace

double ThresholdCounts::sensitivity() const {
  return share(true_positives, true_positives + false_negatives);
}
double ThresholdCounts::specificity() const {
  return share(true_negatives, true_negatives + false_positives);
}
double ThresholdCounts::ppv() const {
  return share(true_positives, true_positives + false_positives);
}
double ThresholdCounts::npv() const {
  return share(true_negatives, true_negatives + false_negatives);
}

Evaluator::Evaluator(Loss loss, int outputs, const TargetBounds& bounds,
                     std::optional<double> threshold, EvaluationParts parts)
    : loss_(loss),
      outputs_(outputs),
      bounds_(bounds),
      threshold_(threshold),
      parts_(parts),
      classes_(has_target(loss) ? 1
               : outputs == 1   ? 2
                                : outputs),
      scores_per_example_(classes_ == 2 ? 1 : static_cast<std::size_t>(classes_)),
      confusion_(static_cast<std::size_t>(classes_) * static_cast<std::size_t>(classes_ + 1)),
      probabilities_(static_cast<std::size_t>(classes_)) {
  if (gives_probabilities(loss)) bins_.resize(Evaluation::kBins);
  if (gives_probabilities(loss) && classes_ == 2 && parts == EvaluationParts::all)
    reached_.resize(2 * (kThresholdCount + 1) + 2);
  if (threshold) check_threshold("threshold", loss, outputs);
}

void Evaluator::add(const Predictions& block) {
  ensure(block.loss == loss_ && block.outputs == outputs_, "predictions of another model");
  if (!has_target(loss_) && keeps_scores_) {
    const std::size_t all = labels_.size() + block.size();
    if (all > labels_.capacity()) {
      labels_.reserve(std::max(all, 2 * labels_.size()));
      scores_.reserve(std::min(labels_.capacity() * scores_per_example_, Evaluation::kMaxScores));
    }
  }
  for (std::size_t i = 0; i < block.size(); ++i) add(block, i);
}

void Evaluator::add(const Predictions& block, std::size_t example) {
  const float* const logits = block.logits.data() + example * static_cast<std::size_t>(outputs_);
  if (has_target(loss_))
    add_target(logits[0], block.targets[example]);
  else
    add_class(logits, block.labels[example]);
}

void Evaluator::add_target(float output, float target) {
  ++examples_;
  const double t = bounds_.value(static_cast<double>(target));
  const double error = bounds_.value(static_cast<double>(output)) - t;
  target_.squares += error * error;
  target_.distances += std::fabs(error);
  const double off = t - target_.mean;
  target_.mean += off / static_cast<double>(examples_);
  target_.squared_deviations += off * (t - target_.mean);
}

TargetErrors Evaluator::target_errors() const {
  if (examples_ == 0) return {.rmse = kNaN, .mae = kNaN, .r2 = kNaN, .mean_baseline_rmse = kNaN};
  const auto n = static_cast<double>(examples_);
  return {.rmse = std::sqrt(target_.squares / n),
          .mae = target_.distances / n,
          .r2 = target_.squared_deviations > 0.0
                    ? 1.0 - target_.squares / target_.squared_deviations
                    : kNaN,
          .mean_baseline_rmse = std::sqrt(target_.squared_deviations / n)};
}

void Evaluator::add_class(const float* logits, std::uint8_t label) {
  const std::span<const float> all(logits, static_cast<std::size_t>(outputs_));
  const int predicted = predicted_class(loss_, all, threshold_);
  const std::size_t columns = static_cast<std::size_t>(classes_) + 1;
  ++confusion_[label * columns + static_cast<std::size_t>(predicted < 0 ? classes_ : predicted)];
  loss_of_block_ += static_cast<double>(evaluate_loss(loss_, logits, outputs_, label, nullptr));
  if (gives_probabilities(loss_)) {
    class_probabilities(loss_, all, probabilities_);
    calibrate(predicted_class(loss_, all), label);
    if (!reached_.empty()) count_thresholds(label);
  }
  if (++examples_ % kLossesPerBlock == 0) {
    loss_sum_ += std::exchange(loss_of_block_, 0.0);
    brier_sum_ += std::exchange(brier_of_block_, 0.0);
  }
  if (keeps_scores_) add_score(logits, label);
}

/// Adds one example, whose class probabilities are in probabilities_, to the Brier score and to the
/// reliability bins. likelier: the more probable class, or -1.
void Evaluator::calibrate(int likelier, std::uint8_t label) {
  const bool two = classes_ == 2;
  for (int c = two ? 1 : 0; c < classes_; ++c) {
    const auto p = static_cast<double>(probabilities_[static_cast<std::size_t>(c)]);
    const double off = p - (label == c ? 1.0 : 0.0);
    brier_of_block_ += off * off;
  }
  if (likelier < 0) {
    not_a_number_ = true;
    return;
  }
  const auto p = static_cast<double>(probabilities_[static_cast<std::size_t>(two ? 1 : likelier)]);
  const int bin = std::min(static_cast<int>(p * Evaluation::kBins), Evaluation::kBins - 1);
  Sum& sum = bins_[static_cast<std::size_t>(bin)];
  ++sum.examples;
  sum.confidence += p;
  sum.hits += label == (two ? 1 : likelier) ? 1 : 0;
}

void Evaluator::count_thresholds(std::uint8_t label) {
  const float p = probabilities_[1];
  if (std::isnan(p)) {
    ++reached_[2 * (kThresholdCount + 1) + label];
    return;
  }
  const auto reached = std::ranges::count_if(
      Evaluation::kThresholds, [&](double threshold) { return reaches(p, threshold); });
  ++reached_[label * (kThresholdCount + 1) + static_cast<std::size_t>(reached)];
}

std::vector<ThresholdCounts> Evaluator::thresholds() const {
  std::vector<ThresholdCounts> all;
  if (reached_.empty()) return all;
  const std::uint64_t* const lost = reached_.data() + 2 * (kThresholdCount + 1);
  for (std::size_t t = 0; t < kThresholdCount; ++t) {
    ThresholdCounts at{.threshold = Evaluation::kThresholds[t],
                       .false_positives = lost[0],
                       .false_negatives = lost[1]};
    for (std::size_t k = 0; k <= kThresholdCount; ++k) {
      const std::uint64_t first = reached_[k];
      const std::uint64_t second = reached_[kThresholdCount + 1 + k];
      (k > t ? at.false_positives : at.true_negatives) += first;
      (k > t ? at.true_positives : at.false_negatives) += second;
    }
    all.push_back(at);
  }
  return all;
}

void Evaluator::add_score(const float* logits, std::uint8_t label) {
  if (scores_.size() + scores_per_example_ > Evaluation::kMaxScores) {
    keeps_scores_ = false;
    scores_ = {};
    labels_ = {};
    return;
  }
  labels_.push_back(label);
  if (!gives_probabilities(loss_))
    scores_.push_back(logits[0]);
  else if (classes_ == 2)
    scores_.push_back(probabilities_[1]);
  else
    scores_.insert(scores_.end(), probabilities_.begin(), probabilities_.end());
}

void Evaluator::rank(Evaluation& e) const {
  if (!keeps_scores_) return;
  double aucs = 0.0;
  double precisions = 0.0;
  int defined = 0;
  for (int c = classes_ == 2 ? 1 : 0; c < classes_; ++c) {
    const std::size_t at = scores_per_example_ == 1 ? 0 : static_cast<std::size_t>(c);
    const Ranking r = ranked(
        labels_.size(), [&](std::size_t i) { return labels_[i] == c; },
        [&](std::size_t i) { return scores_[i * scores_per_example_ + at]; });
    const bool has_curves = parts_ == EvaluationParts::all;
    if (has_curves && classes_ == 2 && gives_probabilities(loss_))
      e.reliability_by_count = equal_bins(r);
    if (r.positives() == 0 || r.negatives() == 0) continue;
    if (has_curves) {
      Evaluation::ClassFigures& of = e.of_class[static_cast<std::size_t>(c)];
      of.roc = roc_of(r);
      of.precision_recall = precision_recall_of(r);
    }
    const Areas areas = areas_of(r);
    aucs += areas.roc;
    precisions += areas.precision;
    ++defined;
  }
  if (defined > 0) {
    e.auc = aucs / defined;
    e.average_precision = precisions / defined;
  }
  if (classes_ == 2 || !gives_probabilities(loss_) || parts_ == EvaluationParts::metrics) return;
  const auto largest = [&](std::size_t i) {
    const auto first = scores_.begin() + static_cast<std::ptrdiff_t>(i * scores_per_example_);
    return std::max_element(first, first + classes_) - first;
  };
  e.reliability_by_count = equal_bins(ranked(
      labels_.size(), [&](std::size_t i) { return largest(i) == labels_[i]; },
      [&](std::size_t i) {
        return scores_[i * scores_per_example_ + static_cast<std::size_t>(largest(i))];
      }));
}

std::optional<ThresholdCounts> Evaluator::at_precision(double min_ppv) const {
  const Ranking r = ranked(
      labels_.size(), [&](std::size_t i) { return labels_[i] == 1; },
      [&](std::size_t i) { return scores_[i]; });
  std::optional<Cut> best;
  r.for_each_cut([&](const Cut& c) {
    if (precision_of(c) >= min_ppv && (!best || c.of_class > best->of_class)) best = c;
  });
  if (!best) return std::nullopt;
  return at_cut(r, *best);
}

std::optional<ThresholdCounts> Evaluator::at_recall(double min_sensitivity) const {
  const Ranking r = ranked(
      labels_.size(), [&](std::size_t i) { return labels_[i] == 1; },
      [&](std::size_t i) { return scores_[i]; });
  std::optional<Cut> best;
  r.for_each_cut([&](const Cut& c) {
    if (!best && share(c.of_class, r.positives()) >= min_sensitivity) best = c;
  });
  if (!best) return std::nullopt;
  return at_cut(r, *best);
}

Evaluation Evaluator::evaluation() const {
  if (has_target(loss_))
    return {.loss = loss_,
            .classes = 1,
            .examples = examples_,
            .target = target_errors(),
            .of_class = {},
            .confusion = {},
            .reliability = {},
            .reliability_by_count = {},
            .thresholds = {},
            .at_threshold = {}};
  const auto classes = static_cast<std::size_t>(classes_);
  Evaluation e{.loss = loss_,
               .classes = classes_,
               .examples = examples_,
               .target = {},
               .auc = kNaN,
               .average_precision = kNaN,
               .brier_score = kNaN,
               .log_loss = kNaN,
               .of_class = std::vector<Evaluation::ClassFigures>(classes),
               .confusion = {},
               .reliability = {},
               .reliability_by_count = {},
               .thresholds = thresholds(),
               .at_threshold = {}};
  std::uint64_t right = 0;
  for (std::size_t label = 0; label < classes; ++label) {
    const std::uint64_t* const row = confusion_.data() + label * (classes + 1);
    right += row[label];
    for (std::size_t c = 0; c <= classes; ++c) e.of_class[label].examples += row[c];
    for (std::size_t c = 0; c < classes; ++c) {
      e.of_class[c].predicted += row[c];
      e.confusion.push_back(row[c]);
    }
  }
  double recalls = 0.0;
  int occurring = 0;
  const bool logs = gives_probabilities(loss_);
  e.log_loss_of_class_shares = logs ? 0.0 : kNaN;
  for (std::size_t c = 0; c < classes; ++c) {
    Evaluation::ClassFigures& of = e.of_class[c];
    const std::uint64_t hits = e.confusion[c * classes + c];
    of.precision = share(hits, of.predicted);
    of.recall = share(hits, of.examples);
    of.f1 = share(2 * hits, of.predicted + of.examples);
    if (of.examples > e.of_class[static_cast<std::size_t>(e.majority_class)].examples)
      e.majority_class = static_cast<int>(c);
    if (of.examples == 0) continue;
    recalls += of.recall;
    ++occurring;
    const double part = share(of.examples, examples_);
    if (logs) e.log_loss_of_class_shares -= part * std::log(part);
  }
  e.balanced_accuracy = occurring > 0 ? recalls / occurring : kNaN;
  if (threshold_)
    e.at_threshold = ThresholdCounts{.threshold = *threshold_,
                                     .true_positives = confusion_[4],
                                     .false_positives = confusion_[1] + confusion_[2],
                                     .true_negatives = confusion_[0],
                                     .false_negatives = confusion_[3] + confusion_[5]};
  if (examples_ == 0) {
    e.log_loss_of_class_shares = kNaN;
    e.calibration_error = kNaN;
    e.majority_baseline = kNaN;
    return e;
  }
  const auto n = static_cast<double>(examples_);
  e.accuracy = static_cast<double>(right) / n;
  e.mean_loss = (loss_sum_ + loss_of_block_) / n;
  if (logs) {
    e.log_loss = e.mean_loss;
    e.brier_score = (brier_sum_ + brier_of_block_) / n;
  }
  e.majority_baseline =
      share(e.of_class[static_cast<std::size_t>(e.majority_class)].examples, examples_);
  e.calibration_error = logs && !not_a_number_ ? 0.0 : kNaN;
  for (const Sum& sum : bins_) {
    const auto count = static_cast<double>(sum.examples);
    Evaluation::Bin bin{.examples = sum.examples, .confidence = kNaN, .share = kNaN};
    if (sum.examples > 0) {
      bin.confidence = sum.confidence / count;
      bin.share = share(sum.hits, sum.examples);
      e.calibration_error += count / n * std::fabs(bin.share - bin.confidence);
    }
    e.reliability.push_back(bin);
  }
  rank(e);
  return e;
}

Evaluation evaluate(const Predictions& predictions, const TargetBounds& bounds,
                    std::optional<double> threshold, EvaluationParts parts) {
  Evaluator evaluator(predictions.loss, predictions.outputs, bounds, threshold, parts);
  evaluator.add(predictions);
  return evaluator.evaluation();
}

}  // namespace cudp
