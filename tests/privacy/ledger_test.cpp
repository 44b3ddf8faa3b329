// What was spent, across crashes: privacy/ledger.hpp.
#include "privacy/ledger.hpp"

#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "privacy/rdp/divergence.hpp"

namespace cudp::privacy {
namespace {

constexpr double q = 0.01, sigma = 1.1;

std::uint64_t total_steps(const Ledger& ledger) {
  std::uint64_t total = 0;
  for (const Phase& phase : ledger.phases()) total += phase.steps;
  return total;
}

std::string damage(const std::string& text) {
  try {
    Ledger::from_text(text, "ledger.txt");
  } catch (const std::invalid_argument& refused) {
    return refused.what();
  }
  return "";
}

Ledger example() {
  Ledger ledger;
  ledger.charge(Phase{.q = 1.0, .sigma = 400.0, .steps = 1});
  ledger.authorise(0, 100, q, sigma);
  ledger.authorise(100, 200, q, sigma);
  ledger.authorise(200, 300, q, 0.1 + 0.2);
  ledger.fresh_key(250);
  ledger.authorise(250, 350, q, std::nextafter(sigma, 2.0));
  ledger.charge(Phase{.q = 1.0, .sigma = 1e-300, .steps = 0});
  return ledger;
}

/// One of every mechanism, each field another number.
std::vector<Mechanism> one_of_each() {
  return {Gaussian{1.5},
          PoissonGaussian{0.01, 0.1 + 0.2},
          FixedSizeGaussian{50000, 500, 2.0},
          TruncatedPoissonGaussian{60000, 0.004, 300, 1.25},
          GaussianMixture{{0.0, 1.0, 2.5}, {0.9, 0.09, 0.01}, 0.7},
          Laplace{3.5},
          PoissonLaplace{0.25, 4.0},
          BoundedRange{0.125},
          ApproximateDp{0.5, 1e-9}};
}

/// `lines` with right checksums, as a program with a bug (or a later version) would write them.
std::string sealed(const std::vector<std::string>& lines) {
  std::string text;
  std::uint64_t state = 14695981039346656037u;  // FNV-1a
  for (const std::string& line : lines) {
    for (const char c : line + "\n")
      state = (state ^ static_cast<unsigned char>(c)) * 1099511628211u;
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(state));
    text += line + " #" + digits + "\n";
  }
  return text;
}

TEST(Ledger, SpentIsTheEpsilonOfItsPhases) {
  Ledger ledger;
  EXPECT_EQ(ledger.spent(1e-5).epsilon, 0.0);
  EXPECT_EQ(ledger.authorise(0, 1000, q, sigma), 1000u);
  ledger.charge(Phase{.q = 1.0, .sigma = 50.0, .steps = 2});
  const std::vector<Phase> phases{{.q = q, .sigma = sigma, .steps = 1000},
                                  {.q = 1.0, .sigma = 50.0, .steps = 2}};
  EXPECT_EQ(ledger.phases(), phases);
  const double spent = ledger.spent(1e-5).epsilon, listed = epsilon_of(phases, 1e-5).epsilon;
  EXPECT_TRUE(spent <= listed && spent >= 0.999 * listed) << spent << " " << listed;
  const std::vector<double> order{7.5};
  EXPECT_TRUE(
      std::fabs(ledger.spent(1e-5, order).epsilon / epsilon_of(phases, 1e-5, order).epsilon - 1) <=
      1e-14);
  EXPECT_THROW(ledger.spent(0.0), std::invalid_argument);
}

TEST(Ledger, EqualNeighboursMerge) {
  Ledger ledger;
  for (std::uint64_t step = 0; step < 1000; ++step) ledger.authorise(step, step + 1, q, sigma);
  Ledger at_once;
  at_once.authorise(0, 1000, q, sigma);
  EXPECT_EQ(ledger, at_once);
  EXPECT_EQ(ledger.phases().size(), 1u);
}

TEST(Ledger, ReplayWithTheSameKeyIsFreeAndWithAnotherIsNot) {
  Ledger ledger;
  ledger.authorise(0, 100, q, sigma);
  ledger.authorise(100, 200, q, sigma);
  // A crash; the checkpoint of step 100, with its key.
  EXPECT_EQ(ledger.authorise(100, 200, q, sigma), 0u);
  EXPECT_EQ(ledger.authorise(150, 250, q, sigma), 50u);
  EXPECT_EQ(total_steps(ledger), 250u);
  // A crash; the checkpoint of step 200, without its key.
  ledger.fresh_key(200);
  EXPECT_EQ(ledger.authorised_until(), 200u);
  EXPECT_EQ(total_steps(ledger), 250u);
  EXPECT_EQ(ledger.authorise(200, 300, q, sigma), 100u);
  EXPECT_EQ(total_steps(ledger), 350u);
  EXPECT_EQ(ledger.authorise(220, 300, q, sigma), 0u);
}

TEST(Ledger, RefusesWhatTheKeyMayNotRun) {
  Ledger ledger;
  ledger.authorise(0, 100, q, sigma);
  ledger.authorise(100, 200, 2 * q, sigma);
  const Ledger before = ledger;
  EXPECT_THROW(ledger.authorise(201, 300, q, sigma), std::invalid_argument);  // a gap
  EXPECT_THROW(ledger.authorise(100, 99, q, sigma), std::invalid_argument);
  EXPECT_THROW(ledger.authorise(50, 60, q, 2 * sigma), std::invalid_argument);  // other settings
  EXPECT_THROW(ledger.authorise(99, 200, 2 * q, sigma), std::invalid_argument);
  EXPECT_THROW(ledger.authorise(150, 250, q, sigma), std::invalid_argument);
  EXPECT_THROW(ledger.authorise(200, 300, 1.5, sigma), std::invalid_argument);
  EXPECT_THROW(ledger.authorise(200, 300, q, 0.0), std::invalid_argument);
  EXPECT_THROW(ledger.charge(Phase{.q = q, .sigma = -1.0, .steps = 1}), std::invalid_argument);
  EXPECT_THROW(ledger.fresh_key(201), std::invalid_argument);
  EXPECT_EQ(ledger, before);
  EXPECT_EQ(ledger.authorise(50, 100, q, sigma), 0u);
  EXPECT_EQ(ledger.authorise(100, 250, 2 * q, sigma), 50u);
  ledger.fresh_key(80);
  EXPECT_THROW(ledger.authorise(79, 100, q, sigma), std::invalid_argument);  // of the lost key
  EXPECT_EQ(ledger.authorise(80, 90, q, 3 * sigma), 10u);  // other settings, other noise
}

TEST(Ledger, ABudgetIsWrittenFirstAndOnce) {
  const Budget budget{.order = 0.0, .epsilon = 1.0, .delta = 1e-6, .failure = 0.0};
  Ledger ledger, other;
  ledger.limit(budget);
  EXPECT_EQ(ledger.budget(), budget);
  EXPECT_THROW(ledger.limit(budget), std::invalid_argument);
  other.charge(Step{BoundedRange{0.1}, 1});
  EXPECT_THROW(other.limit(budget), std::invalid_argument);
  // Forgetting it, or changing it, is no continuation.
  Ledger larger;
  larger.limit({.order = 0.0, .epsilon = 2.0, .delta = 1e-6, .failure = 0.0});
  EXPECT_TRUE(ledger.continues(Ledger()));
  EXPECT_FALSE(Ledger().continues(ledger));
  EXPECT_FALSE(larger.continues(ledger));
  EXPECT_FALSE(ledger.continues(other));
}

TEST(Ledger, TensOfThousandsOfDifferentStepsStayQuick) {
  // ADP-SGD: 200 epochs of 196 steps, each with its own noise.
  Ledger ledger;
  const std::uint64_t all = 39200;
  for (std::uint64_t step = 0; step < all; ++step)
    ledger.authorise(step, step + 1, 256.0 / 50000.0,
                     0.4 * std::pow(1.0 + static_cast<double>(step) / 20.0, 0.25));
  EXPECT_EQ(ledger.steps().size(), all);
  const Ledger read = Ledger::from_text(ledger.to_text(), "a");
  EXPECT_EQ(read, ledger);
  const Guarantee spent = read.spent(1e-5);
  // (The order is 2.52; a list in tenths gives slightly more.)
  const std::vector<double> near{2.4, 2.5, 2.6};
  const double listed = epsilon_of(ledger.phases(), 1e-5, near).epsilon;
  EXPECT_TRUE(spent.epsilon < listed && spent.epsilon > 0.999 * listed)
      << spent.epsilon << " " << listed;
  const std::vector<double> order{spent.order};
  const double exact = epsilon_of(ledger.phases(), 1e-5, order).epsilon;
  EXPECT_TRUE(std::fabs(spent.epsilon / exact - 1) <= 1e-10) << spent.epsilon << " " << exact;
}

TEST(Ledger, CoversEveryNoiseThatWasEverDrawn) {
  // A trainer that crashes at random moments, also between the ledger's write and the steps, and
  // sometimes loses its key. Noise is a function of (key, step): the ledger must count at least the
  // distinct ones drawn, and no more than those that it let through.
  std::mt19937_64 bits(5);
  for (int run = 0; run < 300; ++run) {
    std::string disk = Ledger().to_text();
    std::uint64_t checkpoint = 0, key = 1, charged = 0;
    const std::uint64_t all = 50 + bits() % 200, interval = 1 + bits() % 40;
    std::set<std::pair<std::uint64_t, std::uint64_t>> drawn;
    bool crashed = false;
    while (checkpoint < all) {
      Ledger ledger = Ledger::from_text(disk, "disk");
      if (crashed && bits() % 3 == 0) {
        ++key;
        ledger.fresh_key(checkpoint);
      }
      crashed = false;
      for (std::uint64_t step = checkpoint; step < all && !crashed;) {
        const std::uint64_t end = std::min(all, step + interval);
        charged += ledger.authorise(step, end, q, sigma);
        disk = ledger.to_text();
        for (; step < end && !crashed; ++step) {
          crashed = bits() % 64 == 0;
          if (!crashed) drawn.emplace(key, step);
        }
        if (!crashed) checkpoint = step;
      }
    }
    const Ledger ledger = Ledger::from_text(disk, "disk");
    EXPECT_EQ(total_steps(ledger), charged);
    EXPECT_GE(charged, drawn.size());
    EXPECT_LE(charged, drawn.size() + key * interval);
  }
}

TEST(Ledger, ContinuesWhatItGrewFrom) {
  Ledger ledger;
  std::vector<Ledger> history{ledger};
  ledger.authorise(0, 10, q, sigma);
  history.push_back(ledger);
  ledger.authorise(10, 20, q, sigma);
  history.push_back(ledger);
  ledger.charge(Phase{.q = 1.0, .sigma = 9.0, .steps = 1});
  history.push_back(ledger);
  ledger.fresh_key(15);
  history.push_back(ledger);
  ledger.authorise(15, 30, q, sigma);
  history.push_back(ledger);
  for (std::size_t a = 0; a < history.size(); ++a)
    for (std::size_t b = 0; b < history.size(); ++b)
      EXPECT_EQ(history[a].continues(history[b]), a >= b) << a << " " << b;
  Ledger other;
  other.authorise(0, 1000, q, 2 * sigma);
  EXPECT_FALSE(other.continues(history[1]));
}

TEST(LedgerText, RoundTripIsExact) {
  const Ledger ledger = example();
  const std::string text = ledger.to_text();
  EXPECT_EQ(Ledger::from_text(text, "a"), ledger);
  EXPECT_EQ(Ledger::from_text(text, "a").to_text(), text);
  EXPECT_EQ(Ledger::from_text(text, "a").phases(), ledger.phases());
  EXPECT_EQ(Ledger::from_text(Ledger().to_text(), "a"), Ledger());
  // It goes on where it was.
  Ledger read = Ledger::from_text(text, "a");
  EXPECT_EQ(read.authorised_until(), 350u);
  EXPECT_THROW(read.authorise(249, 350, q, sigma), std::invalid_argument);
}

TEST(LedgerText, EveryMechanismIsReadBackExactly) {
  Ledger ledger;
  ledger.limit({.order = 7.25, .epsilon = 3.0, .delta = 1e-5, .failure = 1e-7});
  std::uint64_t step = 0;
  for (const Mechanism& mechanism : one_of_each()) {
    ledger.charge(Step{mechanism, 3});
    ledger.authorise(step, step + 5, mechanism);
    step += 5;
  }
  ASSERT_EQ(one_of_each().size(), std::variant_size_v<Mechanism>);
  const std::string text = ledger.to_text();
  const Ledger read = Ledger::from_text(text, "a");
  EXPECT_EQ(read, ledger);
  EXPECT_EQ(read.to_text(), text);
  EXPECT_EQ(read.budget(), ledger.budget());
  std::vector<Step> expected;
  for (const Mechanism& mechanism : one_of_each()) expected.push_back({mechanism, 8});
  EXPECT_EQ(read.steps(), expected);
  EXPECT_THROW(read.phases(), std::domain_error);
}

TEST(LedgerText, TheFirstVersionIsStillRead) {
  const Ledger old = Ledger::from_text(
      sealed({"cudp-ledger 1", "release 1 1p+0 1.9p+8", "steps 0 100 1.47ae147ae147bp-7 1.8p+0",
              "key 50", "steps 50 10 1p+0 1p+1", "end"}),
      "old");
  Ledger same;
  same.charge(Phase{.q = 1.0, .sigma = 400.0, .steps = 1});
  same.authorise(0, 100, 0.01, 1.5);
  same.fresh_key(50);
  same.authorise(50, 60, 1.0, 2.0);
  EXPECT_EQ(old, same);
  EXPECT_EQ(Ledger::from_text(old.to_text(), "new"), same);
  EXPECT_NE(damage(sealed({"cudp-ledger 1", "release 1 gaussian 1p+0", "end"})), "");
  EXPECT_NE(damage(sealed({"cudp-ledger 1", "budget 1p+1 1p+0 1p-10 0p+0", "end"})), "");
}

TEST(LedgerText, EveryDamagedByteIsFoundInItsLine) {
  Ledger ledger = example();
  ledger.charge(Step{one_of_each()[4], 2});
  const std::string text = ledger.to_text();
  std::size_t line = 1;
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = text;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      const std::string found = damage(damaged);
      EXPECT_EQ(found.find("ledger.txt, line " + std::to_string(line) + ": expected "), 0u)
          << "byte " << i << ", bit " << bit << ": " << found;
      EXPECT_EQ(found.find('\n'), std::string::npos);
    }
    if (text[i] == '\n') ++line;
  }
}

TEST(LedgerText, EveryTruncationAndAnythingAppendedIsFound) {
  const std::string text = example().to_text();
  for (std::size_t n = 0; n < text.size(); ++n) EXPECT_NE(damage(text.substr(0, n)), "") << n;
  EXPECT_NE(damage(text + "\n"), "");
  EXPECT_NE(damage(text + text), "");
  EXPECT_EQ(damage(text), "");
  // A line taken out, two lines exchanged.
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at) + 1;
    lines.push_back(text.substr(at, end - at));
    at = end;
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string without;
    for (std::size_t j = 0; j < lines.size(); ++j)
      if (j != i) without += lines[j];
    EXPECT_NE(damage(without), "") << i;
    if (i == 0) continue;
    std::vector<std::string> order = lines;
    std::swap(order[i], order[i - 1]);
    std::string exchanged;
    for (const std::string& one : order) exchanged += one;
    EXPECT_NE(damage(exchanged), "") << i;
  }
}

TEST(LedgerText, NonsenseWithRightChecksumsIsRefusedToo) {
  const std::string title = "cudp-ledger 2", fine = "steps 0 5 poisson-gaussian 1p-7 1p+0";
  EXPECT_EQ(damage(sealed({title, fine, "end"})), "");
  const std::vector<std::pair<std::string, std::string>> lines{
      {"steps 1 5 poisson-gaussian 1p-7 1p+0", "expected steps from 0"},
      {"steps 0 -5 poisson-gaussian 1p-7 1p+0", "expected a count, found '-5'"},
      {"steps 0 5 poisson-gaussian 1p-7", "expected a hexadecimal number, found ''"},
      {"steps 0 5 poisson-gaussian 1p-7 1p+0 1", "expected the end of the line, found '1'"},
      {"steps 0 5 poisson-gaussian 1p+1 1p+0", "q: expected a sampling rate"},
      {"steps 0 5 poisson-gaussian nan 1p+0", "q: expected a sampling rate"},
      {"steps 0 5 gaussian 0p+0", "sigma: expected a finite noise multiplier"},
      {"release 99999999999999999999 gaussian 1p+0", "expected a count"},
      {"release 1 gauss 1p+0", "expected a mechanism's name, found 'gauss'"},
      {"release 1 1p+0 1p+0", "expected a mechanism's name, found '1p+0'"},
      {"release 1 gaussian-mixture 1p+0 2 0p+0 1p-1 1p+0", "expected a hexadecimal number"},
      {"release 1 gaussian-mixture 1p+0 1 0p+0 1p-1", "expected a sum of 1"},
      {"release 1 gaussian-mixture 1p+0 9999999999999 0p+0 1p-1", "expected a hexadecimal number"},
      {"key 1", "expected a key from at most step 0"},
      {"spend 1", "expected release, steps, key or end"},
      {"budget 1p+0 1p+0 1p-10 0p+0", "expected Renyi orders > 1"},
      {"budget 1p+1 0p+0 1p-10 0p+0", "epsilon: expected"},
      {"budget 1p+1 1p+0 1p+0 0p+0", "delta: expected"},
      {"budget 1p+1 1p+0 1p-10 1p-10", "failure: expected"},
      {"budget 1p+1 1p+0 1p-10", "expected a hexadecimal number, found ''"},
      {"", "expected release, steps, key or end"}};
  for (const auto& [line, reason] : lines) {
    const std::string found = damage(sealed({title, line, "end"}));
    EXPECT_EQ(found.find("ledger.txt, line 2: "), 0u) << found;
    EXPECT_NE(found.find(reason), std::string::npos) << found;
  }
  EXPECT_NE(damage(sealed({title, "steps 0 18446744073709551615 gaussian 1p+0",
                           "steps 18446744073709551615 1 gaussian 1p+0", "end"})),
            "");
  // A budget comes first or not at all.
  EXPECT_NE(damage(sealed({title, fine, "budget 1p+1 1p+0 1p-10 0p+0", "end"})), "");
  EXPECT_EQ(damage(sealed({title, "budget 1p+1 1p+0 1p-10 0p+0", fine, "end"})), "");
  EXPECT_NE(damage(sealed({"cudp-ledger 3", "end"})).find("expected the title cudp-ledger 2"),
            std::string::npos);
}

}  // namespace
}  // namespace cudp::privacy
