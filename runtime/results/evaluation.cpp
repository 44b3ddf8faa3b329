#include "runtime/results/evaluation.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>

#include "kernels/layers/loss_math.hpp"
#include "runtime/base/error.hpp"

namespace cudp {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Losses are summed in blocks, so that the rounding error grows with the number of blocks.
constexpr std::uint64_t kBlock = 16;

/// Points of a ROC curve that are closer than this on both axes are left out.
constexpr double kRocStep = 1.0 / 400.0;

double share(std::uint64_t part, std::uint64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : kNaN;
}

struct Ranking {
  double auc = kNaN;
  std::vector<RocPoint> roc;
};

/// The ranking of examples of a class above the others by score. NaN among the scores of the class
/// rank below everything, among the others' above.
Ranking rank_class(std::vector<float> of_class, std::vector<float> others) {
  const std::uint64_t positives = of_class.size();
  const std::uint64_t negatives = others.size();
  if (positives == 0 || negatives == 0) return {};
  for (std::vector<float>* scores : {&of_class, &others}) {
    std::erase_if(*scores, [](float s) { return std::isnan(s); });
    std::ranges::sort(*scores, std::greater<>());
  }
  std::uint64_t through_of_class = 0;
  std::uint64_t through_others = negatives - others.size();
  std::uint64_t twice_pairs_won = 0;  // of a class and another example; a tie is half a pair
  Ranking r;
  const auto add_point = [&](bool always) {
    const RocPoint p{share(through_others, negatives), share(through_of_class, positives)};
    if (always || p.false_positives - r.roc.back().false_positives >= kRocStep ||
        p.true_positives - r.roc.back().true_positives >= kRocStep)
      r.roc.push_back(p);
  };
  r.roc.push_back({0.0, 0.0});
  add_point(through_others > 0);
  for (std::size_t i = 0, j = 0; i < of_class.size() || j < others.size();) {
    const float score = i == of_class.size() ? others[j]
                        : j == others.size() ? of_class[i]
                                             : std::max(of_class[i], others[j]);
    const std::size_t i0 = i;
    const std::size_t j0 = j;
    while (i < of_class.size() && of_class[i] == score) ++i;
    while (j < others.size() && others[j] == score) ++j;
    twice_pairs_won += (i - i0) * (2 * (others.size() - j) + (j - j0));
    through_of_class += i - i0;
    through_others += j - j0;
    add_point(false);
  }
  r.roc.push_back({1.0, share(through_of_class, positives)});
  r.roc.push_back({1.0, 1.0});
  r.auc = static_cast<double>(twice_pairs_won) /
          (2.0 * static_cast<double>(positives) * static_cast<double>(negatives));
  return r;
}

}  // namespace

Evaluator::Evaluator(Loss loss, int outputs, const TargetBounds& bounds)
    : loss_(loss),
      outputs_(outputs),
      bounds_(bounds),
      classes_(has_target(loss) ? 1
               : outputs == 1   ? 2
                                : outputs),
      scores_per_example_(classes_ == 2 ? 1 : static_cast<std::size_t>(classes_)),
      confusion_(static_cast<std::size_t>(classes_) * static_cast<std::size_t>(classes_ + 1)),
      probabilities_(static_cast<std::size_t>(classes_)) {
  if (gives_probabilities(loss)) bins_.resize(Evaluation::kBins);
}

void Evaluator::add(const Predictions& block) {
  ensure(block.loss == loss_ && block.outputs == outputs_, "predictions of another model");
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
  target_.off_squares += off * (t - target_.mean);
}

TargetErrors Evaluator::target_errors() const {
  if (examples_ == 0) return {.rmse = kNaN, .mae = kNaN, .r2 = kNaN, .mean_baseline_rmse = kNaN};
  const auto n = static_cast<double>(examples_);
  return {.rmse = std::sqrt(target_.squares / n),
          .mae = target_.distances / n,
          .r2 = target_.off_squares > 0.0 ? 1.0 - target_.squares / target_.off_squares : kNaN,
          .mean_baseline_rmse = std::sqrt(target_.off_squares / n)};
}

void Evaluator::add_class(const float* logits, std::uint8_t label) {
  const int predicted = predicted_class(loss_, {logits, static_cast<std::size_t>(outputs_)});
  const auto columns = static_cast<std::size_t>(classes_ + 1);
  ++confusion_[label * columns + static_cast<std::size_t>(predicted < 0 ? classes_ : predicted)];
  loss_of_block_ += static_cast<double>(evaluate_loss(loss_, logits, outputs_, label, nullptr));
  if (++examples_ % kBlock == 0) {
    loss_sum_ += loss_of_block_;
    loss_of_block_ = 0.0;
  }
  if (gives_probabilities(loss_)) {
    class_probabilities(loss_, {logits, static_cast<std::size_t>(outputs_)}, probabilities_);
    calibrate(predicted, label);
  }
  if (keeps_scores_) add_score(logits, label);
}

void Evaluator::calibrate(int predicted, std::uint8_t label) {
  if (predicted < 0) {
    not_a_number_ = true;
    return;
  }
  const bool two = classes_ == 2;
  const auto p = static_cast<double>(probabilities_[static_cast<std::size_t>(two ? 1 : predicted)]);
  const int bin = std::min(static_cast<int>(p * Evaluation::kBins), Evaluation::kBins - 1);
  Sum& sum = bins_[static_cast<std::size_t>(bin)];
  ++sum.examples;
  sum.confidence += p;
  sum.hits += label == (two ? 1 : predicted) ? 1 : 0;
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
  double sum = 0.0;
  int defined = 0;
  for (int c = classes_ == 2 ? 1 : 0; c < classes_; ++c) {
    const auto at = static_cast<std::size_t>(c);
    std::vector<float> of_class;
    std::vector<float> others;
    of_class.reserve(e.of_class[at].examples);
    others.reserve(examples_ - e.of_class[at].examples);
    for (std::size_t i = 0; i < labels_.size(); ++i)
      (labels_[i] == c ? of_class : others)
          .push_back(scores_[i * scores_per_example_ + (scores_per_example_ == 1 ? 0 : at)]);
    Ranking r = rank_class(std::move(of_class), std::move(others));
    e.of_class[at].roc = std::move(r.roc);
    if (std::isnan(r.auc)) continue;
    sum += r.auc;
    ++defined;
  }
  if (defined > 0) e.auc = sum / defined;
}

Evaluation Evaluator::evaluation() const {
  if (has_target(loss_))
    return {.loss = loss_,
            .classes = 1,
            .examples = examples_,
            .target = target_errors(),
            .of_class = {},
            .confusion = {},
            .reliability = {}};
  const auto classes = static_cast<std::size_t>(classes_);
  Evaluation e{.loss = loss_,
               .classes = classes_,
               .examples = examples_,
               .target = {},
               .auc = kNaN,
               .of_class = std::vector<Evaluation::OfClass>(classes),
               .confusion = {},
               .reliability = {}};
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
    Evaluation::OfClass& of = e.of_class[c];
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
  if (examples_ == 0) {
    e.log_loss_of_class_shares = kNaN;
    e.calibration_error = kNaN;
    e.majority_baseline = kNaN;
    return e;
  }
  const auto n = static_cast<double>(examples_);
  e.accuracy = static_cast<double>(right) / n;
  e.mean_loss = (loss_sum_ + loss_of_block_) / n;
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

Evaluation evaluate(const Predictions& predictions, const TargetBounds& bounds) {
  Evaluator evaluator(predictions.loss, predictions.outputs, bounds);
  evaluator.add(predictions);
  return evaluator.evaluation();
}

}  // namespace cudp
