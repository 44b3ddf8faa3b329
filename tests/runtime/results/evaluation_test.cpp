// What is said of predictions, against definitions counted pair by pair and cell by cell.
#include "runtime/results/evaluation.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/base/error.hpp"
#include "runtime/results/evaluation_report.hpp"
#include "runtime/results/metrics.hpp"
#include "tests/support/temporary_folder.hpp"

namespace cudp {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Predictions logistic(std::vector<float> logits, std::vector<std::uint8_t> labels) {
  return {.loss = Loss::logistic,
          .outputs = 1,
          .logits = std::move(logits),
          .labels = std::move(labels)};
}

/// Logits on a coarse lattice, so that many are equal.
Predictions random_predictions(Loss loss, int outputs, std::size_t examples, unsigned seed) {
  std::mt19937 random(seed);
  Predictions p{.loss = loss, .outputs = outputs, .logits = {}, .labels = {}};
  const unsigned classes = outputs == 1 ? 2 : static_cast<unsigned>(outputs);
  for (std::size_t i = 0; i < examples; ++i) {
    p.labels.push_back(static_cast<std::uint8_t>(random() % classes));
    for (int c = 0; c < outputs; ++c) {
      const bool own = outputs == 1 ? p.labels[i] == 1 : p.labels[i] == c;
      p.logits.push_back(0.5f * static_cast<float>(random() % 8) + (own ? 1.0f : 0.0f) - 2.0f);
    }
  }
  return p;
}

/// The share of pairs of a class's example and another in which the former's score is larger.
double pairs_won(const std::vector<double>& scores, const std::vector<std::uint8_t>& labels,
                 int of_class) {
  double won = 0.0;
  double pairs = 0.0;
  for (std::size_t i = 0; i < labels.size(); ++i)
    for (std::size_t j = 0; j < labels.size(); ++j) {
      if (labels[i] != of_class || labels[j] == of_class) continue;
      pairs += 1.0;
      won += scores[i] > scores[j] ? 1.0 : scores[i] == scores[j] ? 0.5 : 0.0;
    }
  return pairs > 0.0 ? won / pairs : std::numeric_limits<double>::quiet_NaN();
}

/// The area below the drawn curve, by trapezia.
double area(const std::vector<RocPoint>& roc) {
  double sum = 0.0;
  for (std::size_t i = 1; i < roc.size(); ++i)
    sum += (roc[i].false_positives - roc[i - 1].false_positives) * 0.5 *
           (roc[i].true_positives + roc[i - 1].true_positives);
  return sum;
}

TEST(Auc, OfTwoClassesIsTheShareOfPairsWon) {
  for (const Loss loss : {Loss::logistic, Loss::hinge})
    for (const std::size_t n : {2, 3, 10, 200, 1500}) {
      const Predictions p = random_predictions(loss, 1, n, static_cast<unsigned>(n));
      const std::vector<double> scores(p.logits.begin(), p.logits.end());
      const Evaluation e = evaluate(p);
      EXPECT_DOUBLE_EQ(e.auc, pairs_won(scores, p.labels, 1)) << n;
      EXPECT_NEAR(area(e.of_class[1].roc), e.auc, 1e-12) << n;  // too few points to leave any out
      EXPECT_TRUE(e.of_class[0].roc.empty());
    }
}

/// So many scores are sorted by the bits of their keys.
TEST(Auc, OfManyScoresOfAnySizeIsTheShareOfPairsWon) {
  constexpr std::size_t kScores = 2'500;
  std::mt19937 random(6);
  Predictions p{.loss = Loss::hinge, .outputs = 1, .logits = {}, .labels = {}};
  std::vector<double> scores;
  while (scores.size() < kScores) {
    const auto score = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isnan(score)) continue;
    const bool again = random() % 4 == 0 && !scores.empty();
    p.logits.push_back(again ? -p.logits[random() % scores.size()] : score);
    p.labels.push_back(p.logits.back() + static_cast<float>(random() % 3) > 1.0f ? 1 : 0);
    scores.push_back(static_cast<double>(p.logits.back()));
  }
  for (const float special : {0.0f, -0.0f, kInfinity, -kInfinity, 0.0f, -0.0f}) {
    p.logits.push_back(special);
    p.labels.push_back(scores.size() % 2);
    scores.push_back(static_cast<double>(special));
  }
  EXPECT_DOUBLE_EQ(evaluate(p).auc, pairs_won(scores, p.labels, 1));
}

TEST(Auc, OfTwoSoftmaxOutputsIsThatOfTheirDifference) {
  const Predictions p = random_predictions(Loss::softmax_cross_entropy, 2, 150, 3);
  std::vector<double> scores;
  scores.reserve(p.size());
  for (std::size_t i = 0; i < p.size(); ++i)
    scores.push_back(static_cast<double>(p.logits[2 * i + 1] - p.logits[2 * i]));
  EXPECT_DOUBLE_EQ(evaluate(p).auc, pairs_won(scores, p.labels, 1));
}

TEST(Auc, OfMoreClassesIsTheMeanOverThoseThatOccur) {
  Predictions p = random_predictions(Loss::softmax_cross_entropy, 4, 120, 4);
  for (std::uint8_t& label : p.labels) label = label == 2 ? 0 : label;  // class 2 never occurs
  double sum = 0.0;
  for (const int c : {0, 1, 3}) {
    std::vector<double> scores;
    for (std::size_t i = 0; i < p.size(); ++i) {
      double total = 0.0;
      for (std::size_t k = 0; k < 4; ++k) total += std::exp(double{p.logits[4 * i + k]});
      const double of_class = std::exp(double{p.logits[4 * i + static_cast<std::size_t>(c)]});
      // On a lattice that ties survive, as rounding to float would make or break them.
      scores.push_back(std::round(1e9 * of_class / total));
    }
    sum += pairs_won(scores, p.labels, c);
  }
  EXPECT_NEAR(evaluate(p).auc, sum / 3.0, 2e-3);
}

TEST(Auc, NaNLosesAgainstAll) {
  // Without NaN: 1 and 2 against 0 and 1.5.
  const Evaluation e = evaluate(logistic({1.0f, kNaN, 2.0f, 0.0f, 1.5f, kNaN}, {1, 1, 1, 0, 0, 0}));
  EXPECT_DOUBLE_EQ(e.auc, 3.0 / 9.0);
  EXPECT_EQ(e.of_class[1].roc.back().true_positives, 1.0);
  EXPECT_EQ(e.accuracy, 0.5);
  EXPECT_TRUE(std::isnan(e.calibration_error));
  EXPECT_TRUE(std::isnan(e.mean_loss));
}

TEST(Auc, OfOneClassIsNotDefined) {
  EXPECT_TRUE(std::isnan(evaluate(logistic({1.0f, -1.0f}, {1, 1})).auc));
  EXPECT_TRUE(std::isnan(evaluate(logistic({1.0f, -1.0f}, {0, 0})).auc));
}

TEST(Auc, OfInfiniteLogitsIsDefined) {
  EXPECT_EQ(evaluate(logistic({kInfinity, -kInfinity}, {1, 0})).auc, 1.0);
  EXPECT_EQ(evaluate(logistic({kInfinity, -kInfinity}, {0, 1})).auc, 0.0);
}

/// Three classes, ten examples, by hand.
TEST(Evaluation, CountsCells) {
  Predictions p{.loss = Loss::softmax_cross_entropy, .outputs = 3, .logits = {}, .labels = {}};
  const auto add = [&](std::uint8_t label, int predicted, int times) {
    for (int i = 0; i < times; ++i) {
      p.labels.push_back(label);
      for (int c = 0; c < 3; ++c) p.logits.push_back(c == predicted ? 1.0f : 0.0f);
    }
  };
  add(0, 0, 4);
  add(0, 1, 2);
  add(1, 1, 1);
  add(1, 0, 2);
  p.labels.push_back(1);
  p.logits.insert(p.logits.end(), 3, kNaN);  // predicted as nothing
  const Evaluation e = evaluate(p);
  EXPECT_EQ(e.examples, 10u);
  EXPECT_EQ(e.confusion, (std::vector<std::uint64_t>{4, 2, 0, 2, 1, 0, 0, 0, 0}));
  EXPECT_DOUBLE_EQ(e.accuracy, 0.5);
  EXPECT_DOUBLE_EQ(e.majority_baseline, 0.6);
  EXPECT_EQ(e.majority_class, 0);
  EXPECT_DOUBLE_EQ(e.balanced_accuracy, (4.0 / 6.0 + 1.0 / 4.0) / 2.0);
  EXPECT_DOUBLE_EQ(e.log_loss_of_class_shares, -0.6 * std::log(0.6) - 0.4 * std::log(0.4));
  EXPECT_EQ(e.of_class[1].examples, 4u);
  EXPECT_EQ(e.of_class[1].predicted, 3u);
  EXPECT_DOUBLE_EQ(e.of_class[0].precision, 4.0 / 6.0);
  EXPECT_DOUBLE_EQ(e.of_class[1].recall, 1.0 / 4.0);
  EXPECT_DOUBLE_EQ(e.of_class[1].f1, 2.0 / 7.0);
  EXPECT_TRUE(std::isnan(e.of_class[2].precision));
  EXPECT_TRUE(std::isnan(e.of_class[2].recall));
  EXPECT_TRUE(std::isnan(e.of_class[2].f1));
}

TEST(Evaluation, FindsHowReliableProbabilitiesAre) {
  // p of the second class is 1/4 in 8 examples, of which 4 are of it, and 3/4 in 4, of which 1 is.
  const float z = std::log(3.0f);
  Predictions p = logistic({}, {});
  for (int i = 0; i < 12; ++i) {
    p.logits.push_back(i < 8 ? -z : z);
    p.labels.push_back(i < 4 || i == 8 ? 1 : 0);
  }
  const Evaluation e = evaluate(p);
  EXPECT_NEAR(e.calibration_error, 8.0 / 12.0 * 0.25 + 4.0 / 12.0 * 0.5, 1e-6);
  ASSERT_EQ(e.reliability.size(), std::size_t{Evaluation::kBins});
  const Evaluation::Bin& low = e.reliability[3];  // 0.2 to 0.267
  EXPECT_EQ(low.examples, 8u);
  EXPECT_NEAR(low.confidence, 0.25, 1e-6);
  EXPECT_EQ(low.share, 0.5);
  EXPECT_EQ(e.reliability[0].examples, 0u);
  EXPECT_TRUE(std::isnan(e.reliability[0].share));
  // Of more classes: the largest p, and whether it is right.
  Predictions three{
      .loss = Loss::softmax_cross_entropy, .outputs = 3, .logits = {}, .labels = {0, 0, 1, 2}};
  for (int i = 0; i < 4; ++i)
    three.logits.insert(three.logits.end(), {std::log(8.0f), 0.0f, 0.0f});  // 0.8
  EXPECT_NEAR(evaluate(three).calibration_error, 0.3, 1e-6);
}

/// The largest numbers first: precision of all down to a score, times the recall that it adds.
double average_precision(const std::vector<float>& scores, const std::vector<std::uint8_t>& labels,
                         int of_class) {
  const std::set<float, std::greater<>> distinct(scores.begin(), scores.end());
  const auto all = static_cast<double>(std::ranges::count(labels, of_class));
  double sum = 0.0, recall = 0.0;
  for (const float least : distinct) {
    double hits = 0.0, through = 0.0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (scores[i] < least) continue;
      through += 1.0;
      hits += labels[i] == of_class ? 1.0 : 0.0;
    }
    sum += (hits / all - recall) * hits / through;
    recall = hits / all;
  }
  return sum;
}

TEST(AveragePrecision, IsTheSumOverScoresTiesTogether) {
  for (const Loss loss : {Loss::logistic, Loss::hinge})
    for (const std::size_t n : {2, 3, 10, 200, 1500}) {
      const Predictions p = random_predictions(loss, 1, n, static_cast<unsigned>(n));
      const Evaluation e = evaluate(p);
      EXPECT_NEAR(e.average_precision, average_precision(p.logits, p.labels, 1), 1e-12) << n;
      EXPECT_EQ(e.of_class[1].precision_recall.back().recall, 1.0);
      EXPECT_TRUE(e.of_class[0].precision_recall.empty());
    }
  // All scores equal: the share of the class.
  EXPECT_DOUBLE_EQ(evaluate(logistic({1, 1, 1, 1}, {1, 0, 0, 0})).average_precision, 0.25);
  EXPECT_TRUE(std::isnan(evaluate(logistic({1, 2}, {1, 1})).average_precision));
  EXPECT_TRUE(std::isnan(evaluate(logistic({}, {})).average_precision));
  // NaN of another class is above all, of the class below.
  EXPECT_DOUBLE_EQ(evaluate(logistic({2, kNaN, 1, kNaN}, {1, 0, 0, 1})).average_precision, 0.25);
}

TEST(Brier, IsTheMeanSquaredDistance) {
  const Predictions two = random_predictions(Loss::softmax_cross_entropy, 2, 101, 5);
  const Predictions five = random_predictions(Loss::softmax_cross_entropy, 5, 101, 6);
  for (const Predictions* p : {&two, &five}) {
    const auto n = static_cast<std::size_t>(p->outputs);
    double sum = 0.0;
    std::vector<float> probabilities(n);
    for (std::size_t i = 0; i < p->size(); ++i) {
      class_probabilities(p->loss, std::span(p->logits).subspan(i * n, n), probabilities);
      for (std::size_t c = n == 2 ? 1 : 0; c < n; ++c)
        sum += std::pow(double{probabilities[c]} - (p->labels[i] == c ? 1.0 : 0.0), 2);
    }
    const Evaluation e = evaluate(*p);
    EXPECT_NEAR(e.brier_score, sum / 101.0, 1e-12);
    EXPECT_EQ(e.log_loss, e.mean_loss);
  }
  EXPECT_TRUE(std::isnan(evaluate(random_predictions(Loss::hinge, 1, 5, 1)).brier_score));
  EXPECT_TRUE(std::isnan(evaluate(logistic({kNaN, 1}, {1, 1})).brier_score));
}

/// The four counts of a threshold, row by row. What has no probability is wrong.
ThresholdCounts counted(const Predictions& p, double threshold) {
  ThresholdCounts at{.threshold = threshold};
  for (std::size_t i = 0; i < p.size(); ++i) {
    std::vector<float> probabilities(2);
    class_probabilities(p.loss, {&p.logits[i], 1}, probabilities);
    const bool lost = std::isnan(probabilities[1]);
    const bool positive =
        lost ? p.labels[i] == 0 : probabilities[1] >= static_cast<float>(threshold);
    ++(positive           ? p.labels[i] == 1 ? at.true_positives : at.false_positives
       : p.labels[i] == 1 ? at.false_negatives
                          : at.true_negatives);
  }
  return at;
}

/// Logits of which some make the probabilities 0.1 and 0.5 themselves, some are NaN, and many
/// equal.
Predictions hostile_predictions() {
  Predictions p = random_predictions(Loss::logistic, 1, 300, 7);
  for (std::size_t i = 0; i < p.size(); i += 9) p.logits[i] = 0.0f;
  for (std::size_t i = 1; i < p.size(); i += 50) p.logits[i] = kNaN;
  for (std::size_t i = 2; i < p.size(); i += 70) p.logits[i] = kInfinity;
  for (std::size_t i = 3; i < p.size(); i += 70) p.logits[i] = -kInfinity;
  return p;
}

TEST(Thresholds, CountsAreThoseOfEachRow) {
  const Predictions all[] = {hostile_predictions(), logistic({}, {}), logistic({0, 1}, {1, 1}),
                             logistic({0, 1}, {0, 0}), logistic({kNaN, kNaN}, {1, 0})};
  for (const Predictions& p : all) {
    const Evaluation e = evaluate(p);
    ASSERT_EQ(e.thresholds.size(), std::size(Evaluation::kThresholds));
    EXPECT_FALSE(e.at_threshold);
    for (const ThresholdCounts& at : e.thresholds)
      EXPECT_EQ(to_json(at), to_json(counted(p, at.threshold))) << at.threshold;
    for (const double threshold : {0.0, 0.1, 0.5, 1.0}) {
      const Evaluation judged = evaluate(p, {}, threshold);
      ASSERT_TRUE(judged.at_threshold);
      EXPECT_EQ(to_json(*judged.at_threshold), to_json(counted(p, threshold))) << threshold;
      EXPECT_EQ(judged.confusion[3], judged.at_threshold->true_positives);
      EXPECT_EQ(judged.confusion[0], judged.at_threshold->true_negatives);
      // What no decision is in does not change.
      EXPECT_EQ(to_json(judged, {})["reliability"], to_json(e, {})["reliability"]);
      EXPECT_EQ(to_json(judged, {})["auc"], to_json(e, {})["auc"]);
    }
  }
  const ThresholdCounts none = evaluate(logistic({0, 1}, {1, 1}), {}, 0.1).at_threshold.value();
  EXPECT_EQ(none.sensitivity(), 1.0);
  EXPECT_EQ(none.ppv(), 1.0);
  EXPECT_TRUE(std::isnan(none.specificity()));
  EXPECT_TRUE(std::isnan(none.npv()));
  // Margins and more classes have none.
  EXPECT_TRUE(evaluate(random_predictions(Loss::hinge, 1, 9, 1)).thresholds.empty());
  EXPECT_TRUE(
      evaluate(random_predictions(Loss::softmax_cross_entropy, 3, 9, 1)).thresholds.empty());
  EXPECT_THROW(Evaluator(Loss::hinge, 1, {}, 0.5), InputError);
  EXPECT_THROW(Evaluator(Loss::softmax_cross_entropy, 3, {}, 0.5), InputError);
  EXPECT_THROW(Evaluator(Loss::squared, 1, {}, 0.5), InputError);
}

TEST(Thresholds, AreFoundAmongAllScores) {
  const Predictions p = hostile_predictions();
  Evaluator evaluator(Loss::logistic, 1);
  evaluator.add(p);
  std::vector<ThresholdCounts> all;  // of every score, the largest first
  std::set<float, std::greater<>> scores;
  for (const float z : p.logits) {
    std::vector<float> probabilities(2);
    class_probabilities(Loss::logistic, {&z, 1}, probabilities);
    if (!std::isnan(probabilities[1])) scores.insert(probabilities[1]);
  }
  all.reserve(scores.size());
  for (const float s : scores) all.push_back(counted(p, double{s}));
  for (const double share : {0.0, 0.3, 0.5, 0.6, 0.65, 0.7, 0.9, 0.97, 1.0}) {
    const ThresholdCounts* precise = nullptr;
    const ThresholdCounts* recalled = nullptr;
    for (const ThresholdCounts& at : all) {
      if (at.ppv() >= share && (!precise || at.sensitivity() > precise->sensitivity()))
        precise = &at;
      if (!recalled && at.sensitivity() >= share) recalled = &at;
    }
    for (const auto& [found, expected] : {std::pair{evaluator.at_precision(share), precise},
                                          std::pair{evaluator.at_recall(share), recalled}}) {
      ASSERT_EQ(found.has_value(), expected != nullptr) << share;
      if (!found) continue;
      EXPECT_EQ(found->true_positives, expected->true_positives) << share;
      EXPECT_EQ(found->false_positives, expected->false_positives) << share;
      // The number that is printed makes these very predictions.
      const double typed = std::stod(threshold_text(found->threshold));
      EXPECT_EQ(to_json(counted(p, typed))["false_positives"], found->false_positives) << share;
    }
  }
  EXPECT_FALSE(Evaluator(Loss::logistic, 1).at_precision(0.5));
  EXPECT_FALSE(Evaluator(Loss::logistic, 1).at_recall(0.5));
}

TEST(Evaluation, FindsHowReliableProbabilitiesAreInBinsOfEqualCounts) {
  Predictions p = logistic({}, {});
  for (int i = 0; i < 100; ++i) {
    p.logits.push_back(-5.0f + 0.001f * static_cast<float>(37 * i % 100));  // all near 0.007
    p.labels.push_back(i % 29 == 0 ? 1 : 0);
  }
  const auto bins_of = [](const Predictions& of) { return evaluate(of).reliability_by_count; };
  const std::vector<Evaluation::Bin> bins = bins_of(p);
  ASSERT_EQ(bins.size(), std::size_t{Evaluation::kBins});
  std::uint64_t rows = 0;
  double hits = 0.0;
  for (std::size_t i = 0; i < bins.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(bins[i].examples), 100.0 / 15.0, 1.0);
    if (i > 0) {
      EXPECT_GT(bins[i].confidence, bins[i - 1].confidence);
    }
    rows += bins[i].examples;
    hits += bins[i].share * static_cast<double>(bins[i].examples);
  }
  EXPECT_EQ(rows, 100u);
  EXPECT_NEAR(hits, 4.0, 1e-9);
  // The order of rows is nothing, and equal probabilities are in one bin.
  std::ranges::reverse(p.logits);
  std::ranges::reverse(p.labels);
  EXPECT_EQ(to_json(evaluate(p), {})["reliability_by_count"].size(), bins.size());
  EXPECT_EQ(bins_of(p)[3].share, bins[3].share);
  EXPECT_EQ(
      bins_of(logistic(std::vector<float>(40, 1.0f), std::vector<std::uint8_t>(40, 1))).size(), 1u);
  EXPECT_TRUE(bins_of(logistic({}, {})).empty());
  EXPECT_EQ(bins_of(logistic({kNaN, 1, kNaN}, {0, 1, 1})).at(0).examples, 1u);
  EXPECT_TRUE(bins_of(random_predictions(Loss::hinge, 1, 20, 1)).empty());
  // Of more classes: the largest p, and whether it is right.
  Predictions three{
      .loss = Loss::softmax_cross_entropy, .outputs = 3, .logits = {}, .labels = {0, 0, 1, 2}};
  for (int i = 0; i < 4; ++i)
    three.logits.insert(three.logits.end(), {std::log(8.0f), 0.0f, 0.0f});  // 0.8
  ASSERT_EQ(bins_of(three).size(), 1u);
  EXPECT_NEAR(bins_of(three)[0].confidence, 0.8, 1e-6);
  EXPECT_EQ(bins_of(three)[0].share, 0.5);
}

/// The numbers of one place, asked for at another: what comes in blocks is what comes at once.
TEST(Evaluation, OfBlocksIsThatOfAll) {
  for (const auto& [loss, outputs] : {std::pair{Loss::logistic, 1},
                                      {Loss::hinge, 1},
                                      {Loss::softmax_cross_entropy, 2},
                                      {Loss::softmax_cross_entropy, 5}}) {
    const Predictions all = random_predictions(loss, outputs, 333, 9);
    Evaluator evaluator(loss, outputs);
    for (std::size_t at = 0; at < all.size(); at += 50) {
      const std::size_t end = std::min(at + 50, all.size());
      const auto width = static_cast<std::size_t>(outputs);
      evaluator.add({.loss = loss,
                     .outputs = outputs,
                     .logits = {all.logits.begin() + static_cast<std::ptrdiff_t>(at * width),
                                all.logits.begin() + static_cast<std::ptrdiff_t>(end * width)},
                     .labels = {all.labels.begin() + static_cast<std::ptrdiff_t>(at),
                                all.labels.begin() + static_cast<std::ptrdiff_t>(end)}});
    }
    EXPECT_EQ(to_json(evaluator.evaluation(), {}), to_json(evaluate(all), {}));
  }
}

TEST(Probabilities, AddUpToOneAndFollowLogits) {
  float p[3];
  const float z[] = {1.0f, 3.0f, -200.0f};
  class_probabilities(Loss::softmax_cross_entropy, z, p);
  EXPECT_NEAR(p[0], 1.0 / (1.0 + std::exp(2.0)), 1e-7);
  EXPECT_NEAR(p[0] + p[1] + p[2], 1.0, 1e-6);
  EXPECT_EQ(predicted_class(Loss::softmax_cross_entropy, z), 1);
  const float bad[] = {1.0f, kNaN, 0.0f};
  class_probabilities(Loss::softmax_cross_entropy, bad, p);
  EXPECT_TRUE(std::isnan(p[0]));
  EXPECT_EQ(predicted_class(Loss::softmax_cross_entropy, bad), -1);
  for (const float large : {100.0f, -100.0f}) {
    class_probabilities(Loss::logistic, {&large, 1}, {p, 2});
    EXPECT_GT(std::min(p[0], p[1]), 0.0f);  // e^-100 is above the smallest float
    EXPECT_EQ(std::max(p[0], p[1]), 1.0f);
    EXPECT_EQ(p[1] > 0.5f, large > 0.0f);
  }
  const float zero = 0.0f;
  EXPECT_EQ(predicted_class(Loss::logistic, {&zero, 1}), 0);
}

TEST(EvaluationReport, SaysWhereTheMajorityIsNotBeaten) {
  Predictions p = logistic(std::vector<float>(100, -1.0f), std::vector<std::uint8_t>(100, 0));
  for (int i = 0; i < 3; ++i) p.labels[static_cast<std::size_t>(i)] = 1;
  const std::vector<std::string> names = {"NO", "YES"};
  const auto rows = table_of(evaluate(p), names);
  EXPECT_EQ(rows[0].second, "97.00 %");
  EXPECT_EQ(rows[1].second, "no better than always saying NO");
  EXPECT_EQ(to_json(evaluate(p), names)["majority_class"], "NO");
  EXPECT_EQ(to_json(evaluate(p), names)["no_better_than_majority"], true);
  EXPECT_TRUE(to_json(evaluate(p), names)["classes"][1]["precision"].is_null());
  p.logits[0] = 1.0f;
  EXPECT_EQ(table_of(evaluate(p), names)[1].first, "test loss");
  EXPECT_EQ(to_json(evaluate(p), names)["no_better_than_majority"], false);
}

/// Whatever the rows are, there are all pictures: a missing file would tell of private rows.
TEST(EvaluationReport, DrawsPicturesOfEverything) {
  const TemporaryFolder folder;
  const Predictions cases[] = {
      random_predictions(Loss::logistic, 1, 300, 1),
      random_predictions(Loss::hinge, 1, 30, 1),
      random_predictions(Loss::softmax_cross_entropy, 12, 300, 1),
      random_predictions(Loss::softmax_cross_entropy, 30, 300, 1),
      logistic({1.0f}, {1}),
      logistic({kNaN, kNaN}, {1, 0}),
      logistic({}, {}),
  };
  for (const Predictions& p : cases) {
    const std::string names[] = {"it's\nsystem('touch x')", std::string(60, 'y') + "äöü"};
    const bool judged = gives_probabilities(p.loss) && p.outputs <= 2;
    if (!draw_evaluation(evaluate(p, {}, judged ? std::optional(0.3) : std::nullopt),
                         {names[0], names[1]}, "a 'title'", folder.path(), 0600)) {
      if (p.size() == 300 && p.outputs == 1) GTEST_SKIP() << "gnuplot is missing";
      ADD_FAILURE() << "no picture of " << p.size() << " predictions of " << p.outputs;
    }
    for (const char* name : kEvaluationPictures) {
      EXPECT_EQ(content_of(folder / name).substr(0, 4), "\x89PNG");
      std::filesystem::remove(folder / name);
    }
  }
}

/// A line of metrics on the way needs no curves. Its numbers are those of the whole evaluation, to
/// the last bit.
TEST(Evaluation, MetricsAloneAreThoseOfTheWhole) {
  std::vector<Predictions> all;
  for (const auto& [loss, outputs] :
       {std::pair{Loss::logistic, 1}, std::pair{Loss::hinge, 1},
        std::pair{Loss::softmax_cross_entropy, 2}, std::pair{Loss::softmax_cross_entropy, 5}})
    for (const std::size_t examples :
         {std::size_t{0}, std::size_t{1}, std::size_t{40}, std::size_t{3000}})
      all.push_back(random_predictions(loss, outputs, examples, 7));
  all.push_back(logistic({0.5f, kNaN, -1.0f, 2.0f}, {1, 1, 0, 0}));
  for (const Predictions& p : all) {
    const Evaluation whole = evaluate(p);
    const Evaluation some = evaluate(p, {}, {}, EvaluationParts::metrics);
    const Metrics of_whole = metrics_of(whole);
    const Metrics of_some = metrics_of(some);
    ASSERT_EQ(of_some.values.size(), of_whole.values.size());
    for (std::size_t i = 0; i < of_whole.values.size(); ++i)
      EXPECT_EQ(std::bit_cast<std::uint64_t>(of_some.values[i]),
                std::bit_cast<std::uint64_t>(of_whole.values[i]))
          << metrics(of_whole.kind)[i].key << " of " << p.size();
    EXPECT_EQ(some.confusion, whole.confusion);
    EXPECT_TRUE(some.thresholds.empty() && some.reliability_by_count.empty());
    for (const Evaluation::ClassFigures& of : some.of_class)
      EXPECT_TRUE(of.roc.empty() && of.precision_recall.empty());
  }
}

}  // namespace
}  // namespace cudp
