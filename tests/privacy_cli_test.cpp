// cudp account and cudp calibrate, through their functions.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "privacy/calibrate.hpp"
#include "privacy/rdp.hpp"
#include "privacy/zcdp.hpp"
#include "runtime/cli/answer.hpp"
#include "runtime/cli/commands.hpp"
#include "runtime/error.hpp"

namespace cudp {
namespace {

using nlohmann::json;

struct Outcome {
  int code = 0;
  std::string out;
  std::string error;
};

/// What the program would do with these arguments.
Outcome cudp(const std::string& arguments) {
  CLI::App app{"cudp"};
  CommandBody body;
  add_account_command(app, body);
  add_calibrate_command(app, body);
  Outcome outcome;
  std::ostringstream captured;
  std::streambuf* const stdout_buffer = std::cout.rdbuf(captured.rdbuf());
  try {
    app.parse(arguments);
    outcome.code = body();
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
  const Outcome outcome = cudp(arguments + " --json");
  EXPECT_EQ(outcome.code, 0) << arguments << ": " << outcome.error;
  return json::parse(outcome.out, nullptr, false);
}

/// Refused with this code and one line that contains `reason`.
void expect_refused(const std::string& arguments, int code, const std::string& reason) {
  const Outcome outcome = cudp(arguments);
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

TEST(Account, EpsilonFromDelta) {
  const json found = answer("account --q 0.01 --sigma 1.0 --steps 2000 --delta 1e-6");
  const privacy::Phase phase{.q = 0.01, .sigma = 1.0, .steps = 2000};
  const privacy::Guarantee expected = privacy::epsilon_of({&phase, 1}, 1e-6);
  EXPECT_EQ(found, (json{{"epsilon", expected.epsilon},
                         {"delta", 1e-6},
                         {"accountant", "rdp"},
                         {"sampling", "poisson"},
                         {"order", expected.order},
                         {"q", 0.01},
                         {"sigma", 1.0},
                         {"steps", 2000}}));
}

TEST(Account, DeltaFromEpsilon) {
  const json found = answer("account --q 0.01 --sigma 1.0 --steps 2000 --epsilon 2");
  const privacy::Phase phase{.q = 0.01, .sigma = 1.0, .steps = 2000};
  EXPECT_EQ(found["delta"], privacy::delta_of({&phase, 1}, 2.0).delta);
  EXPECT_EQ(found["epsilon"], 2.0);
}

TEST(Account, OrdersCanBeChosen) {
  const json found =
      answer("account --q 0.01 --sigma 1.0 --steps 2000 --delta 1e-6 --orders 2,4.5,64");
  EXPECT_EQ(found["order"], 4.5);
}

TEST(Account, TableRoundsUp) {
  const Outcome outcome = cudp("account --q 0.01 --sigma 1.0 --steps 2000 --delta 1e-6");
  EXPECT_EQ(outcome.out,
            "epsilon     3.24646\n"
            "delta       1e-06\n"
            "accountant  rdp, best at order 7.2\n"
            "sampling    poisson\n"
            "q           0.01\n"
            "sigma       1\n"
            "steps       2000\n");
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
  const std::vector<privacy::Phase> phases{{.q = 0.01, .sigma = 1.0, .steps = 500},
                                           {.q = 0.02, .sigma = 2.0, .steps = 300}};
  EXPECT_EQ(found["epsilon"], privacy::epsilon_of(phases, 1e-6).epsilon);
  EXPECT_EQ(found["phases"].size(), 2u);
  EXPECT_EQ(found["phases"][1]["q"], 0.02);
  EXPECT_NE(cudp("account --delta 1e-6 --phases " + file).out.find("phase 2"), std::string::npos);
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
          "phase 2: expected keys q, sigma, steps, found no 'steps'");
  refused(R"([{"q": 0.01, "sigma": 1, "steps": 5, "sgima": 2}])", "found \"sgima\"");
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
  expect_refused(fine + "--delta 1e-5 --orders 2,x", 2, "orders");
  expect_refused(fine + "--delta 1e-5 --accountant pld", 2, "expected rdp, the one available");
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
  expect_refused("account --rdp-at 1 --q 0.1 --sigma 1", 2, "order: expected");
  expect_refused("account --rdp-at 2 --q 0.1 --sigma 1e-200", 2, "that double holds");
  expect_refused("account --rdp-at 2 --q 0.1", 2, "--sigma: expected a value");
  expect_refused("account --rdp-at 2 --q 0.1 --sigma 1 --delta 1e-5", 2, "--delta: expected no");
  expect_refused("account --zcdp -1 --delta 1e-5", 2, "rho: expected");
  expect_refused("account --zcdp 1", 2, "--delta: expected a value");
}

TEST(CalibrateCommand, SolvesForEach) {
  const json sigma = answer("calibrate --epsilon 3 --delta 1e-5 --q 0.0085 --steps 4680");
  EXPECT_EQ(sigma, (json{{"solve", "sigma"},
                         {"epsilon", 3.0},
                         {"delta", 1e-5},
                         {"q", 0.0085},
                         {"sigma", privacy::sigma_for(3.0, 1e-5, 0.0085, 4680)},
                         {"steps", 4680},
                         {"accountant", "rdp"},
                         {"sampling", "poisson"}}));
  EXPECT_EQ(
      answer("calibrate --solve steps --epsilon 3 --delta 1e-5 --q 0.0085 --sigma 1.1")["steps"],
      privacy::steps_for(3.0, 1e-5, 0.0085, 1.1));
  EXPECT_EQ(answer("calibrate --solve q --epsilon 3 --delta 1e-5 --steps 4680 --sigma 1.1")["q"],
            privacy::rate_for(3.0, 1e-5, 1.1, 4680));
  const privacy::Phase phase{.q = 0.0085, .sigma = 1.1, .steps = 4680};
  EXPECT_EQ(
      answer("calibrate --solve delta --epsilon 3 --q 0.0085 --steps 4680 --sigma 1.1")["delta"],
      privacy::delta_of({&phase, 1}, 3.0).delta);
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
    const privacy::Phase phase{.q = q, .sigma = sigma, .steps = 777};
    return privacy::epsilon_of({&phase, 1}, 1e-5).epsilon;
  };
  for (const double budget : {0.3, 1.0, 2.2, 7.0}) {
    const std::string given = " --epsilon " + std::to_string(budget) + " --delta 1e-5 --steps 777 ";
    const double sigma = row(cudp("calibrate --q 0.013" + given).out, "sigma");
    EXPECT_TRUE(epsilon(0.013, sigma) <= budget) << sigma;
    EXPECT_TRUE(epsilon(0.013, sigma - 2e-5) > budget) << sigma;
    const double q = row(cudp("calibrate --solve q --sigma 1.3" + given).out, "q");
    EXPECT_TRUE(epsilon(q, 1.3) <= budget) << q;
    EXPECT_TRUE(epsilon(q * (1 + 3e-5), 1.3) > budget) << q;
  }
}

TEST(CalibrateCommand, AnUnreachableBudgetHasItsOwnExitCode) {
  expect_refused("calibrate --epsilon 0.01 --delta 1e-15 --q 0.01 --steps 10", 3,
                 "epsilon 0.01 at delta 1e-15 cannot be reached: 0.02");
  expect_refused("calibrate --solve steps --epsilon 1 --delta 1e-5 --q 1 --sigma 0.1", 3,
                 "a single step exceeds it");
}

TEST(CalibrateCommand, BadUseIsRefused) {
  expect_refused("calibrate --epsilon 3 --delta 1e-5 --q 0.01", 2, "--steps: expected a value");
  expect_refused("calibrate --epsilon 3 --delta 1e-5 --q 0.01 --steps 0", 2, "steps: expected");
  expect_refused("calibrate --epsilon 3 --delta 1e-5 --q 0.01 --steps -5", 2, "steps");
  expect_refused("calibrate --epsilon 3 --delta 1e-5 --q 0 --steps 5", 2, "q: expected");
  expect_refused("calibrate --epsilon 0 --delta 1e-5 --q 0.1 --steps 5", 2, "epsilon: expected");
  expect_refused("calibrate --epsilon 3 --delta 1e-5 --q 0.1 --steps 5 --sigma 1", 2,
                 "--sigma: expected no value with --solve sigma");
  expect_refused("calibrate --solve epsilon --delta 1e-5 --q 0.1 --steps 5", 2,
                 "--solve: expected");
  expect_refused("calibrate --accountant pld --epsilon 3 --delta 1e-5 --q 0.1 --steps 5", 2,
                 "expected rdp");
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
  }
}

}  // namespace
}  // namespace cudp
