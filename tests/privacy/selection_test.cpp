#include "privacy/selection.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "privacy/accountant.hpp"
#include "privacy/calibrate.hpp"
#include "privacy/run_filter.hpp"

namespace cudp::privacy {
namespace {

// ---- Brute force: Q with a few outputs, and the exact distribution of A.

/// Distributions of Q on two neighbours. Outputs are in ascending order of their scores; `score`
/// is equal for outputs between which the first that was drawn wins.
struct SmallQ {
  std::vector<double> on_d, on_other;
  std::vector<int> score;
};

/// Returns the distribution of A: of the best of K outputs.
std::vector<long double> selected(const Stopping& stopping, const std::vector<double>& q,
                                  const std::vector<int>& score) {
  const auto generated = [&](long double u) {
    long double sum = 0.0L;
    for (std::uint64_t k = stopping.law().cap; k > 0; --k)
      sum = (sum + static_cast<long double>(stopping.probability(k))) * u;
    return sum;
  };
  std::vector<long double> a(q.size());
  long double below = 0.0L;
  for (std::size_t i = 0; i < q.size();) {
    std::size_t end = i;
    long double together = 0.0L;
    for (; end < q.size() && score[end] == score[i]; ++end)
      together += static_cast<long double>(q[end]);
    const long double mass = generated(below + together) - generated(below);
    for (std::size_t j = i; j < end; ++j)
      a[j] = together > 0.0L ? mass * static_cast<long double>(q[j]) / together : 0.0L;
    below += together;
    i = end;
  }
  return a;
}

template <class Number>
double hockey_stick(const std::vector<Number>& p, const std::vector<Number>& q, double epsilon) {
  const long double factor = std::exp(static_cast<long double>(epsilon));
  long double sum = 0.0L;
  for (std::size_t i = 0; i < p.size(); ++i)
    sum +=
        std::fmax(0.0L, static_cast<long double>(p[i]) - factor * static_cast<long double>(q[i]));
  return static_cast<double>(sum);
}

template <class Number>
double renyi(const std::vector<Number>& p, const std::vector<Number>& q, double order) {
  long double sum = 0.0L;
  for (std::size_t i = 0; i < p.size(); ++i)
    if (p[i] > 0)
      sum += std::pow(static_cast<long double>(p[i]), static_cast<long double>(order)) *
             std::pow(static_cast<long double>(q[i]), 1.0L - static_cast<long double>(order));
  return static_cast<double>(std::log(sum) / (static_cast<long double>(order) - 1.0L));
}

RepetitionBounds exact_bounds(const SmallQ& q) {
  return {.profile =
              [q](std::span<const double> epsilons) {
                std::vector<ProfileAt> found;
                for (const double e : epsilons)
                  found.push_back(
                      {hockey_stick(q.on_d, q.on_other, e), hockey_stick(q.on_other, q.on_d, e)});
                return found;
              },
          .divergence =
              [q](double order) {
                return std::fmax(renyi(q.on_d, q.on_other, order),
                                 renyi(q.on_other, q.on_d, order));
              }};
}

/// Draws a Q with 2 to 6 outputs. Half of them are built to be bad: the best outputs are the ones
/// that are likelier on the neighbour, and those below them the likeliest on D.
SmallQ random_q(std::mt19937_64& random) {
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  const auto n = std::uniform_int_distribution<std::size_t>(2, 6)(random);
  const double epsilon = uniform(0.05, 2.5);
  SmallQ q;
  double sum = 0.0, other = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    q.on_d.push_back(std::exp(uniform(-9.0, 0.0)));
    q.on_other.push_back(q.on_d.back() * std::exp(epsilon * uniform(-1.0, 1.0)));
    q.score.push_back(static_cast<int>(i));
  }
  if (random() % 2 == 0 && n >= 3) {  // top: likelier on the neighbour; then likelier on D
    q.on_d[n - 1] = std::exp(uniform(-7.0, -1.0));
    q.on_other[n - 1] = q.on_d[n - 1] * std::exp(epsilon);
    q.on_other[n - 2] = q.on_d[n - 2] * std::exp(-epsilon);
    q.on_d[0] = 1.0;
    q.on_other[0] = 1.0;
  }
  if (random() % 4 == 0) q.on_other[random() % n] *= 1e-6;  // almost delta > 0
  if (random() % 4 == 0)
    for (std::size_t i = 1; i < n; ++i)
      if (random() % 2 == 0) q.score[i] = q.score[i - 1];
  for (std::size_t i = 0; i < n; ++i) {
    sum += q.on_d[i];
    other += q.on_other[i];
  }
  for (std::size_t i = 0; i < n; ++i) {
    q.on_d[i] /= sum;
    q.on_other[i] /= other;
  }
  if (random() % 2 == 0) std::swap(q.on_d, q.on_other);
  return q;
}

std::vector<StoppingLaw> small_laws() {
  std::vector<StoppingLaw> laws;
  for (const double eta : {-0.8, -0.5, 0.0, 0.5, 1.0, 3.0})
    for (const double gamma : {0.02, 0.2, 0.7})
      for (const std::uint64_t cap : {std::uint64_t{3}, std::uint64_t{20}, std::uint64_t{2048}})
        laws.push_back({.eta = eta,
                        .gamma = gamma,
                        .cap = gamma > 0.1 && cap > 20 ? 256 : std::min<std::uint64_t>(cap, 1024)});
  return laws;
}

/// The bound of Koskela, Redberg, Wang 2024 (arXiv:2402.06701) for an uncapped law. A term may be
/// left out, or the directions be exchanged, to see that brute force notices.
struct Formula {
  bool without_eta = false, without_mean = false, exchanged = false;

  double operator()(const SmallQ& q, const Stopping& stopping, double epsilon) const {
    const StoppingLaw& law = stopping.law();
    const std::vector<double>& p = exchanged ? q.on_other : q.on_d;
    const std::vector<double>& r = exchanged ? q.on_d : q.on_other;
    double least = 1e300;
    for (double e = 0.0; e < 10.0; e += 0.05)
      least = std::fmin(least, std::exp(e) + (1.0 - law.gamma) / law.gamma * hockey_stick(r, p, e));
    const double factor = without_eta ? 1.0 : 1.0 + law.eta;
    const double mean = without_mean ? 1.0 : stopping.mean();
    const double at = epsilon - factor * std::log(least);
    return mean * hockey_stick(p, r, at);
  }
};

double quantile(std::vector<double>& values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

void print_quantiles(const char* what, std::vector<double>& ratios) {
  std::printf("%s, %zu values: least %.4f, 10 %% %.4f, median %.4f, 90 %% %.4f, most %.4g\n", what,
              ratios.size(), quantile(ratios, 0.0), quantile(ratios, 0.1), quantile(ratios, 0.5),
              quantile(ratios, 0.9), quantile(ratios, 1.0));
}

/// Returns the bound of Papernot, Steinke 2022 (arXiv:2110.03620), Theorem 2, on the Renyi
/// divergence of a selection. The number of trainings has distribution D(eta, gamma) without a cap,
/// and this mean. divergence, second_divergence: Renyi divergences of one training (Q) at `order`
/// and at `second_order`. Never below Selection::divergence with these two orders.
double papernot_steinke_divergence(double eta, double gamma, double mean, double order,
                                   double divergence, double second_order,
                                   double second_divergence) {
  return divergence + (1.0 + eta) * (1.0 - 1.0 / second_order) * second_divergence +
         (1.0 + eta) * std::log(1.0 / gamma) / second_order + std::log(mean) / (order - 1.0);
}

constexpr int kSmallQs = 5022;

TEST(SelectionBounds, AreNeverBelowBruteForce) {
  std::mt19937_64 random(59);
  const std::vector<StoppingLaw> laws = small_laws();
  std::vector<double> deltas, epsilons, divergences, published;
  for (int i = 0; i < kSmallQs; ++i) {
    const SmallQ q = random_q(random);
    const StoppingLaw& law = laws[static_cast<std::size_t>(i) % laws.size()];
    Selection selection(law, exact_bounds(q), 400);
    const Stopping& stopping = selection.stopping();
    const std::vector<long double> a = selected(stopping, q.on_d, q.score);
    const std::vector<long double> b = selected(stopping, q.on_other, q.score);
    for (const double epsilon : {0.0, 0.3, 1.0, 2.0, 3.5, 6.0}) {
      const ProfileAt bound = selection.profile(epsilon);
      const double add = hockey_stick(a, b, epsilon), remove = hockey_stick(b, a, epsilon);
      ASSERT_GE(bound.add, add - 1e-15) << i << " " << epsilon;
      ASSERT_GE(bound.remove, remove - 1e-15) << i << " " << epsilon;
      if (add > 1e-9) deltas.push_back(bound.add / add);
      if (remove > 1e-9) deltas.push_back(bound.remove / remove);
    }
    for (const double delta : {1e-2, 1e-4}) {
      double low = 0.0, high = 40.0;
      for (int round = 0; round < 40; ++round) {
        const double middle = 0.5 * (low + high);
        (std::fmax(hockey_stick(a, b, middle), hockey_stick(b, a, middle)) <= delta ? high : low) =
            middle;
      }
      const double bound = selection.epsilon(delta).epsilon;
      ASSERT_GE(bound, low - 1e-9) << i;
      if (low > 0.01) epsilons.push_back(bound / low);
    }
    for (const double order : {1.1, 2.0, 5.0, 30.0}) {
      const double exact = std::fmax(renyi(a, b, order), renyi(b, a, order));
      const double bound = selection.divergence(order);
      ASSERT_GE(bound, exact - 1e-12) << i << " " << order;
      if (exact > 1e-3) divergences.push_back(bound / exact);
      if (law.cap < 256) continue;  // the theorem is for laws without a cap
      double theorem = std::numeric_limits<double>::infinity();
      const RepetitionBounds known = exact_bounds(q);
      for (const double second : {1.0, 1.5, 2.0, 4.0, 10.0, 50.0, 200.0})
        theorem = std::fmin(
            theorem, papernot_steinke_divergence(law.eta, law.gamma, stopping.mean(), order,
                                                 known.divergence(order), second,
                                                 second > 1.0 ? known.divergence(second) : 0.0));
      ASSERT_GE(theorem, exact - 1e-9) << i << " " << order;
      published.push_back((theorem - exact) / std::fmax(bound - exact, 1e-9));
    }
  }
  print_quantiles("delta, bound over exact", deltas);
  print_quantiles("epsilon, bound over exact", epsilons);
  print_quantiles("Renyi divergence, bound over exact", divergences);
  print_quantiles("excess of Papernot and Steinke's over this bound's", published);
}

TEST(SelectionBounds, MistakesAreFoundByBruteForce) {
  std::mt19937_64 random(60);
  int right = 0, eta = 0, mean = 0, exchanged = 0, own_mean = 0, own_exchanged = 0;
  std::vector<StoppingLaw> laws;
  for (const StoppingLaw& law : small_laws())
    if (law.cap >= 256) laws.push_back(law);
  std::vector<double> improved;
  for (int i = 0; i < 1500; ++i) {
    const SmallQ q = random_q(random);
    Selection selection(laws[static_cast<std::size_t>(i) % laws.size()], exact_bounds(q), 512);
    const Stopping& stopping = selection.stopping();
    const std::vector<long double> a = selected(stopping, q.on_d, q.score);
    const std::vector<long double> b = selected(stopping, q.on_other, q.score);
    for (const double epsilon : {0.3, 1.0, 2.0, 3.0}) {
      const double exact = hockey_stick(a, b, epsilon) - 1e-12;
      const double theorem = Formula{}(q, stopping, epsilon);
      const ProfileAt own = selection.profile(epsilon);
      if (exact > 1e-6) improved.push_back(theorem / own.add);
      right += theorem < exact;
      eta += Formula{.without_eta = true}(q, stopping, epsilon) < exact;
      mean += Formula{.without_mean = true}(q, stopping, epsilon) < exact;
      exchanged += Formula{.exchanged = true}(q, stopping, epsilon) < exact;
      own_mean += own.add / stopping.mean() < exact;
      own_exchanged += own.remove < exact;
    }
  }
  std::printf("of 6000: 1 + eta dropped %d, E[K] forgotten %d, direction exchanged %d\n", eta, mean,
              exchanged);
  print_quantiles("delta of Koskela et al. over this bound's", improved);
  EXPECT_EQ(right, 0);
  EXPECT_GT(eta, 0);
  EXPECT_GT(mean, 0);
  EXPECT_GT(exchanged, 0);
  EXPECT_GT(own_mean, 0);
  EXPECT_GT(own_exchanged, 0);
}

// ---- Stopping.

TEST(StoppingLaws, HaveTheStatedProbabilitiesAndMean) {
  for (const double eta : {-0.5, 0.0, 1.0, 2.5})
    for (const double mean : {1.5, 4.0, 10.0}) {
      const StoppingLaw law = stopping_law(eta, mean);
      const Stopping stopping(law);
      EXPECT_NEAR(stopping.mean(), mean, 1e-8 * mean);
      long double sum = 0.0L, first = 0.0L;
      for (std::uint64_t k = 1; k <= law.cap; ++k) {
        sum += static_cast<long double>(stopping.probability(k));
        first += static_cast<long double>(k) * static_cast<long double>(stopping.probability(k));
        EXPECT_NEAR(stopping.tail(k), static_cast<double>(1.0L - sum), 1e-15);
      }
      EXPECT_NEAR(static_cast<double>(sum), 1.0, 1e-15);
      EXPECT_GE(stopping.mean(), static_cast<double>(first));
      for (std::uint64_t k = 1; k < law.cap && stopping.probability(k + 1) > 1e-12; ++k)
        EXPECT_NEAR(stopping.probability(k + 1) / stopping.probability(k),
                    (1.0 - law.gamma) * (static_cast<double>(k) + eta) / static_cast<double>(k + 1),
                    1e-6);
      // The closed forms of E[K], for laws whose cap cuts off nothing.
      const double closed =
          eta == 0.0 ? (1.0 / law.gamma - 1.0) / std::log(1.0 / law.gamma)
                     : eta * (1.0 - law.gamma) / law.gamma / (1.0 - std::pow(law.gamma, eta));
      EXPECT_NEAR(closed, mean, 1e-7 * mean);
    }
}

TEST(StoppingLaws, AreDrawnAsTheyAreAccounted) {
  const Stopping stopping({.eta = 0.0, .gamma = 0.3, .cap = 40});
  // The number of bits with K <= k is the sum of the probabilities, to the last bit.
  std::uint64_t before = 0;
  for (std::uint64_t k = 1; k <= 40 && stopping.tail(k - 1) > 0.0; ++k) {
    std::uint64_t low = 0, high = ~std::uint64_t{0};  // the largest bits with K <= k
    while (low < high) {
      const std::uint64_t middle = low + (high - low) / 2 + 1;
      if (stopping.draw(middle) <= k)
        low = middle;
      else
        high = middle - 1;
    }
    EXPECT_EQ(stopping.draw(low), k);
    EXPECT_EQ(std::ldexp(static_cast<double>(low + 1 - before), -64), stopping.probability(k));
    before = low + 1;
  }
  EXPECT_EQ(before, 0U);
  const Stopping once({.eta = 1.0, .gamma = 0.5, .cap = 1});
  EXPECT_EQ(once.draw(0), 1U);
  EXPECT_EQ(once.draw(~std::uint64_t{0}), 1U);
  EXPECT_EQ(once.probability(1), 1.0);
  EXPECT_EQ(once.mean(), std::fmax(once.mean(), 1.0));
}

TEST(StoppingLaws, RefuseWhatHasNoLaw) {
  EXPECT_THROW(Stopping({.eta = -1.0, .gamma = 0.5, .cap = 5}), std::invalid_argument);
  EXPECT_THROW(Stopping({.eta = 0.0, .gamma = 1.0, .cap = 5}), std::invalid_argument);
  EXPECT_THROW(Stopping({.eta = 0.0, .gamma = 0.5, .cap = 0}), std::invalid_argument);
  EXPECT_THROW(stopping_law(0.0, 1.0), std::invalid_argument);
  EXPECT_THROW(stopping_law(0.0, 10.0, 10), std::domain_error);
  EXPECT_EQ(stopping_law(0.0, 10.0, 100).cap, 100U);
}

// ---- Published values.

TEST(SelectionBounds, TheoremHasTheValuesOfDpAccounting) {
  // dp_accounting 0.6.0, _compute_rdp_repeat_and_select for the divergences order / 8 of a
  // Gaussian, and its _gamma_truncated_negative_binomial.
  struct Row {
    double mean, eta, gamma;
    std::vector<double> rdp;
  };
  const std::vector<double> orders = {8.0, 16.0, 32.0, 64.0, 256.0};
  const std::vector<double> all = {1.5, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 256.0};
  const Row rows[] = {{10.0,
                       0.0,
                       0.02691825958900153,
                       {2.6076783344509247, 3.4322432797466167, 5.353014545364026,
                        9.315286576610411, 33.28776735234307}},
                      {10.0,
                       1.0,
                       0.1,
                       {3.2302332740676007, 4.054798219363293, 5.975569484980701, 9.937841516227088,
                        33.910322291959744}},
                      {3.0,
                       0.5,
                       0.25,
                       {2.2393049980868316, 3.1556012046645, 5.117799491506027, 9.099798675716277,
                        33.086668668904935}}};
  for (const Row& row : rows) {
    const StoppingLaw law = stopping_law(row.eta, row.mean);
    EXPECT_NEAR(law.gamma, row.gamma, 1e-8);
    Selection own(law,
                  bounds_of(std::vector<RunSpending>{{.run = PlannedRun{{{Gaussian{2.0}, 1}}}}}));
    for (std::size_t i = 0; i < orders.size(); ++i) {
      double least = 1e300;
      for (const double second : all)
        least =
            std::fmin(least, papernot_steinke_divergence(row.eta, row.gamma, row.mean, orders[i],
                                                         orders[i] / 8.0, second, second / 8.0));
      EXPECT_NEAR(least, row.rdp[i], 1e-9);
      EXPECT_LT(own.divergence(orders[i]), row.rdp[i]);
    }
  }
}

// ---- Trainings.

RunSpending steps(double q, double sigma, std::uint64_t count) {
  return {.run = PlannedRun{{{PoissonGaussian{q, sigma}, count}}}};
}

TEST(SelectionBounds, OfOneRepetitionIsThatOfTheTraining) {
  const StoppingLaw once{.eta = 0.0, .gamma = 0.5, .cap = 1};
  Selection selection(once, bounds_of(std::vector<RunSpending>{steps(0.01, 1.0, 500)}));
  const double epsilon =
      Accountant({.releases = {{PoissonGaussian{0.01, 1.0}, 500}}}).epsilon(1e-5).epsilon;
  EXPECT_GE(selection.epsilon(1e-5).epsilon, epsilon * (1.0 - 1e-6));
  EXPECT_LE(selection.epsilon(1e-5).epsilon, epsilon * 1.002);
}

TEST(SelectionBounds, OfACandidateThatIsKnownByAFilter) {
  const StoppingLaw law = stopping_law(0.0, 10.0);
  const std::vector<RunSpending> filtered = {{.run = ZcdpFilteredRun{0.05}},
                                             {.run = RenyiFilteredRun{12.0, 0.5}}};
  Selection both(law, bounds_of(filtered));
  Selection one(law, bounds_of(std::vector<RunSpending>{filtered[0]}));
  const SelectionEpsilon epsilon = both.epsilon(1e-5);
  EXPECT_GE(epsilon.epsilon, one.epsilon(1e-5).epsilon);
  EXPECT_LE(epsilon.epsilon, 10.0);
  // Order 12 is the largest that both have.
  EXPECT_TRUE(std::isfinite(both.divergence(12.0)));
  EXPECT_FALSE(std::isfinite(both.divergence(12.5)));
}

TEST(SelectionBounds, AreNoSmallerWithAFailure) {
  const StoppingLaw law = stopping_law(1.0, 5.0);
  RunSpending plain = steps(0.02, 1.2, 300), failing = plain;
  failing.failure = 1e-7;
  Selection a(law, bounds_of(std::vector<RunSpending>{plain}));
  Selection b(law, bounds_of(std::vector<RunSpending>{failing}));
  EXPECT_GE(b.profile(1.0).add, a.profile(1.0).add + 4e-7);
  EXPECT_GE(b.profile(1.0).remove, a.profile(1.0).remove + 4e-7);
  EXPECT_GE(b.divergence(4.0), a.divergence(4.0) * (1.0 - 1e-6));
  EXPECT_NEAR(b.failure(), 5e-7, 1e-12);
  EXPECT_EQ(a.failure(), 0.0);
}

TEST(Selections, AreCalibrated) {
  const StoppingLaw law = stopping_law(0.0, 10.0);
  std::vector<RunSpending> last;
  const auto plan = [&](double epsilon, double delta) {
    last.clear();
    for (const double q : {0.0042, 0.0085, 0.017}) {
      const Release release{PoissonGaussian{q, 0.0}, 1000};
      last.push_back(steps(q, calibrate_sigma({}, release, epsilon, delta), 1000));
    }
    return last;
  };
  const SelectionBudget budget = calibrate_selection(law, 3.0, 1e-5, plan);
  std::printf("E[K] = 10, eta = 0: epsilon 3 at 1e-5 is epsilon %.4f at %.3g of each candidate\n",
              budget.epsilon, budget.delta);
  EXPECT_LE(budget.whole.epsilon, 3.0);
  EXPECT_GE(budget.whole.epsilon, 3.0 * 0.998);
  EXPECT_EQ(Selection(law, bounds_of(plan(budget.epsilon, budget.delta))).epsilon(1e-5).epsilon,
            budget.whole.epsilon);
  // Half of epsilon, which is tried first, may be too small for a candidate.
  const SelectionBudget large = calibrate_selection(law, 3.0, 1e-5, [](double epsilon, double) {
    std::vector<RunSpending> stated;
    if (epsilon >= 2.0) stated.push_back({.run = ZcdpFilteredRun{0.01 * epsilon}});
    return stated;
  });
  EXPECT_GE(large.epsilon, 2.0);
  EXPECT_LE(large.whole.epsilon, 3.0);
  EXPECT_THROW(static_cast<void>(calibrate_selection(
                   law, 3.0, 1e-5, [](double, double) { return std::vector<RunSpending>{}; })),
               std::domain_error);
  EXPECT_THROW(static_cast<void>(calibrate_selection(
                   law, 0.5, 1e-5,
                   [](double, double) {
                     return std::vector<RunSpending>{{.run = StatedRun{4.0, 1e-9}}};
                   })),
               std::domain_error);
}

TEST(Selections, AreComposedWithOtherRuns) {
  const TunedRun tuned{.law = stopping_law(0.0, 4.0), .candidates = {steps(0.01, 1.5, 400)}};
  const std::vector<RunSpending> alone = {{.run = tuned}};
  const std::vector<RunSpending> both = {{.run = tuned}, steps(0.01, 1.5, 400)};
  const double first = epsilon_fixed_ahead(alone, 1e-5), second = epsilon_fixed_ahead(both, 1e-5);
  EXPECT_GE(first, Selection(tuned).epsilon(1e-5).epsilon);
  EXPECT_GT(second, first);
  EXPECT_GE(epsilon_as_chosen(both, 1e-5), second);
  // A budget for several runs charges the divergence of the whole selection at its order.
  RunFilter filter(budget_for_runs(6.0, 1e-5));
  const RunCost cost = filter.cost(alone, 1);
  const double divergence = Selection(tuned).divergence(filter.budget().order);
  EXPECT_NEAR(cost.divergence, divergence, 1e-9 * divergence);
  EXPECT_GT(cost.divergence, filter.cost({both[1]}, 1).divergence);
  EXPECT_THROW(static_cast<void>(bounds_of(alone)), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(
                   bounds_of(std::vector<RunSpending>{{.run = ChosenRun{{{Gaussian{1}, 1}}}}})),
               std::invalid_argument);
}

// ---- Audit: an attack on the whole of A.

/// Returns the largest epsilon that releases of A refute at this delta, with probability of a
/// mistake below 1e-6 (Chernoff's bound).
double refuted(const Stopping& stopping, double sigma, double delta) {
  constexpr std::size_t kTimes = 400'000;
  std::mt19937_64 random(61);
  std::normal_distribution<double> normal;
  // The canary adds 1 to a sum, and the score is the noisy sum.
  std::vector<double> without(kTimes), with(kTimes);
  for (std::vector<double>* found : {&without, &with})
    for (double& best : *found) {
      best = -1e300;
      for (std::uint64_t k = stopping.draw(random()); k > 0; --k)
        best = std::fmax(best, sigma * normal(random) + (found == &with ? 1.0 : 0.0));
    }
  std::sort(without.begin(), without.end());
  std::sort(with.begin(), with.end());
  double largest = 0.0;
  // 40 thresholds on each side, so each may be wrong with probability 1e-8.
  const double confidence = std::log(1e8), n = static_cast<double>(kTimes);
  const auto above = [&](double share) {
    return share + std::sqrt(2.0 * share * confidence / n) + 3.0 * confidence / n;
  };
  const auto below = [&](double share) {
    return share - std::sqrt(2.0 * share * confidence / n) - 3.0 * confidence / n;
  };
  for (int i = 1; i < 40; ++i) {
    const double threshold = (static_cast<double>(i) / 8.0 - 1.0) * std::fmax(sigma, 0.5);
    const auto share = [&](const std::vector<double>& values) {
      return static_cast<double>(values.end() -
                                 std::upper_bound(values.begin(), values.end(), threshold)) /
             n;
    };
    const double p = share(with), q = share(without);
    if (below(p) > delta) largest = std::fmax(largest, std::log((below(p) - delta) / above(q)));
    if (below(1.0 - q) > delta)
      largest = std::fmax(largest, std::log((below(1.0 - q) - delta) / above(1.0 - p)));
  }
  return largest;
}

TEST(SelectionAudit, RefutesHalfTheNoiseAndNotTheStatedOne) {
  const StoppingLaw law = stopping_law(0.0, 3.0);
  const double delta = 1e-3;
  const double epsilon =
      Selection(law, bounds_of(std::vector<RunSpending>{{.run = PlannedRun{{{Gaussian{2.0}, 1}}}}}))
          .epsilon(delta)
          .epsilon;
  const Stopping stopping(law);
  const double stated = refuted(stopping, 2.0, delta), half = refuted(stopping, 1.0, delta);
  std::printf("epsilon %.4f; refuted with the stated noise %.4f, with half of it %.4f\n", epsilon,
              stated, half);
  EXPECT_LT(stated, epsilon);
  EXPECT_GT(stated, 0.3 * epsilon);
  EXPECT_GT(half, epsilon);
}

}  // namespace
}  // namespace cudp::privacy
