// The audits of output perturbation, objective perturbation and PrivGene: the released model with
// one example and without it.
#include <cstddef>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "runtime/methods/objective_perturbation.hpp"
#include "runtime/methods/output_perturbation.hpp"
#include "runtime/methods/privgene.hpp"
#include "tests/audit/audit.hpp"
#include "tests/audit/audit_cases.hpp"
#include "tests/support/test_books.hpp"

namespace cudp::audit {
namespace {

/// The example's feature, and a constant 1. Of 0 makes it the constant alone: v = 1. Of 1000 makes
/// its clipped loss 0 or C_obj for nearly every model of PrivGene. The others cancel.
Dataset table(bool with, float feature) {
  Dataset data;
  data.shape = {1, 1, 1};
  data.classes = 2;
  data.floats = {0.0f, 0.0f};
  data.labels = {0, 1};
  if (with) {
    data.floats.push_back(feature);
    data.labels.push_back(1);
  }
  return data;
}

TrainConfig config(double epsilon) {
  TrainConfig c;
  c.epsilon = epsilon;
  c.delta = kDelta;
  c.of<LinearOptions>().l2 = 40.0;  // Lambda = 80: minima stay where the loss is a straight line
  c.of<PrivGeneOptions>() = {.generations = 1, .candidates = 20, .parents = 1};
  return c;
}

struct AuditedSolver {
  const char* name;
  std::unique_ptr<LinearMethod> (*make)(const TrainConfig& config, const LinearProblem& facts);
  /// What the example is given, and the number of the weight that it moves.
  float feature;
  std::size_t weight;
};
template <class M>
std::unique_ptr<LinearMethod> make(const TrainConfig& config, const LinearProblem& facts) {
  return std::make_unique<M>(config, facts);
}

/// What `runs` runs of a method with a budget of `epsilon` show. Of perturbations, only the bias
/// depends on the example, and it only grows with it; PrivGene's choice goes by the feature's
/// weight.
double shown_by(const AuditedSolver& audited, double epsilon, int runs) {
  const Dataset with = table(true, audited.feature);
  const Dataset less = table(false, 0.0f);
  const auto method =
      audited.make(config(epsilon), {.loss = Loss::hinge, .dimension = 2, .examples = 2.0});
  const Trial trial = [&](bool there, std::uint64_t number) {
    const RandomKey key = key_of(there, number);
    Gate gate(Generator::chacha20, key, all_paid());
    return static_cast<double>(method->fit({.train = there ? with : less,
                                            .threads = 1,
                                            .generator = Generator::chacha20,
                                            .key = key,
                                            .gate = gate})[audited.weight]);
  };
  const double bound = epsilon_lower(trial, kDelta, runs);
  testing::Test::RecordProperty("epsilon_shown", std::to_string(bound));
  return bound;
}

class LinearAudit : public testing::TestWithParam<AuditedSolver> {};

TEST_P(LinearAudit, ShowsNoMoreThanItPromises) {
  const double bound = shown_by(GetParam(), 1.5, kRuns);
  EXPECT_LE(bound, 1.5);
  if (!kFewRuns) {
    EXPECT_GT(bound, 1.5 / 5.0);
  }
}

/// Three times the budget, told as one.
TEST_P(LinearAudit, CatchesTooLittleNoise) {
  if (kFewRuns) GTEST_SKIP() << "too few runs under sanitizers";
  EXPECT_GT(shown_by(GetParam(), 4.5, kRuns), 1.5);
}

INSTANTIATE_TEST_SUITE_P(
    All, LinearAudit,
    testing::Values(AuditedSolver{"outpert", make<OutputPerturbation>, 0.0f, 1},
                    AuditedSolver{"objpert", make<ObjectivePerturbation>, 0.0f, 1},
                    AuditedSolver{"privgene", make<PrivGene>, 1000.0f, 0}),
    [](const auto& i) { return std::string(i.param.name); });

}  // namespace
}  // namespace cudp::audit
