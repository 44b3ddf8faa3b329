// Regression from a table to predictions: a target with public bounds, both losses, the metrics,
// and what is refused.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "runtime/base/safetensors.hpp"
#include "tests/support/cudp_process.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int kNumbers = 9;

/// Days in a ward by nine numbers and three categories: 12 columns, of which a linear model
/// explains 0.8 of the variance.
std::string stays(std::size_t rows, unsigned seed) {
  constexpr double kWeights[kNumbers] = {16, -12, 8, 6.4, -4.8, 3.2, 0, 2.4, -1.6};
  constexpr double kWards[] = {0, 3, -2, 1};
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::string csv = "x0,x1,x2,x3,x4,x5,x6,x7,x8,ward,smoker,kind,days\n";
  for (std::size_t i = 0; i < rows; ++i) {
    double days = 20.0 + 2.7 * normal(random);
    for (const double w : kWeights) {
      const double x = std::clamp(0.5 + 0.25 * normal(random), 0.0, 1.0);
      days += w * x;
      csv += fmt::format("{:.3f},", x);
    }
    const std::size_t ward = random() % 4;
    const std::size_t smoker = random() % 2;
    const std::size_t kind = random() % 3;
    days += kWards[ward] + 2.0 * static_cast<double>(smoker) + static_cast<double>(kind) - 1.0;
    csv += fmt::format("{},{},{},{:.3f}\n", "abcd"[ward], smoker == 1 ? "ja" : "nein", "uvw"[kind],
                       days);
  }
  return csv;
}

std::string schema(const std::string& target = "min = 0, max = 60") {
  std::string text = "name = \"stays\"\ncolumns = [\n";
  for (int i = 0; i < kNumbers; ++i)
    text += fmt::format("  {{name = \"x{}\", kind = \"numeric\", min = 0, max = 1}},\n", i);
  return text + R"(  {name = "ward", kind = "categorical", values = ["a", "b", "c", "d"]},
  {name = "smoker", kind = "categorical", values = ["ja", "nein"]},
  {name = "kind", kind = "categorical", values = ["u", "v", "w"]},
  {name = "days", kind = "target", )" +
         target + "},\n]\n";
}

class TargetCli : public testing::Test {
 protected:
  TargetCli() {
    write_text(folder_ / "stays.csv", stays(2'000, 1));
    write_text(folder_ / "held_out.csv", stays(2'000, 2));
    write_text(folder_ / "schema.toml", schema());
  }
  Finished train(const Arguments& more) const {
    return run_cudp(folder_, with({"train", "--dataset", folder_ / "stays.csv", "--schema",
                                   folder_ / "schema.toml", "--out", folder_ / "run", "--quiet"},
                                  more));
  }
  Json eval() const {
    const Finished e = run_cudp(
        folder_, {"eval", folder_ / "run", "--dataset", folder_ / "held_out.csv", "--json"});
    EXPECT_EQ(e.exit, 0) << e.err;
    return Json::parse(e.out);
  }

  TemporaryFolder folder_;
};

const Arguments kBudget = {"--epsilon", "3", "--delta", "1e-6"};

/// At epsilon 3 R2 is within 0.05 of the same model without privacy, as a mean of 3 seeds.
TEST_F(TargetCli, PrivacyCostsLittle) {
  write_text(folder_ / "stays.csv", stays(20'000, 1));
  write_text(folder_ / "held_out.csv", stays(20'000, 2));
  const auto mean_r2 = [&](const Arguments& more) {
    double sum = 0.0;
    for (int seed = 1; seed <= 3; ++seed) {
      fs::remove_all(folder_ / "run");
      const Finished f = train(with(more, {"--seed", std::to_string(seed)}));
      EXPECT_EQ(f.exit, 0) << f.err;
      sum += eval()["r2"].get<double>();
    }
    return sum / 3.0;
  };
  const double without = mean_r2({"--method", "sgd"});
  const double squared = mean_r2(kBudget);
  const double huber = mean_r2(with(kBudget, {"--loss", "huber"}));
  std::printf("R2 %.4f without privacy, %.4f with, %.4f by the Huber loss\n", without, squared,
              huber);
  EXPECT_NEAR(without, 0.8, 0.05);
  EXPECT_GE(squared, without - 0.05);
  EXPECT_GE(huber, without - 0.05);
}

/// Every method that clips gradients, on codes and in hidden layers.
TEST_F(TargetCli, MethodsThatClipGradientsTrain) {
  for (const Arguments& more :
       {Arguments{}, Arguments{"--model", "mlp"}, Arguments{"--clipping", "automatic"},
        Arguments{"--model", "mlp", "--clipping", "per-layer"},
        Arguments{"--method", "dpsgd-decay"}, Arguments{"--method", "dpsgd-quantile"},
        Arguments{"--method", "adp-sgd"}, Arguments{"--method", "dpsgd-ts", "--model", "mlp"},
        Arguments{"--method", "adaclip"}, Arguments{"--method", "norm-bound", "--loss", "huber"}}) {
    fs::remove_all(folder_ / "run");
    const Finished f =
        train(with(with(kBudget, {"--batch", "64", "--steps", "4", "--seed", "1"}), more));
    EXPECT_EQ(f.exit, 0) << f.err;
  }
  fs::remove_all(folder_ / "run");
  const Finished dpis =
      train(with(kBudget, {"--batch", "20", "--steps", "4", "--seed", "1", "--method", "dpis"}));
  EXPECT_EQ(dpis.exit, 0) << dpis.err;
}

/// Predictions are numbers in the target's unit, and their errors are those that eval states.
TEST_F(TargetCli, PredictionsAreWhatEvalMeasures) {
  ASSERT_EQ(train(with(kBudget, {"--seed", "1"})).exit, 0);
  const Json e = eval();
  EXPECT_FALSE(e.contains("auc"));
  EXPECT_FALSE(e.contains("classes"));
  const Finished p = run_cudp(folder_, {"predict", folder_ / "run", "--dataset",
                                        folder_ / "held_out.csv", "--out", folder_ / "p.csv"});
  ASSERT_EQ(p.exit, 0) << p.err;
  std::istringstream predictions(content_of(folder_ / "p.csv"));
  std::istringstream rows(content_of(folder_ / "held_out.csv"));
  std::string prediction;
  std::string row;
  std::getline(predictions, prediction);
  EXPECT_EQ(prediction, "row,prediction");
  std::getline(rows, row);
  double squares = 0.0;
  double distances = 0.0;
  double sum = 0.0;
  double square_sum = 0.0;
  int n = 0;
  while (std::getline(predictions, prediction) && std::getline(rows, row)) {
    const double found = std::stod(prediction.substr(prediction.find(',') + 1));
    const double days = std::clamp(std::stod(row.substr(row.rfind(',') + 1)), 0.0, 60.0);
    EXPECT_TRUE(found >= 0.0 && found <= 60.0);
    squares += (found - days) * (found - days);
    distances += std::fabs(found - days);
    sum += days;
    square_sum += days * days;
    ++n;
  }
  ASSERT_EQ(n, 2'000);
  const double variance = square_sum / n - sum / n * sum / n;
  EXPECT_NEAR(e["rmse"].get<double>(), std::sqrt(squares / n), 1e-4);
  EXPECT_NEAR(e["mae"].get<double>(), distances / n, 1e-4);
  EXPECT_NEAR(e["mean_baseline_rmse"].get<double>(), std::sqrt(variance), 1e-4);
  EXPECT_NEAR(e["r2"].get<double>(), 1.0 - squares / n / variance, 1e-4);
}

/// What a program without cudp needs stands in the model's metadata.
TEST_F(TargetCli, TheReleasedModelKnowsItsTarget) {
  ASSERT_EQ(train(with(kBudget, {"--seed", "1", "--loss", "huber", "--huber-delta", "3"})).exit, 0);
  const TensorFile model =
      decode_safetensors(content_of(folder_ / "run/release/model.safetensors"), "model");
  EXPECT_EQ(model.metadata.at("loss"), "huber");
  EXPECT_NEAR(std::stod(model.metadata.at("huber-delta")), 0.1, 1e-7);  // of 60 on -1..1
  EXPECT_EQ(model.metadata.at("target-min"), "0");
  EXPECT_EQ(model.metadata.at("target-max"), "60");
  EXPECT_EQ(model.metadata.at("classes"), "1");
}

TEST_F(TargetCli, TestRowsGiveMetricsOfTheTarget) {
  const Finished f = train(with(kBudget, {"--seed", "1", "--json", "--test-data",
                                          folder_ / "held_out.csv", "--test-data-is-public"}));
  ASSERT_EQ(f.exit, 0) << f.err;
  const Json j = Json::parse(f.out);
  for (const char* key : {"rmse", "mae", "r2", "mean_baseline_rmse"})
    EXPECT_TRUE(j.contains(key)) << key;
  EXPECT_FALSE(j.contains("test_accuracy"));
  EXPECT_FALSE(j.contains("majority_class"));
  EXPECT_NE(content_of(folder_ / "run/release/metrics.jsonl").find("\"rmse\""), std::string::npos);
  EXPECT_FALSE(fs::exists(folder_ / "run/release/confusion.png"));
}

/// Of private test rows nothing is on stdout, not even whether the model is better than the mean.
TEST_F(TargetCli, PrivateTestRowsShowInNothing) {
  const Finished f = train(with(kBudget, {"--seed", "1", "--test-data", folder_ / "held_out.csv"}));
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_EQ(f.out.find("mean"), std::string::npos) << f.out;
  EXPECT_EQ(f.out.find("RMSE of"), std::string::npos);
  EXPECT_NE(f.out.find("test RMSE"), std::string::npos);
  EXPECT_EQ(content_of(folder_ / "run/release/metrics.jsonl").find("rmse"), std::string::npos);
}

TEST_F(TargetCli, RefusesWhatIsWrongInOneLine) {
  write_text(folder_ / "open.toml", schema("fill = 3"));
  write_text(folder_ / "bounds.toml", schema("min = 60, max = 0"));
  const auto expect = [&](const Arguments& more, const std::string& sentence) {
    const Finished f = train(with(kBudget, more));
    EXPECT_EQ(f.exit, 2);
    EXPECT_NE(f.err.find("cudp: "), std::string::npos) << f.err;
    EXPECT_NE(f.err.find(sentence + "\n"), std::string::npos) << f.err;
    EXPECT_EQ(std::ranges::count(f.err, '\n'), 1) << f.err;
    EXPECT_FALSE(fs::exists(folder_ / "run"));
  };
  for (const char* method : {"dp-agd", "outpert", "objpert", "privgene"})
    expect({"--method", method},
           std::string("--method: expected one that clips each example's gradient with a target, "
                       "found ") +
               method + ", whose proof is of losses of two classes");
  expect({"--method", "norm-bound", "--size-is-public"},
         "--loss: expected huber with --method norm-bound, found squared, whose gradient has no "
         "bound");
  expect({"--model", "logistic"},
         "--model: expected linear, mlp or a .toml file of layers with a target, found logistic");
  expect({"--huber-delta", "3"},
         "--huber-delta: expected with --loss huber only, found it with squared");
  expect({"--class-weights", "1,2"},
         "--class-weights: expected with classes only, found with a target");
  expect({"--loss", "absolute"}, "--loss: expected one of squared, huber, found \"absolute\"");
  expect({"--schema", folder_ / "bounds.toml"}, "expected 'min' below 'max', found 60 and 0");
  EXPECT_EQ(train(with(kBudget, {"--schema", folder_ / "open.toml"})).exit, 2);
}

/// Bounds decide the Huber loss's threshold. All targets lie on a bound of either schema, so that
/// the scaled rows are the same, and only the loss is another: its gradients must not meet the
/// noise of before.
TEST_F(TargetCli, AResumeWithOtherBoundsIsRefused) {
  std::string csv = "x,days\n";
  for (int i = 0; i < 200; ++i) csv += i % 3 == 0 ? "0.5,-1000\n" : "0.25,1000\n";
  const auto bounds = [](int max) {
    return fmt::format(
        "name = \"far\"\ncolumns = [\n  {{name = \"x\", kind = \"numeric\", min = 0, max = 1}},\n"
        "  {{name = \"days\", kind = \"target\", min = 0, max = {}}},\n]\n",
        max);
  };
  write_text(folder_ / "far.csv", csv);
  write_text(folder_ / "far.toml", bounds(10));
  CudpProcess process(folder_, {"train",
                                "--dataset",
                                folder_ / "far.csv",
                                "--schema",
                                folder_ / "far.toml",
                                "--out",
                                folder_ / "run",
                                "--quiet",
                                "--size-is-public",
                                "--sigma",
                                "40",
                                "--delta",
                                "1e-5",
                                "--batch",
                                "20",
                                "--steps",
                                "2000000",
                                "--checkpoint-every",
                                "100",
                                "--loss",
                                "huber",
                                "--huber-delta",
                                "1",
                                "--seed",
                                "7"});
  wait_until([&] { return !newest_checkpoint_file(folder_ / "run").empty(); });
  process.signal(SIGKILL);
  process.wait();
  ASSERT_FALSE(newest_checkpoint_file(folder_ / "run").empty());
  write_text(folder_ / "far.toml", bounds(20));
  const Finished f = run_cudp(folder_, {"train", "--resume", folder_ / "run", "--quiet"});
  EXPECT_EQ(f.exit, 2) << f.err;
  EXPECT_NE(f.err.find("found other data or another schema"), std::string::npos) << f.err;
}

TEST_F(TargetCli, LossesOfATargetAreRefusedWithClasses) {
  const SmallTable small = write_small_table(folder_);
  const Finished f =
      run_cudp(folder_, {"train", "--dataset", small.table, "--schema", small.schema, "--epsilon",
                         "1", "--delta", "1e-5", "--loss", "huber", "--out", folder_ / "run"});
  EXPECT_EQ(f.exit, 2);
  EXPECT_NE(f.err.find("cudp: --loss: expected with a target only, found huber with classes"),
            std::string::npos)
      << f.err;
}

TEST_F(TargetCli, SchemaDraftsATarget) {
  const Finished f =
      run_cudp(folder_, {"schema", folder_ / "stays.csv", "--target", "days", "--public"});
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_NE(f.out.find("{name = \"days\", kind = \"target\", min = "), std::string::npos) << f.out;
  const Finished both =
      run_cudp(folder_, {"schema", folder_ / "stays.csv", "--target", "days", "--label", "days"});
  EXPECT_EQ(both.exit, 2);
  EXPECT_EQ(both.err, "cudp: --target: expected either --label or --target, found both\n");
}

}  // namespace
}  // namespace cudp
