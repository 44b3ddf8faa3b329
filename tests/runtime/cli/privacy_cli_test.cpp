// cudp account and cudp calibrate, through their functions.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "privacy/accountant.hpp"
#include "privacy/rdp/curve.hpp"
#include "privacy/rdp/default_orders.hpp"
#include "privacy/rdp/sampled_gaussian.hpp"
#include "privacy/rdp/zcdp.hpp"
#include "runtime/base/error.hpp"
#include "runtime/cli/answer.hpp"
#include "runtime/cli/commands.hpp"

namespace cudp {
namespace {

using nlohmann::json;
using privacy::Release;

struct ProgramEnd {
  int code = 0;
  std::string out;
  std::string error;
};

/// What the program would do with these arguments.
ProgramEnd cudp(const std::string& arguments) {
  CLI::App app{"cudp"};
  CommandBody body;
  add_account_command(app, body);
  add_calibrate_command(app, body);
  ProgramEnd outcome;
  std::ostringstream captured;
  std::streambuf* const stdout_buffer = std::cout.rdbuf(captured.rdbuf());
  try {
    app.parse(arguments);
    outcome.code = body.run();
  } catch (const CLI::ParseError& usage) {
    outcome.code = usage.get_exit_code() == 0 ? 0 : static_cast<int>(Exit::bad_input);
    outcome.error = usage.what();
  } catch (const Error& error) {
    outcome.code = static_cast<int>(error.code());
    outcome.error = error.what();
  }
  std::cout.rdbuf(stdout_buffer);
  outcome.out = captured.str();
  return outcome;
}

json answer(const std::string& arguments) {
  const ProgramEnd outcome = cudp(arguments + " --json");
  EXPECT_EQ(outcome.code, 0) << arguments << ": " << outcome.error;
  return json::parse(outcome.out, nullptr, false);
}

/// Refused with this code and one line that contains `reason`.
void expect_refused(const std::string& arguments, int code, const std::string& reason) {
  const ProgramEnd outcome = cudp(arguments);
  EXPECT_EQ(outcome.code, code) << arguments;
  EXPECT_NE(outcome.error.find(reason), std::string::npos) << arguments << ": " << outcome.error;
  EXPECT_EQ(outcome.error.find('\n'), std::string::npos) << outcome.error;
  EXPECT_EQ(outcome.out, "") << arguments;
}

class PhasesFile : public ::testing::Test {
 protected:
  std::string with(const std::string& text) {
    std::ofstream(path_) << text;
    return path_.string();
  }
  void TearDown() override { std::filesystem::remove(path_); }

 private:
  std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("cudp_phases_" + std::to_string(getpid()));
};

const std::string kUsual = "account --q 0.01 --sigma 1.0 --steps 2000 ";

privacy::Composition usual() {
  return {.releases = {{privacy::PoissonGaussian{.q = 0.01, .sigma = 1.0}, 2000}}};
}

/// The accountant of --accountant rdp, at its default orders.
privacy::Accountant by_renyi(std::vector<Release> releases) {
  const std::span<const double> orders = privacy::default_orders();
  return privacy::Accountant(
      {.releases = std::move(releases)},
      {.kind = privacy::AccountantKind::rdp, .orders = {orders.begin(), orders.end()}});
}

TEST(Account, EpsilonFromDelta) {
  const json found = answer(kUsual + "--delta 1e-6");
  const privacy::PrivacyBound exact = privacy::Accountant(usual()).epsilon(1e-6);
  EXPECT_EQ(found["epsilon"], exact.epsilon);
  EXPECT_EQ(found["epsilon_add"], *exact.epsilon_add);
  EXPECT_EQ(found["epsilon_remove"], *exact.epsilon_remove);
  EXPECT_EQ(found["epsilon_lower"], exact.epsilon_lower);
  EXPECT_EQ(found["delta"], 1e-6);
  EXPECT_EQ(found["accountant"], "pld");
  EXPECT_EQ(found["bound"], "pld");
  EXPECT_EQ(found["group"], 1);
  EXPECT_EQ(found["sampling"], "poisson");
  EXPECT_EQ(found["q"], 0.01);
  EXPECT_EQ(found["steps"], 2000);
}

TEST(Account, DeltaFromEpsilon) {
  const json found = answer(kUsual + "--epsilon 2");
  const privacy::PrivacyBound exact = privacy::Accountant(usual()).delta(2.0);
  EXPECT_EQ(found["delta"], exact.delta);
  EXPECT_EQ(found["delta_lower"], exact.delta_lower);
  EXPECT_EQ(found["epsilon"], 2.0);
}

TEST(Account, RenyiDivergencesAlone) {
  const json found = answer(kUsual + "--delta 1e-6 --accountant rdp");
  const double usual_orders = by_renyi(usual().releases).epsilon(1e-6).epsilon;
  EXPECT_NEAR(found["epsilon"], usual_orders, 1e-10 * usual_orders);
  EXPECT_EQ(found["order"], 7.2);
  EXPECT_EQ(found["accountant"], "rdp");
  EXPECT_LT(answer(kUsual + "--delta 1e-6 --accountant rdp --orders adaptive")["epsilon"],
            usual_orders);
  EXPECT_EQ(answer(kUsual + "--delta 1e-6 --accountant rdp --orders 2,4.5,64")["order"], 4.5);
}

TEST(Account, GaussianDpSaysThatItIsAnEstimate) {
  const json found = answer(kUsual + "--delta 1e-6 --accountant gdp");
  EXPECT_EQ(found["is_bound"], false);
  EXPECT_LT(found["epsilon"], privacy::Accountant(usual()).epsilon(1e-6).epsilon_lower);
  EXPECT_NE(cudp(kUsual + "--delta 1e-6 --accountant gdp").out.find("not an upper bound"),
            std::string::npos);
}

TEST(Account, GroupsAndFixedSizeBatches) {
  privacy::Composition four = usual();
  four.group = 4;
  const privacy::PrivacyBound exact = privacy::Accountant(four).epsilon(1e-6);
  const json found = answer(kUsual + "--delta 1e-6 --group 4");
  EXPECT_EQ(found["epsilon"], exact.epsilon);
  EXPECT_EQ(found["group"], 4);

  const json groups = answer(kUsual + "--delta 1e-6 --groups 3")["groups"];
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[2]["group"], 3);
  EXPECT_GE(groups[2]["vadhan"], groups[2]["epsilon"]);
  EXPECT_EQ(groups[2]["k_epsilon_1"], 3.0 * groups[0]["epsilon"].get<double>());

  privacy::Composition fixed;
  fixed.releases = {{privacy::FixedSizeGaussian{.n = 50000, .batch = 500, .sigma = 2.0}, 2000}};
  const json without =
      answer("account --sampling fixed --n 50000 --batch 500 --sigma 2 --steps 2000 --delta 1e-6");
  EXPECT_EQ(without["epsilon"], privacy::Accountant(fixed).epsilon(1e-6).epsilon);
  EXPECT_EQ(without["sampling"], "fixed");
  fixed.relation = privacy::NeighbouringRelation::replace_one;
  EXPECT_EQ(
      answer("account --sampling fixed --n 50000 --batch 500 --sigma 2 --steps 2000 "
             "--delta 1e-6 --accountant rdp --orders adaptive --neighbours replace-one")["epsilon"],
      privacy::epsilon_by_rdp(fixed.releases, 1e-6, {.relation = fixed.relation}).epsilon);
}

const std::string kAllocated =
    "account --sampling allocation --steps-per-epoch 10 --epochs 2 --sigma 1.5 ";

TEST(Account, RandomAllocation) {
  const privacy::Composition epochs{.releases = {{privacy::AllocatedGaussian{10, 1.5}, 2}}};
  const privacy::PrivacyBound exact = privacy::Accountant(epochs).epsilon(1e-5);
  const json found = answer(kAllocated + "--delta 1e-5");
  EXPECT_EQ(found["epsilon"], exact.epsilon);
  EXPECT_EQ(found["epsilon_add"], exact.epsilon_add);
  EXPECT_EQ(found["epsilon_remove"], exact.epsilon_remove);
  EXPECT_EQ(found["epsilon_lower"], exact.epsilon_lower);
  EXPECT_EQ(found["sampling"], "allocation");
  EXPECT_EQ(found["mechanism"], "allocated-gaussian");
  EXPECT_EQ(found["steps_per_epoch"], 10);
  EXPECT_EQ(found["epochs"], 2);
  EXPECT_FALSE(found.contains("steps"));
  EXPECT_NE(cudp(kAllocated + "--delta 1e-5")
                .out.find("allocated-gaussian, steps_per_epoch 10, sigma 1.5, epochs 2"),
            std::string::npos);
  // Steps are those of a training, rounded; one step is the Gaussian mechanism.
  const std::string training = "account --sampling allocation --epochs 2 --sigma 1.5 --delta 1e-5 ";
  EXPECT_EQ(answer(training + "--examples 1040 --batch 100")["epsilon"], exact.epsilon);
  EXPECT_EQ(answer(training + "--steps-per-epoch 1")["epsilon"],
            answer("account --q 1 --steps 2 --sigma 1.5 --delta 1e-5")["epsilon"]);
  EXPECT_EQ(answer(kAllocated + "--epsilon 1")["delta"],
            privacy::Accountant(epochs).delta(1.0).delta);
}

TEST(Account, SeveralUsesOfAnExampleInAnEpoch) {
  // Two of ten steps cost no more than one of five, twice as often.
  const std::string once = "account --sampling allocation --steps-per-epoch 5 --epochs 4 ";
  const json found = answer(kAllocated + "--delta 1e-5 --uses 2");
  EXPECT_EQ(found["epsilon"], answer(once + "--sigma 1.5 --delta 1e-5")["epsilon"]);
  EXPECT_EQ(found["epsilon_lower"], 0.0);
  EXPECT_EQ(cudp(kAllocated + "--delta 1e-5 --uses 2").out.find("at least"), std::string::npos);
  // Three of ten: parts of 3, 3 and 4 steps.
  const privacy::Composition parts{.releases = {{privacy::AllocatedGaussian{3, 1.5}, 4},
                                                {privacy::AllocatedGaussian{4, 1.5}, 2}}};
  EXPECT_EQ(answer(kAllocated + "--delta 1e-5 --uses 3")["epsilon"],
            privacy::Accountant(parts).epsilon(1e-5).epsilon);
  EXPECT_EQ(answer(kAllocated + "--delta 1e-5 --uses 1"), answer(kAllocated + "--delta 1e-5"));
  // Batches of 200 that use each of 1,000 examples twice: ten steps.
  EXPECT_EQ(answer("account --sampling allocation --epochs 2 --sigma 1.5 --delta 1e-5 --uses 2 "
                   "--examples 1000 --batch 200")["epsilon"],
            found["epsilon"]);
  expect_refused(kAllocated + "--delta 1e-5 --uses 11", 2,
                 "--uses: expected at most the 10 steps of an epoch, found 11");
  expect_refused("account --q 0.1 --sigma 1 --steps 2 --delta 1e-5 --uses 2", 2,
                 "--uses: expected no value with --sampling poisson");
  const std::string goal = "calibrate --sampling allocation --epsilon 2 --delta 1e-5 --epochs 4 ";
  EXPECT_EQ(answer(goal + "--steps-per-epoch 10 --uses 2")["sigma"],
            answer("calibrate --sampling allocation --epsilon 2 --delta 1e-5 --epochs 8 "
                   "--steps-per-epoch 5")["sigma"]);
  expect_refused(goal + "--steps-per-epoch 10 --uses 3", 2,
                 "--uses: expected a divisor of the 10 steps of an epoch");
}

TEST(Account, RandomAllocationIsRefusedWhereNoBoundIsKnown) {
  const std::pair<const char*, const char*> more[] = {
      {"--group 2", "no bound is known for groups"},
      {"--groups 2", "no bound for groups"},
      {"--neighbours replace-one", "no bound is known for replacement"},
      {"--accountant rdp", "expected pld with --sampling allocation"},
      {"--accountant advanced", "expected pld with --sampling allocation"},
      {"--accountant gdp", "expected pld with --sampling allocation"},
      {"--orders 2", "--orders: expected none"},
      {"--rdp-at 2", "no Renyi divergence"},
      {"--q 0.1", "--q: expected no value with --sampling allocation"},
      {"--n 10", "--n: expected no value with --sampling allocation"},
      {"--steps 20", "whose releases are --epochs"},
      {"--interval 1e-3", "--interval: expected no value"},
      {"--examples 100", "--steps-per-epoch: expected no value with --examples and --batch"}};
  for (const auto& [flags, reason] : more)
    expect_refused(kAllocated + "--delta 1e-5 " + flags, 2, reason);
  const std::string part = "account --sampling allocation --delta 1e-5 ";
  expect_refused(part + "--sigma 1 --epochs 2", 2, "--steps-per-epoch");
  expect_refused(part + "--sigma 1 --steps-per-epoch 5", 2, "--epochs: expected a value");
  expect_refused(part + "--epochs 1 --sigma 1 --examples 9", 2, "--examples: expected --batch");
  expect_refused(part + "--epochs 1 --sigma 1 --examples 9 --batch 10", 2,
                 "--batch: expected 1 to the 9 examples, found 10");
  expect_refused("account --q 0.1 --sigma 1 --steps 2 --delta 1e-5 --steps-per-epoch 5", 2,
                 "--steps-per-epoch: expected no value with --sampling poisson");
  expect_refused("calibrate --sampling allocation --solve steps --epsilon 1 --delta 1e-5", 2,
                 "expected sigma, epochs or delta with --sampling allocation");
  expect_refused("calibrate --solve epochs --epsilon 1 --delta 1e-5", 2, "found 'epochs'");
}

TEST(Calibrate, RandomAllocation) {
  const std::string goal =
      "calibrate --sampling allocation --steps-per-epoch 10 --epsilon 2 --delta 1e-5 ";
  const auto epsilon = [](double sigma, std::uint64_t epochs) {
    return privacy::Accountant({.releases = {{privacy::AllocatedGaussian{10, sigma}, epochs}}})
        .epsilon(1e-5)
        .epsilon;
  };
  const json noise = answer(goal + "--epochs 2");
  EXPECT_EQ(noise["steps_per_epoch"], 10);
  EXPECT_EQ(noise["epochs"], 2);
  EXPECT_LE(epsilon(noise["sigma"], 2), 2.0);
  EXPECT_GE(epsilon(noise["sigma"], 2), 2.0 * (1 - 2e-3));
  const std::uint64_t epochs = answer(goal + "--sigma 2 --solve epochs")["epochs"];
  EXPECT_LE(epsilon(2.0, epochs), 2.0);
  EXPECT_GT(epsilon(2.0, epochs + 1), 2.0);
  const json delta = answer(
      "calibrate --sampling allocation --steps-per-epoch 10 --epochs 2 --sigma 1.5 --epsilon 1 "
      "--solve delta");
  EXPECT_EQ(delta["delta"], answer(kAllocated + "--epsilon 1")["delta"]);
}

TEST(Account, TableRoundsUp) {
  const std::string table = cudp(kUsual + "--delta 1e-6").out;
  const privacy::PrivacyBound exact = privacy::Accountant(usual()).epsilon(1e-6);
  EXPECT_EQ(table.substr(0, table.find('\n')), "epsilon         " + rounded_up(exact.epsilon));
  EXPECT_NE(table.find("and at least  " + rounded_down(exact.epsilon_lower)), std::string::npos);
  EXPECT_NE(table.find("poisson-gaussian, q 0.01, sigma 1, steps 2000"), std::string::npos);
}

TEST(Account, DrawsItsCurves) {
  const auto picture =
      std::filesystem::temp_directory_path() / ("cudp_curve_" + std::to_string(getpid()) + ".png");
  for (const char* which : {"", "--groups 3 "}) {
    const ProgramEnd drawn = cudp(kUsual + "--delta 1e-6 " + which + "--curve " + picture.string());
    if (drawn.code != 0) GTEST_SKIP() << "gnuplot is missing: " << drawn.error;
    std::ifstream file(picture, std::ios::binary);
    std::string start(4, ' ');
    file.read(start.data(), 4);
    EXPECT_EQ(start, "\x89PNG");
    std::filesystem::remove(picture);
  }
}

TEST(Account, Zcdp) {
  const json found = answer("account --zcdp 0.1 --delta 1e-5");
  EXPECT_EQ(found["epsilon"], privacy::epsilon_from_zcdp(0.1, 1e-5));
  EXPECT_EQ(found["epsilon_classical"], privacy::epsilon_from_zcdp_classical(0.1, 1e-5));
  EXPECT_NE(cudp("account --zcdp 0.1 --delta 1e-5").out.find("1.91424"), std::string::npos);
}

TEST(Account, DivergenceAtAnOrder) {
  const json found = answer("account --rdp-at 8.25 --q 0.001 --sigma 0.8");
  EXPECT_EQ(found["rdp"], privacy::rdp_sampled_gaussian(0.001, 0.8, 8.25));
}

TEST_F(PhasesFile, ComposesItsPhases) {
  const std::string file = with(R"([{"q": 0.01, "sigma": 1, "steps": 500},
                                    {"steps": 300, "sigma": 2.0, "q": 2e-2}])");
  const json found = answer("account --delta 1e-6 --phases " + file);
  const privacy::Composition composition{.releases = {{privacy::PoissonGaussian{0.01, 1.0}, 500},
                                                      {privacy::PoissonGaussian{0.02, 2.0}, 300}}};
  EXPECT_EQ(found["epsilon"], privacy::Accountant(composition).epsilon(1e-6).epsilon);
  EXPECT_EQ(found["phases"].size(), 2u);
  EXPECT_EQ(found["phases"][1]["q"], 0.02);
  EXPECT_NE(cudp("account --delta 1e-6 --phases " + file).out.find("phase 2"), std::string::npos);
}

TEST_F(PhasesFile, KnowsEveryMechanism) {
  const json found = answer("account --delta 1e-6 --phases " + with(R"({"phases": [
      {"mechanism": "gaussian", "sigma": 30, "steps": 1},
      {"mechanism": "poisson-gaussian", "q": 0.01, "sigma": 2, "steps": 10},
      {"mechanism": "fixed-size-gaussian", "n": 5000, "batch": 50, "sigma": 4, "steps": 10},
      {"mechanism": "truncated-poisson-gaussian", "n": 5000, "q": 0.01, "max_batch": 90, "sigma": 4,
       "steps": 10},
      {"mechanism": "allocated-gaussian", "steps_per_epoch": 4, "sigma": 9, "epochs": 2},
      {"mechanism": "gaussian-mixture", "sensitivities": [0, 1], "probabilities": [0.9, 0.1],
       "sigma": 4, "steps": 10},
      {"mechanism": "laplace", "scale": 50, "steps": 2},
      {"mechanism": "poisson-laplace", "q": 0.1, "scale": 5, "steps": 2},
      {"mechanism": "bounded-range", "epsilon": 0.02, "steps": 5},
      {"mechanism": "approximate-dp", "epsilon": 0.02, "delta": 1e-8, "steps": 3}]})"));
  const std::vector<Release> releases{{privacy::Gaussian{30}, 1},
                                      {privacy::PoissonGaussian{0.01, 2}, 10},
                                      {privacy::FixedSizeGaussian{5000, 50, 4}, 10},
                                      {privacy::TruncatedPoissonGaussian{5000, 0.01, 90, 4}, 10},
                                      {privacy::AllocatedGaussian{4, 9}, 2},
                                      {privacy::GaussianMixture{{0, 1}, {0.9, 0.1}, 4}, 10},
                                      {privacy::Laplace{50}, 2},
                                      {privacy::PoissonLaplace{0.1, 5}, 2},
                                      {privacy::BoundedRange{0.02}, 5},
                                      {privacy::ApproximateDp{0.02, 1e-8}, 3}};
  EXPECT_EQ(found["epsilon"], privacy::Accountant({.releases = releases}).epsilon(1e-6).epsilon);
  ASSERT_EQ(found["phases"].size(), releases.size());
  for (std::size_t i = 0; i < releases.size(); ++i)
    EXPECT_EQ(found["phases"][i]["mechanism"], privacy::name(releases[i].mechanism));
}

TEST_F(PhasesFile, AMechanismsOwnEpsilonIsNotThatOfTheAnswer) {
  for (const char* const mechanism : {R"("approximate-dp", "epsilon": 0.1, "delta": 1e-9)",
                                      R"("bounded-range", "epsilon": 0.1)"}) {
    const std::string file =
        with(R"([{"mechanism": )" + std::string(mechanism) + R"(, "steps": 100}])");
    const json epsilon = answer("account --delta 1e-5 --phases " + file);
    EXPECT_GT(epsilon["epsilon"], 1.0) << mechanism;
    EXPECT_EQ(epsilon["epsilon"], epsilon["epsilon_add"]) << mechanism;
    EXPECT_EQ(epsilon["delta"], 1e-5) << mechanism;
    EXPECT_EQ(epsilon["phases"][0]["epsilon"], 0.1) << mechanism;
    const json delta = answer("account --epsilon 0.5 --phases " + file);
    EXPECT_EQ(delta["epsilon"], 0.5) << mechanism;
    EXPECT_GT(delta["delta"], 0.01) << mechanism;
    EXPECT_EQ(delta["delta"], delta["delta_add"]) << mechanism;
  }
}

TEST_F(PhasesFile, BadFilesAreRefusedByPlace) {
  const auto refused = [&](const std::string& text, const std::string& reason) {
    expect_refused("account --delta 1e-6 --phases " + with(text), 2, reason);
  };
  refused("", "line 1: expected JSON, found an empty file");
  refused("[{\"q\": 0.01,\n \"sigma\": }]", "line 2: expected JSON");
  refused("{}", "expected a list of phases, found {}");
  refused("[]", "expected a list of phases, found []");
  refused("[7]", "phase 1: expected {");
  refused(R"([{"q": 0.01, "sigma": 1, "steps": 5}, {"q": 0.01, "sigma": 1}])",
          "phase 2: expected a key 'steps', found none");
  refused(R"([{"q": 0.01, "sigma": 1, "steps": 5, "sgima": 2}])", "found \"sgima\"");
  refused(R"([{"mechanism": "gauss", "sigma": 1, "steps": 5}])", "found 'gauss'");
  refused(R"([{"mechanism": "laplace", "sigma": 1, "steps": 5}])", "expected a key 'scale'");
  refused(R"([{"mechanism": "gaussian-mixture", "sensitivities": [1], "probabilities": ["x"],
              "sigma": 1, "steps": 5}])",
          "probabilities: expected a list of numbers");
  refused(R"([{"q": "1%", "sigma": 1, "steps": 5}])",
          "phase 1, q: expected a number, found \"1%\"");
  refused(R"([{"q": 0.01, "sigma": 1, "steps": -5}])", "steps: expected a whole number >= 0");
  refused(R"([{"q": 0.01, "sigma": 1, "steps": 1.5}])", "steps: expected a whole number >= 0");
  refused(R"([{"q": 1.01, "sigma": 1, "steps": 5}])", "phase 1, q: expected a sampling rate");
  refused(R"([{"q": 0.01, "sigma": 0, "steps": 5}])", "phase 1, sigma: expected a finite noise");
  expect_refused("account --delta 1e-6 --phases /nonexistent/file", 2, "No such file");
  expect_refused("account --delta 1e-6 --phases " + std::filesystem::temp_directory_path().string(),
                 2, "found a directory");
}

TEST(Account, BadUseIsRefused) {
  const std::string fine = "account --q 0.01 --sigma 1 --steps 10 ";
  expect_refused(fine, 2, "expected one of --delta and --epsilon, found none");
  expect_refused(fine + "--delta 1e-5 --epsilon 1", 2, "found both");
  expect_refused(fine + "--delta 0", 2, "delta: expected");
  expect_refused(fine + "--delta nan", 2, "delta: expected");
  expect_refused(fine + "--epsilon -1", 2, "epsilon: expected");
  expect_refused(fine + "--delta 1e-5 --orders 1", 2, "orders: expected");
  expect_refused(fine + "--delta 1e-5 --orders 2,x", 2, "--orders: expected numbers");
  expect_refused(fine + "--delta 1e-5 --accountant pdl", 2,
                 "expected one of pld, rdp, advanced, gdp");
  expect_refused(fine + "--delta 1e-5 --sampling shuffle", 2,
                 "--sampling: expected one of poisson, fixed");
  expect_refused(fine + "--delta 1e-5 --sampling fixed", 2, "expected --n and --batch");
  expect_refused(fine + "--delta 1e-5 --sampling fixed --n 100 --batch 10", 2,
                 "--q: expected no value");
  expect_refused(fine + "--delta 1e-5 --n 100", 2,
                 "--n: expected no value with --sampling poisson");
  expect_refused(fine + "--delta 1e-5 --neighbours all", 2,
                 "--neighbours: expected one of add-or-remove");
  expect_refused(fine + "--delta 1e-5 --group 0", 2, "group: expected");
  expect_refused(fine + "--delta 1e-5 --interval 0", 2, "--interval: expected");
  expect_refused(fine + "--delta 1e-5 --zcdp 0.1", 2, "--q: expected no value with --zcdp");
  expect_refused(fine + "--delta 1e-5 --phases f", 2, "--q: expected no value with --phases");
  expect_refused("account --sigma 1 --steps 10 --delta 1e-5", 2, "--q: expected a value");
  expect_refused("account --q 2 --sigma 1 --steps 10 --delta 1e-5", 2, "q: expected");
  expect_refused("account --q 0.1 --sigma -1 --steps 10 --delta 1e-5", 2, "sigma: expected");
  expect_refused("account --q 0.1 --sigma inf --steps 10 --delta 1e-5", 2, "sigma: expected");
  expect_refused("account --q 0.1 --sigma 1 --steps -1 --delta 1e-5", 2, "steps");
  expect_refused("account --q 0.1 --sigma 1 --steps 1.5 --delta 1e-5", 2, "steps");
  expect_refused("account --q 0.1x --sigma 1 --steps 1 --delta 1e-5", 2, "q");
  expect_refused("account --q 0.1 --sgima 1 --steps 1 --delta 1e-5", 2, "--sgima");
  expect_refused("account --rdp-at 1 --q 0.1 --sigma 1", 2, "orders: expected");
  expect_refused("account --rdp-at 2 --q 0.1 --sigma 1e-200", 2, "that double holds");
  expect_refused("account --rdp-at 2 --q 0.1", 2, "--sigma: expected a value");
  expect_refused("account --rdp-at 2 --q 0.1 --sigma 1 --delta 1e-5", 2, "--delta: expected no");
  expect_refused("account --zcdp -1 --delta 1e-5", 2, "--zcdp: expected a number >= 0");
  expect_refused("account --zcdp 1", 2, "--delta: expected a value");
}

TEST(CalibrateCommand, SolvesForEach) {
  const auto epsilon = [](double q, double sigma, std::uint64_t steps) {
    const Release release{privacy::PoissonGaussian{.q = q, .sigma = sigma}, steps};
    return privacy::Accountant({.releases = {release}}).epsilon(1e-5).epsilon;
  };
  const json sigma = answer("calibrate --epsilon 3 --delta 1e-5 --q 0.0085 --steps 4680");
  EXPECT_LE(epsilon(0.0085, sigma["sigma"], 4680), 3.0);
  EXPECT_GT(epsilon(0.0085, sigma["sigma"].get<double>() * (1 - 3e-5), 4680), 3.0);
  EXPECT_EQ(sigma["accountant"], "pld");
  EXPECT_EQ(sigma["steps"], 4680);
  const std::uint64_t steps =
      answer("calibrate --solve steps --epsilon 3 --delta 1e-5 --q 0.0085 --sigma 1.1")["steps"];
  EXPECT_LE(epsilon(0.0085, 1.1, steps), 3.0);
  EXPECT_GT(epsilon(0.0085, 1.1, steps + 1), 3.0);
  const double q =
      answer("calibrate --solve q --epsilon 3 --delta 1e-5 --steps 4680 --sigma 1.1")["q"];
  EXPECT_LE(epsilon(q, 1.1, 4680), 3.0);
  EXPECT_GT(epsilon(q * (1 + 3e-5), 1.1, 4680), 3.0);
  const Release release{privacy::PoissonGaussian{.q = 0.0085, .sigma = 1.1}, 4680};
  EXPECT_EQ(
      answer("calibrate --solve delta --epsilon 3 --q 0.0085 --steps 4680 --sigma 1.1")["delta"],
      privacy::Accountant({.releases = {release}}).delta(3.0).delta);
  const std::uint64_t batch = answer(
      "calibrate --solve batch --sampling fixed --n 60000 --epsilon 3 --delta 1e-5 --steps 4680 "
      "--sigma 2.2")["batch"];
  EXPECT_GT(batch, 400u);
  EXPECT_LT(batch, 600u);
}

TEST(CalibrateCommand, RenyiDivergencesAlone) {
  const std::string rdp = " --epsilon 3 --delta 1e-5 --accountant rdp";
  const auto epsilon = [](double q, double sigma, std::uint64_t steps) {
    return by_renyi({{privacy::PoissonGaussian{q, sigma}, steps}}).epsilon(1e-5).epsilon;
  };
  const double sigma = answer("calibrate --q 0.0085 --steps 4680" + rdp)["sigma"];
  EXPECT_LE(epsilon(0.0085, sigma, 4680), 3.0);
  EXPECT_GT(epsilon(0.0085, sigma * (1 - 1e-8), 4680), 3.0);
  const std::uint64_t steps =
      answer("calibrate --solve steps --q 0.0085 --sigma 1.1" + rdp)["steps"];
  EXPECT_LE(epsilon(0.0085, 1.1, steps), 3.0);
  EXPECT_GT(epsilon(0.0085, 1.1, steps + 1), 3.0);
  const double q = answer("calibrate --solve q --steps 4680 --sigma 1.1" + rdp)["q"];
  EXPECT_LE(epsilon(q, 1.1, 4680), 3.0);
  EXPECT_GT(epsilon(q * (1 + 1e-8), 1.1, 4680), 3.0);
}

TEST(CalibrateCommand, TheValueOfTheTableIsSafeToCopy) {
  const auto row = [](const std::string& table, const std::string& name) {
    std::istringstream lines(table);
    for (std::string key, line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string value;
      words >> key >> value;
      if (key == name) return std::stod(value);
    }
    return std::nan("");
  };
  const auto epsilon = [](double q, double sigma) {
    return by_renyi({{privacy::PoissonGaussian{q, sigma}, 777}}).epsilon(1e-5).epsilon;
  };
  for (const double budget : {0.3, 1.0, 2.2, 7.0}) {
    const std::string given =
        " --epsilon " + std::to_string(budget) + " --delta 1e-5 --steps 777 --accountant rdp ";
    const double sigma = row(cudp("calibrate --q 0.013" + given).out, "sigma");
    EXPECT_TRUE(epsilon(0.013, sigma) <= budget) << sigma;
    EXPECT_TRUE(epsilon(0.013, sigma - 2e-5) > budget) << sigma;
    const double q = row(cudp("calibrate --solve q --sigma 1.3" + given).out, "q");
    EXPECT_TRUE(epsilon(q, 1.3) <= budget) << q;
    EXPECT_TRUE(epsilon(q * (1 + 3e-5), 1.3) > budget) << q;
  }
}

TEST(CalibrateCommand, AnUnreachableBudgetHasItsOwnExitCode) {
  expect_refused("calibrate --epsilon 0.01 --delta 1e-15 --q 0.01 --steps 10 --accountant rdp", 3,
                 "epsilon 0.01 at delta 1e-15 cannot be reached: 0.02");
  expect_refused("calibrate --solve steps --epsilon 1 --delta 1e-5 --q 1 --sigma 0.1", 3,
                 "steps: none from 1");
}

TEST(CalibrateCommand, BadUseIsRefused) {
  expect_refused("calibrate --epsilon 3 --delta 1e-5 --q 0.01", 2, "expected --epochs with ");
  expect_refused("calibrate --epsilon 3 --delta 1e-5 --q 0.01 --steps 0", 2, "steps: expected");
  expect_refused("calibrate --epsilon 3 --delta 1e-5 --q 0.01 --steps -5", 2, "steps");
  expect_refused("calibrate --epsilon 3 --delta 1e-5 --q 0 --steps 5", 2, "q: expected");
  expect_refused("calibrate --epsilon 0 --delta 1e-5 --q 0.1 --steps 5", 2, "epsilon: expected");
  expect_refused("calibrate --epsilon 3 --delta 1e-5 --q 0.1 --steps 5 --sigma 1", 2,
                 "--sigma: expected no value with --solve sigma");
  expect_refused("calibrate --solve epsilon --delta 1e-5 --q 0.1 --steps 5", 2,
                 "--solve: expected");
  expect_refused("calibrate --accountant gdp --epsilon 3 --delta 1e-5 --q 0.1 --steps 5", 2,
                 "--accountant: expected one of pld, rdp, advanced, found");
}

TEST(Help, HasExamples) {
  CLI::App app{"cudp"};
  CommandBody body;
  add_account_command(app, body);
  add_calibrate_command(app, body);
  for (const char* name : {"account", "calibrate"}) {
    const std::string help = app.get_subcommand(name)->help();
    EXPECT_NE(help.find("Examples:\n  cudp " + std::string(name)), std::string::npos) << help;
  }
}

TEST(Rounding, IsToTheSideThatWasAskedFor) {
  for (const double value :
       {0.0, 1.0, 3.2464524898, 0.000101047123, 999999.5, 9.9999999, 1e-300, 1.23456789e12, 0.1}) {
    const double up = std::stod(rounded_up(value)), down = std::stod(rounded_down(value));
    EXPECT_TRUE(up >= value && up <= value * (1 + 1.1e-5)) << rounded_up(value);
    EXPECT_TRUE(down <= value && down >= value * (1 - 1.1e-5)) << rounded_down(value);
    const double brief = std::stod(short_rounded_up(value));
    EXPECT_TRUE(brief >= value && brief <= value * (1 + 1.1e-2)) << short_rounded_up(value);
  }
  EXPECT_EQ(short_rounded_up(1.99999), "2");
  EXPECT_EQ(short_rounded_up(1.001), "1.01");
}

}  // namespace
}  // namespace cudp
