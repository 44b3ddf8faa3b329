// What is measured by a model's logits, against the oracle.
#include "runtime/results/metrics.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "runtime/base/error.hpp"
#include "runtime/results/curves.hpp"
#include "tests/support/reference/network.hpp"
#include "tests/support/temporary_folder.hpp"

namespace cudp {
namespace {

struct Case {
  const char* name;
  Loss loss;
  int outputs;
};
void PrintTo(const Case& c, std::ostream* os) { *os << c.name; }

class MetricsOf : public testing::TestWithParam<Case> {
 protected:
  /// Logits that differ from each other, labels in turn.
  static Predictions predictions(std::size_t examples) {
    const auto& [name, loss, outputs] = GetParam();
    const auto classes = static_cast<std::size_t>(outputs == 1 ? 2 : outputs);
    Predictions p{.loss = loss, .outputs = outputs, .logits = {}, .labels = {}};
    for (std::size_t i = 0; i < examples; ++i) {
      for (int c = 0; c < outputs; ++c)
        p.logits.push_back(3.0f *
                           std::sin(static_cast<float>(7 * i + 1) + 2.0f * static_cast<float>(c)));
      p.labels.push_back(static_cast<std::uint8_t>(i % classes));
    }
    return p;
  }
};

TEST_P(MetricsOf, AreThoseOfTheOracle) {
  Network net;
  net.outputs = GetParam().outputs;
  for (const std::size_t n : {1, 15, 16, 17, 100}) {
    const Predictions p = predictions(n);
    const std::vector<double> each = losses(p);
    ASSERT_EQ(each.size(), n);
    double correct = 0.0;
    double sum = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
      const auto begin = p.logits.begin() + static_cast<std::ptrdiff_t>(i) * p.outputs;
      const reference::Values z(begin, begin + p.outputs);
      const double loss = reference::loss(p.loss, z, p.labels[i], nullptr);
      EXPECT_NEAR(each[i], loss, 1e-6 * (1 + loss));
      sum += loss;
      correct += reference::predicted_class(net, z) == p.labels[i] ? 1.0 : 0.0;
    }
    const Metrics m = metrics_of(evaluate(p));
    ASSERT_EQ(m.values.size(), metrics(PredictionKind::classes).size());
    EXPECT_EQ(m.accuracy(), correct / static_cast<double>(n));
    EXPECT_EQ(m.values[0], *m.accuracy());
    EXPECT_NEAR(m.values[1], sum / static_cast<double>(n), 1e-6 * (1 + sum));
  }
}

TEST_P(MetricsOf, NothingAreZeroOrNotDefined) {
  const Metrics m = metrics_of(evaluate(predictions(0)));
  EXPECT_EQ(m.accuracy(), 0.0);
  EXPECT_EQ(m.of("test_loss"), 0.0);
  for (std::size_t i = 2; i < m.values.size(); ++i)
    EXPECT_TRUE(std::isnan(m.values[i])) << metrics(PredictionKind::classes)[i].key;
}

/// A model that diverged is never right.
TEST_P(MetricsOf, NaNAreWrong) {
  Predictions p = predictions(4);
  p.logits.assign(p.logits.size(), std::numeric_limits<float>::quiet_NaN());
  const Metrics m = metrics_of(evaluate(p));
  EXPECT_EQ(m.accuracy(), 0.0);
  EXPECT_TRUE(std::isnan(m.values[1]));
  EXPECT_EQ(m.of("auc"), 0.0);
  EXPECT_EQ(m.of("balanced_accuracy"), 0.0);
  EXPECT_TRUE(std::isnan(*m.of("calibration_error")));
}

INSTANTIATE_TEST_SUITE_P(All, MetricsOf,
                         testing::Values(Case{"softmax", Loss::softmax_cross_entropy, 10},
                                         Case{"two_classes", Loss::softmax_cross_entropy, 2},
                                         Case{"logistic", Loss::logistic, 1},
                                         Case{"hinge", Loss::hinge, 1}),
                         [](const auto& i) { return std::string(i.param.name); });

TEST(Metrics, AreReadBack) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<MetricsRow> rows = {
      {1.0, 10, 0.5, 0.1, {{0.9, 0.3, 0.5, 0.6, 0.8, 0.95, 0.1, 0.7, 0.2, 0.3}}},
      {2.0, 20, 0.6, 0.1, {{1, 0.2, 0.5, 0.6, 1, nan, nan, nan, 0.1, 0.2}}}};
  const std::string text = encode_metrics(rows);
  EXPECT_EQ(
      text.substr(0, text.find('\n')),
      R"({"epoch":1.0,"step":10,"epsilon":0.5,"learning_rate":0.1,"test_accuracy":0.9,"test_loss":0.3,"majority_baseline":0.5,"log_loss_of_class_shares":0.6,"balanced_accuracy":0.8,"auc":0.95,"calibration_error":0.1,"average_precision":0.7,"brier_score":0.2,"log_loss":0.3})");
  EXPECT_EQ(text.find("seconds"), std::string::npos);  // no clock
  EXPECT_EQ(encode_metrics(decode_metrics(text)), text);
  EXPECT_EQ(encode_metrics(decode_metrics(encode_metrics(without_test(rows)))),
            encode_metrics(without_test(rows)));
  EXPECT_FALSE(without_test(rows)[0].test.accuracy().has_value());
  EXPECT_TRUE(decode_metrics("").empty());
  // Of a version that did not know the last metric.
  const auto old =
      decode_metrics(R"({"epoch":1,"step":1,"epsilon":1,"learning_rate":1,"test_accuracy":0.5})");
  EXPECT_EQ(old.at(0).test.accuracy(), 0.5);
  EXPECT_TRUE(std::isnan(old.at(0).test.values.at(1)));
  EXPECT_THROW(decode_metrics("{\"epoch\":1}\n"), Error);
}

/// Rows of a test set in which a class has this share.
std::vector<MetricsRow> rows_of_share(double majority, double auc) {
  return {{1.0, 10, 0.5, 0.1, {{majority, 0.3, majority, 0.6, 0.5, auc, 0.1, 0.2, 0.1, 0.3}}}};
}

/// Of private rows the metric tells nothing.
TEST(Curves, ShowWhatIsStatedOrFitsPublicRows) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const bool is_public : {false, true}) {
    const auto metric = [&](double majority, double auc, const char* stated = "") {
      return curve_metric(rows_of_share(majority, auc), stated, is_public);
    };
    EXPECT_EQ(metric(0.9628, 0.7), is_public ? "auc" : "test_accuracy");
    EXPECT_EQ(metric(0.9628, nan), is_public ? "balanced_accuracy" : "test_accuracy");
    EXPECT_EQ(metric(0.6, 0.7), "test_accuracy");
    EXPECT_EQ(metric(0.9628, 0.7, "accuracy"), "test_accuracy");
    EXPECT_EQ(metric(0.6, 0.7, "balanced-accuracy"), "balanced_accuracy");
    EXPECT_EQ(metric(0.6, 0.7, "average-precision"), "average_precision");
    EXPECT_EQ(curve_metric(without_test(rows_of_share(0.97, 0.5)), "", is_public), "test_accuracy");
    EXPECT_EQ(curve_metric({}, "", is_public), "test_accuracy");
  }
}

/// Draws the curves, and waits until they are drawn. Returns false if gnuplot is missing.
bool draw_curves(const std::vector<MetricsRow>& rows, const std::string& title,
                 const std::filesystem::path& picture,
                 const std::string& metric = "test_accuracy") {
  Pictures pictures;
  return start_curves(rows, title, picture, metric, 0644, pictures) && pictures.finish();
}

/// Also where the metric is not defined: which files there are would tell.
TEST(Curves, OfNoNumbersAreDrawn) {
  const TemporaryFolder folder;
  const auto rows = rows_of_share(0.5, std::numeric_limits<double>::quiet_NaN());
  if (!draw_curves(rows, "a test", folder / "some.png")) GTEST_SKIP() << "gnuplot is missing";
  EXPECT_TRUE(draw_curves(rows, "a test", folder / "none.png", "auc"));
}

TEST(Curves, AreDrawn) {
  const TemporaryFolder folder;
  const std::string picture = folder / "it's a picture.png";
  if (!draw_curves({{1.0, 10, 0.5, 0.1, {{0.9, 0.3}}}, {2.0, 20, 0.6, 0.1, {{0.95, 0.2}}}},
                   "it's a test", picture))
    GTEST_SKIP() << "gnuplot is missing";
  EXPECT_EQ(content_of(picture).substr(0, 4), "\x89PNG");
  EXPECT_FALSE(draw_curves({}, "nothing", folder / "none.png"));
}

}  // namespace
}  // namespace cudp
