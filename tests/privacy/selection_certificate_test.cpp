// What a certificate states of a selection, and that a false statement is found.
#include <functional>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "privacy/certificate/certificate.hpp"
#include "privacy/filter.hpp"
#include "privacy/verify/settings.hpp"
#include "privacy/verify/stated_numbers.hpp"
#include "privacy/verify/tuning.hpp"

namespace cudp {
namespace {

using privacy::Certificate;

/// A grid of four candidates, of which the first two have the same noise.
Certificate selected_certificate() {
  const std::vector<privacy::Release> first = {{privacy::PoissonGaussian{0.0625, 1.5}, 40}};
  const std::vector<privacy::Release> second = {{privacy::PoissonGaussian{0.125, 2.25}, 40}};
  privacy::NoisySums sums;
  sums.sampling = "poisson";
  sums.q = 0.0625;
  sums.sampling_threshold = 1U << 28;
  sums.sigma = 1.5;
  sums.releases = first;
  sums.accountant = "pld";
  Certificate c;
  c.promise = {.epsilon = 0.75,
               .delta = 2e-6,
               .method = "dpsgd",
               .mechanism = "Poisson-subsampled Gaussian (DP-SGD)",
               .how = sums};
  c.size.value = 1000.0;
  c.select(
      {.law = privacy::stopping_law(0.0, 4.0),
       .grid = {"lr 0.5, batch 64", "lr 1, batch 64", "lr 1, batch 128", "lr 2, method dpis"},
       .grid_checksum = {},
       .parts = {{.candidates = {0, 1}, .spending = {.run = privacy::PlannedRun{first}}},
                 {.candidates = {2}, .spending = {.run = privacy::PlannedRun{second}}},
                 {.candidates = {3}, .spending = {.run = privacy::RenyiFilteredRun{16.0, 0.25}}}}},
      1e-5);
  return c;
}

/// Settings of the released training, as in config.toml.
constexpr const char* kReleased = "method = \"dpsgd\"\nbatch = 64\nlr = 0.5\n";

std::vector<std::string> differences(const Certificate& c, const char* settings = kReleased) {
  const verify::StatedNumbers numbers = verify::read_stated_numbers(privacy::to_text(c));
  verify::Bounds bounds;
  return verify::check_tuning(*numbers.tuning, numbers, verify::Settings(settings), bounds);
}

TEST(TuningPart, IsReadAsItWasWritten) {
  const Certificate c = selected_certificate();
  const std::string text = privacy::to_text(c);
  const Certificate read = privacy::read_certificate(text);
  ASSERT_TRUE(read.tuning);
  EXPECT_EQ(privacy::to_text(read), text);
  EXPECT_EQ(read.epsilon, c.epsilon);
  EXPECT_EQ(read.promise.epsilon, 0.75);
  EXPECT_EQ(read.tuning->law, c.tuning->law);
  EXPECT_EQ(read.tuning->grid, c.tuning->grid);
  EXPECT_NEAR(read.tuning->mean, 4.0, 1e-6);
  EXPECT_EQ(differences(c), std::vector<std::string>());
}

TEST(TuningPart, FalseStatementsAreFound) {
  using Tuning = Certificate::Tuning;
  const std::pair<const char*, std::function<void(Certificate&, Tuning&)>> changes[] = {
      {"a smaller epsilon", [](Certificate& c, Tuning&) { c.epsilon *= 0.999; }},
      {"a larger epsilon", [](Certificate& c, Tuning&) { c.epsilon *= 1.001; }},
      {"a smaller delta", [](Certificate& c, Tuning&) { c.delta *= 0.99; }},
      {"fewer expected trainings", [](Certificate&, Tuning& t) { t.mean = 3.0; }},
      {"another eta", [](Certificate&, Tuning& t) { t.law.eta = -0.25; }},
      {"another gamma", [](Certificate&, Tuning& t) { t.law.gamma *= 1.01; }},
      {"a smaller cap", [](Certificate&, Tuning& t) { t.law.cap = 20; }},
      {"a candidate less", [](Certificate&, Tuning& t) { t.grid.pop_back(); }},
      {"another candidate", [](Certificate&, Tuning& t) { t.grid[1] = "lr 3, batch 64"; }},
      {"the filter's candidate omitted", [](Certificate&, Tuning& t) { t.parts.pop_back(); }},
      {"a candidate without spending",
       [](Certificate&, Tuning& t) { t.parts[0].candidates = {0}; }},
      {"a candidate twice",
       [](Certificate&, Tuning& t) {
         t.parts[1].candidates = {1, 2};
       }},
      {"the other bound",
       [](Certificate&, Tuning& t) { t.by = privacy::SelectionEpsilon::By::renyi; }},
      {"more noise",
       [](Certificate&, Tuning& t) {
         for (Tuning::Part& part : t.parts)
           if (auto* planned = std::get_if<privacy::PlannedRun>(&part.spending.run))
             planned->releases[0].mechanism = privacy::PoissonGaussian{0.0625, 3.0};
           else
             part.spending.run = privacy::RenyiFilteredRun{16.0, 0.05};
       }},
  };
  for (const auto& [what, change] : changes) {
    Certificate c = selected_certificate();
    change(c, *c.tuning);
    EXPECT_FALSE(differences(c).empty()) << what;
  }
}

TEST(TuningPart, IsThatOfTheReleasedTraining) {
  Certificate c = selected_certificate();
  auto& sums = std::get<privacy::NoisySums>(c.promise.how);
  sums.releases = {{privacy::PoissonGaussian{0.0625, 1.0}, 40}};
  EXPECT_FALSE(differences(c).empty());
  sums.releases = {{privacy::PoissonGaussian{0.125, 2.25}, 40}};
  EXPECT_TRUE(differences(c, "batch = 128\nlr = 1.0\n").empty());
  // The settings are those of a candidate with other noise.
  EXPECT_EQ(differences(c).size(), 1u);
}

/// Returns the differences if the released training's settings are stated as this candidate's.
std::vector<std::string> differences_of_grid(const std::string& candidate, const char* settings) {
  Certificate c = selected_certificate();
  Certificate::Tuning tuning = *c.tuning;
  tuning.grid[0] = tuning.grid[1] = candidate;
  c.select(tuning, 1e-5);
  return differences(c, settings);
}

TEST(TuningPart, SettingsAreThoseOfACandidate) {
  const std::pair<const char*, const char*> same[] = {
      {"lr 0.5", "lr = 0.5\n"},
      {"lr 1", "lr = 1.0\n"},
      {"lr 1e-05, batch 64", "batch = 64\nlr = 0.00001\n"},
      {"adaclip-literal true", "adaclip-literal = true\n"},
      {"model nets/a.toml, lr 2", "model = \"a.toml\"\nlr = 2.0\n"},
      {"model ../nets/a, lr 2", "model = \"./a\"\nlr = 2.0\n"},
      {"lr 2, class-weights 1, 0.3, clip 4", "lr = 2.0\nclip = 4.0\nclass-weights = \"1, 0.3\"\n"},
      {"lr 2, class-weights 1,5.0", "lr = 2.0\nclass-weights = \"1,5\"\n"},
      {"init w1, lr 2", "lr = 2.0\ninit = \"./w1\"\n"},
      {"device cuda:0, lr 2", "lr = 2.0\ndevice = \"cuda\"\n"},
      {"freeze , lr 2", "lr = 2.0\n"},
      {"freeze fc1, fc2, lr 2", "freeze = \"fc1, fc2\"\nlr = 2.0\n"},
  };
  for (const auto& [candidate, settings] : same)
    EXPECT_EQ(differences_of_grid(candidate, settings), std::vector<std::string>()) << candidate;
  const std::pair<const char*, const char*> others[] = {
      {"lr 0.5", "lr = 7.0\n"},
      {"lr 0.5", "batch = 64\n"},
      {"lr 0.5, batch 64", "lr = 0.5\nbatch = 128\n"},
      {"lr ", "lr = 0.5\n"},
      {"any text", "lr = 0.5\n"},
      {"text", "lr = 0.5\n"},
      {"lr 0.5, an audit found no leak", "lr = 0.5\n"},
      {"", "lr = 2.0\n"},
      {"class-weights 1,5", "class-weights = \"1,5,2\"\n"},
      {"class-weights 1,5", "class-weights = \"1,6\"\n"},
      {"method dpsgd-quantile", "method = \"dpsgd\"\n"},
      {"model nets/a.toml", "model = \"b.toml\"\n"}};
  for (const auto& [candidate, settings] : others) {
    const std::vector<std::string> found = differences_of_grid(candidate, settings);
    ASSERT_EQ(found.size(), 1u) << candidate;
    EXPECT_EQ(found[0].find("tuning.grid: expected a candidate with the settings"), 0u) << found[0];
  }
}

/// A zCDP filter bounds the releases that it admits, and DP-SGD has none.
TEST(TuningPart, AFilterOfAnotherMethodCoversNothing) {
  Certificate c = selected_certificate();
  const privacy::Filter filter(privacy::renyi_budget(0.0, 0.75, 2e-6, 0.0, 1));
  Certificate::Tuning tuning = *c.tuning;
  tuning.parts[0].spending = {.run = privacy::ZcdpFilteredRun{filter.limit()}};
  c.select(tuning, 1e-5);
  const std::vector<std::string> found = differences(c);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0], "tuning.spending: expected that of the released training, found others");
}

/// A selection of epsilon 2 among two candidates, scored on held-out rows, after one noisy number
/// of examples.
Certificate counted_certificate() {
  const privacy::CountSplit whole = privacy::split_for_count(2.0, 1e-5, 1);
  const privacy::CountSplit split = privacy::split_with_count_of(whole, 0.875, 3e-6);
  const std::vector<privacy::Release> steps = {{privacy::PoissonGaussian{0.0625, 2.5}, 40}};
  privacy::NoisySums sums;
  sums.sampling = "poisson";
  sums.q = 0.0625;
  sums.sampling_threshold = 1U << 28;
  sums.sigma = 2.5;
  sums.releases = {{privacy::Gaussian{split.sigma}, 1}, steps.front()};
  sums.accountant = "pld";
  Certificate c;
  c.promise = {.epsilon = split.epsilon,
               .delta = split.delta,
               .method = "dpsgd",
               .mechanism = "Poisson-subsampled Gaussian (DP-SGD)",
               .how = sums};
  c.size = {.value = 1000.0, .noise_std = split.sigma};
  c.split = split;
  c.hold_out({.share = 0.25, .epsilon = 0.875, .delta = 3e-6, .sigma = 6.0, .releases = 1});
  c.select({.law = privacy::stopping_law(0.0, 4.0),
            .grid = {"lr 0.5", "lr 1"},
            .grid_checksum = {},
            .parts = {{.candidates = {0, 1}, .spending = {.run = privacy::PlannedRun{steps}}},
                      {.of_score = true,
                       .candidates = {0, 1},
                       .spending = {.run = privacy::PlannedRun{{{privacy::Gaussian{6.0}, 1}}}}}},
            .count = whole},
           whole.delta);
  return c;
}

TEST(TuningPart, OneNumberOfExamplesIsCountedOnce) {
  const Certificate c = counted_certificate();
  EXPECT_EQ(c.epsilon, 2.0);
  EXPECT_EQ(c.delta, 1e-5);
  const std::string text = privacy::to_text(c);
  const Certificate read = privacy::read_certificate(text);
  EXPECT_EQ(privacy::to_text(read), text);
  ASSERT_TRUE(read.tuning && read.tuning->count);
  EXPECT_EQ(*read.tuning->count, *c.tuning->count);
  EXPECT_EQ(differences(c), std::vector<std::string>());
  // Selections beyond their part are refused.
  Certificate more = c;
  Certificate::Tuning tuning = *c.tuning;
  tuning.count->training_epsilon = 0.5;
  EXPECT_THROW(more.select(tuning, 1e-5), std::domain_error);
}

TEST(TuningPart, FalseStatementsOfOneNumberAreFound) {
  using Tuning = Certificate::Tuning;
  const std::pair<const char*, std::function<void(Certificate&, Tuning&)>> changes[] = {
      {"a smaller epsilon", [](Certificate& c, Tuning&) { c.epsilon = 1.9; }},
      {"a smaller delta", [](Certificate& c, Tuning&) { c.delta = 9e-6; }},
      {"no part of the number", [](Certificate&, Tuning& t) { t.count.reset(); }},
      {"a smaller part of the number",
       [](Certificate&, Tuning& t) { t.count->count_epsilon = 0.04; }},
      {"a smaller part of delta", [](Certificate&, Tuning& t) { t.count->count_delta = 1e-7; }},
      {"less noise on the number", [](Certificate&, Tuning& t) { t.count->sigma *= 0.9; }},
      {"a larger part of the selection",
       [](Certificate&, Tuning& t) { t.count->training_epsilon = 2.0; }},
      {"another number's noise in the training",
       [](Certificate& c, Tuning&) {
         c.size.noise_std *= 2.0;
         c.split->sigma *= 2.0;
       }},
      {"a training that does not state the number",
       [](Certificate& c, Tuning&) { c.split.reset(); }},
      {"less noise in a candidate",
       [](Certificate&, Tuning& t) {
         t.parts[0].spending.run =
             privacy::PlannedRun{{{privacy::PoissonGaussian{0.0625, 0.9}, 40}}};
       }},
      {"more noise in a candidate than in the training",
       [](Certificate&, Tuning& t) {
         t.parts[0].spending.run =
             privacy::PlannedRun{{{privacy::PoissonGaussian{0.0625, 3.0}, 40}}};
       }},
      {"more noise in a score than was released",
       [](Certificate&, Tuning& t) {
         t.parts[1].spending.run = privacy::PlannedRun{{{privacy::Gaussian{7.0}, 1}}};
       }},
      {"no score", [](Certificate&, Tuning& t) { t.parts.pop_back(); }},
  };
  for (const auto& [what, change] : changes) {
    Certificate c = counted_certificate();
    change(c, *c.tuning);
    EXPECT_FALSE(differences(c).empty()) << what;
  }
}

}  // namespace
}  // namespace cudp
