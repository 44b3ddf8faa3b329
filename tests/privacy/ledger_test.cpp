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

#include "privacy/rdp/conversion.hpp"
#include "privacy/rdp/curve.hpp"
#include "privacy/rdp/default_orders.hpp"
#include "privacy/rdp/sampled_gaussian.hpp"
#include "tests/support/print.hpp"

namespace cudp::privacy {
namespace {

constexpr double q = 0.01, sigma = 1.1;
const Mechanism usual = PoissonGaussian{q, sigma};

std::uint64_t total_steps(const Ledger& ledger) {
  std::uint64_t total = 0;
  for (const Release& release : ledger.releases()) total += release.count;
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
  ledger.charge({Gaussian{400.0}, 1});
  ledger.authorise(0, 100, usual);
  ledger.authorise(100, 200, usual);
  ledger.authorise(200, 300, PoissonGaussian{q, 0.1 + 0.2});
  ledger.fresh_key(250);
  ledger.authorise(250, 350, PoissonGaussian{q, std::nextafter(sigma, 2.0)});
  ledger.charge({Gaussian{1e-300}, 0});
  return ledger;
}

/// One of every mechanism, each field another number.
std::vector<Mechanism> one_of_each() {
  return {Gaussian{1.5},
          PoissonGaussian{0.01, 0.1 + 0.2},
          FixedSizeGaussian{50000, 500, 2.0},
          TruncatedPoissonGaussian{60000, 0.004, 300, 1.25},
          AllocatedGaussian{118, 0.9},
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

TEST(Ledger, ListsWhatWasChargedInItsOrder) {
  Ledger ledger;
  EXPECT_TRUE(ledger.releases().empty());
  EXPECT_EQ(epsilon_by_rdp(ledger.releases(), 1e-5).epsilon, 0.0);
  EXPECT_EQ(ledger.authorise(0, 1000, usual), 1000u);
  ledger.charge({Gaussian{50.0}, 2});
  const std::vector<Release> releases{{usual, 1000}, {Gaussian{50.0}, 2}};
  EXPECT_EQ(ledger.releases(), releases);
  const double best = epsilon_by_rdp(ledger.releases(), 1e-5).epsilon;
  const double listed = epsilon_by_rdp(releases, 1e-5, {}, default_orders()).epsilon;
  EXPECT_TRUE(best <= listed && best >= 0.999 * listed) << best << " " << listed;
  const std::vector<double> order{7.5};
  const double divergence = 1000 * rdp_sampled_gaussian(q, sigma, 7.5) + 2 * 7.5 / (2 * 2500.0);
  EXPECT_TRUE(std::fabs(epsilon_by_rdp(ledger.releases(), 1e-5, {}, order).epsilon /
                            epsilon_at(7.5, divergence, 1e-5) -
                        1) <= 1e-14);
  EXPECT_THROW(epsilon_by_rdp(ledger.releases(), 0.0), std::invalid_argument);
}

TEST(Ledger, EqualNeighboursMerge) {
  Ledger ledger;
  for (std::uint64_t step = 0; step < 1000; ++step) ledger.authorise(step, step + 1, usual);
  Ledger at_once;
  at_once.authorise(0, 1000, usual);
  EXPECT_EQ(ledger, at_once);
  EXPECT_EQ(ledger.releases().size(), 1u);
}

TEST(Ledger, ReplayWithTheSameKeyIsFreeAndWithAnotherIsNot) {
  Ledger ledger;
  ledger.authorise(0, 100, usual);
  ledger.authorise(100, 200, usual);
  // A crash; the checkpoint of step 100, with its key.
  EXPECT_EQ(ledger.authorise(100, 200, usual), 0u);
  EXPECT_EQ(ledger.authorise(150, 250, usual), 50u);
  EXPECT_EQ(total_steps(ledger), 250u);
  EXPECT_EQ(ledger.repeated(), 0u);
  // A crash; the checkpoint of step 200, without its key.
  ledger.fresh_key(200);
  EXPECT_EQ(ledger.authorised_until(), 200u);
  EXPECT_EQ(total_steps(ledger), 250u);
  EXPECT_EQ(ledger.repeated(), 50u);
  EXPECT_EQ(ledger.authorise(200, 300, usual), 100u);
  EXPECT_EQ(ledger.repeated(), 50u);
  EXPECT_EQ(total_steps(ledger), 350u);
  EXPECT_EQ(ledger.authorise(220, 300, usual), 0u);
}

TEST(Ledger, RefusesWhatTheKeyMayNotRun) {
  Ledger ledger;
  ledger.authorise(0, 100, usual);
  ledger.authorise(100, 200, PoissonGaussian{2 * q, sigma});
  const Ledger before = ledger;
  EXPECT_THROW(ledger.authorise(201, 300, usual), std::invalid_argument);  // a gap
  EXPECT_THROW(ledger.authorise(100, 99, usual), std::invalid_argument);
  EXPECT_THROW(ledger.authorise(50, 60, PoissonGaussian{q, 2 * sigma}),
               std::invalid_argument);  // other settings
  EXPECT_THROW(ledger.authorise(99, 200, PoissonGaussian{2 * q, sigma}), std::invalid_argument);
  EXPECT_THROW(ledger.authorise(150, 250, usual), std::invalid_argument);
  EXPECT_THROW(ledger.authorise(200, 300, PoissonGaussian{1.5, sigma}), std::invalid_argument);
  EXPECT_THROW(ledger.authorise(200, 300, PoissonGaussian{q, 0.0}), std::invalid_argument);
  EXPECT_THROW(ledger.charge({PoissonGaussian{q, -1.0}, 1}), std::invalid_argument);
  EXPECT_THROW(ledger.fresh_key(201), std::invalid_argument);
  EXPECT_EQ(ledger, before);
  EXPECT_EQ(ledger.authorise(50, 100, usual), 0u);
  EXPECT_EQ(ledger.authorise(100, 250, PoissonGaussian{2 * q, sigma}), 50u);
  ledger.fresh_key(80);
  EXPECT_THROW(ledger.authorise(79, 100, usual), std::invalid_argument);  // of the lost key
  EXPECT_EQ(ledger.authorise(80, 90, PoissonGaussian{q, 3 * sigma}),
            10u);  // other settings, other noise
}

TEST(Ledger, ABudgetIsWrittenFirstAndOnce) {
  const Budget budget{.order = 0.0, .epsilon = 1.0, .delta = 1e-6, .failure = 0.0};
  Ledger ledger, other;
  ledger.limit(budget);
  EXPECT_EQ(ledger.budget(), budget);
  EXPECT_THROW(ledger.limit(budget), std::invalid_argument);
  other.charge({BoundedRange{0.1}, 1});
  EXPECT_THROW(other.limit(budget), std::invalid_argument);
  // Forgetting it, or changing it, is no continuation.
  Ledger larger;
  larger.limit({.order = 0.0, .epsilon = 2.0, .delta = 1e-6, .failure = 0.0});
  EXPECT_TRUE(ledger.continues(Ledger()));
  EXPECT_FALSE(Ledger().continues(ledger));
  EXPECT_FALSE(larger.continues(ledger));
  EXPECT_FALSE(ledger.continues(other));
}

/// By one order, release by release.
double epsilon_one_by_one(const Ledger& ledger, double delta, double order) {
  double divergence = 0.0;
  for (const Release& release : ledger.releases()) {
    const auto& sampled = std::get<PoissonGaussian>(release.mechanism);
    divergence +=
        static_cast<double>(release.count) * rdp_sampled_gaussian(sampled.q, sampled.sigma, order);
  }
  return epsilon_at(order, divergence, delta);
}

TEST(Ledger, TensOfThousandsOfDifferentStepsStayQuick) {
  // ADP-SGD: 200 epochs of 196 steps, each with its own noise.
  Ledger ledger;
  const std::uint64_t all = 39200;
  for (std::uint64_t step = 0; step < all; ++step)
    ledger.authorise(step, step + 1,
                     PoissonGaussian{256.0 / 50000.0,
                                     0.4 * std::pow(1.0 + static_cast<double>(step) / 20.0, 0.25)});
  EXPECT_EQ(ledger.releases().size(), all);
  const Ledger read = Ledger::from_text(ledger.to_text(), "a");
  EXPECT_EQ(read, ledger);
  const PrivacyBound best = epsilon_by_rdp(read.releases(), 1e-5);
  // (The order is 2.52; a list in tenths gives slightly more.)
  double listed = std::numeric_limits<double>::infinity();
  for (const double order : {2.4, 2.5, 2.6})
    listed = std::fmin(listed, epsilon_one_by_one(ledger, 1e-5, order));
  EXPECT_TRUE(best.epsilon < listed && best.epsilon > 0.999 * listed)
      << best.epsilon << " " << listed;
  const double exact = epsilon_one_by_one(ledger, 1e-5, best.order);
  EXPECT_TRUE(std::fabs(best.epsilon / exact - 1) <= 1e-10) << best.epsilon << " " << exact;
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
        charged += ledger.authorise(step, end, usual);
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
  ledger.authorise(0, 10, usual);
  history.push_back(ledger);
  ledger.authorise(10, 20, usual);
  history.push_back(ledger);
  ledger.charge({Gaussian{9.0}, 1});
  history.push_back(ledger);
  ledger.fresh_key(15);
  history.push_back(ledger);
  ledger.authorise(15, 30, usual);
  history.push_back(ledger);
  for (std::size_t a = 0; a < history.size(); ++a)
    for (std::size_t b = 0; b < history.size(); ++b)
      EXPECT_EQ(history[a].continues(history[b]), a >= b) << a << " " << b;
  Ledger other;
  other.authorise(0, 1000, PoissonGaussian{q, 2 * sigma});
  EXPECT_FALSE(other.continues(history[1]));
}

TEST(LedgerText, RoundTripIsExact) {
  const Ledger ledger = example();
  const std::string text = ledger.to_text();
  EXPECT_EQ(Ledger::from_text(text, "a"), ledger);
  EXPECT_EQ(Ledger::from_text(text, "a").to_text(), text);
  EXPECT_EQ(Ledger::from_text(text, "a").releases(), ledger.releases());
  EXPECT_EQ(Ledger::from_text(Ledger().to_text(), "a"), Ledger());
  // It goes on where it was.
  Ledger read = Ledger::from_text(text, "a");
  EXPECT_EQ(read.authorised_until(), 350u);
  EXPECT_THROW(read.authorise(249, 350, usual), std::invalid_argument);
}

TEST(LedgerText, EveryMechanismIsReadBackExactly) {
  Ledger ledger;
  ledger.limit({.order = 7.25, .epsilon = 3.0, .delta = 1e-5, .failure = 1e-7});
  std::uint64_t step = 0;
  for (const Mechanism& mechanism : one_of_each()) {
    ledger.charge({mechanism, 3});
    ledger.authorise(step, step + 5, mechanism);
    step += 5;
  }
  ASSERT_EQ(one_of_each().size(), std::variant_size_v<Mechanism>);
  const std::string text = ledger.to_text();
  const Ledger read = Ledger::from_text(text, "a");
  EXPECT_EQ(read, ledger);
  EXPECT_EQ(read.to_text(), text);
  EXPECT_EQ(read.budget(), ledger.budget());
  std::vector<Release> expected;
  for (const Mechanism& mechanism : one_of_each()) expected.push_back({mechanism, 8});
  EXPECT_EQ(read.releases(), expected);
}

TEST(LedgerText, TheFirstVersionIsStillRead) {
  const Ledger old = Ledger::from_text(
      sealed({"cudp-ledger 1", "release 1 1p+0 1.9p+8", "steps 0 100 1.47ae147ae147bp-7 1.8p+0",
              "key 50", "steps 50 10 1p+0 1p+1", "end"}),
      "old");
  Ledger same;
  same.charge({Gaussian{400.0}, 1});
  same.authorise(0, 100, PoissonGaussian{0.01, 1.5});
  same.fresh_key(50);
  same.authorise(50, 60, Gaussian{2.0});
  EXPECT_EQ(old, same);
  EXPECT_EQ(Ledger::from_text(old.to_text(), "new"), same);
  EXPECT_NE(damage(sealed({"cudp-ledger 1", "release 1 gaussian 1p+0", "end"})), "");
  EXPECT_NE(damage(sealed({"cudp-ledger 1", "budget 1p+1 1p+0 1p-10 0p+0", "end"})), "");
}

TEST(LedgerText, EveryDamagedByteIsFoundInItsLine) {
  Ledger ledger = example();
  ledger.charge({one_of_each()[5], 2});
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
