#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/random_backends.hpp"

namespace cudp {
namespace {

constexpr OptimizerKind kKinds[] = {OptimizerKind::sgd, OptimizerKind::momentum,
                                    OptimizerKind::nesterov, OptimizerKind::adam,
                                    OptimizerKind::adamw};
constexpr float kEnd = 1e30f;         // behind the end of every array
constexpr std::size_t kBehind = 600;  // more than a kernel that ignores the end would write

bool has_moment1(OptimizerKind kind) { return kind != OptimizerKind::sgd; }
bool has_moment2(OptimizerKind kind) {
  return kind == OptimizerKind::adam || kind == OptimizerKind::adamw;
}

/// Arrays of a problem with d parameters, and the arguments that point to them.
struct Problem {
  Problem(OptimizerKind kind, int d, bool averaged) : released(static_cast<std::size_t>(d)) {
    std::mt19937 rng(static_cast<unsigned>(d));
    std::normal_distribution<float> normal;
    const auto fill = [&](std::vector<float>& v, bool positive) {
      v.assign(d + kBehind, kEnd);
      for (int j = 0; j < d; ++j) v[j] = positive ? 0.1f + std::fabs(normal(rng)) : normal(rng);
    };
    fill(parameters, false);
    fill(moment1, false);
    fill(moment2, true);
    fill(average, false);
    for (float& r : released) r = 10 * normal(rng);
    args = {.released = nullptr,
            .parameters = nullptr,
            .moment1 = nullptr,
            .moment2 = nullptr,
            .average = nullptr,
            .begin = 0,
            .end = d,
            .optimizer = {.kind = kind,
                          .momentum = 0.8f,
                          .beta1 = 0.85f,
                          .beta2 = 0.99f,
                          .epsilon = 1e-3f,
                          .weight_decay = 0.05f},
            .scalars = {.learning_rate = 0.3f,
                        .noise_std = 7.0f,
                        .inverse_batch = 0.125f,
                        .bias1 = has_moment2(kind) ? 2.0f : 1.0f,
                        .bias2 = has_moment2(kind) ? 3.0f : 1.0f,
                        .ema_decay = 0.9f,
                        .clip_norm = 1.0f}};
    use_average = averaged;
  }

  UpdateArgs bound() {
    UpdateArgs a = args;
    a.released = released.data();
    a.parameters = parameters.data();
    a.moment1 = has_moment1(a.optimizer.kind) ? moment1.data() : nullptr;
    a.moment2 = has_moment2(a.optimizer.kind) ? moment2.data() : nullptr;
    a.average = use_average ? average.data() : nullptr;
    validate(a);
    return a;
  }

  std::vector<float> released;
  std::vector<float> parameters;
  std::vector<float> moment1;
  std::vector<float> moment2;
  std::vector<float> average;
  UpdateArgs args;
  bool use_average;
};

/// What update.hpp says, in double, on parameter j alone. Shares no code with the kernels.
struct Element {
  double theta, m, v, average;
};
Element oracle_step(const Problem& p, int j) {
  const StepScalars& s = p.args.scalars;
  const OptimizerSettings& o = p.args.optimizer;
  Element e{p.parameters[j], p.moment1[j], p.moment2[j], p.average[j]};
  double g = static_cast<double>(p.released[j]) * s.inverse_batch;
  const double lr = s.learning_rate;
  const double decay = o.weight_decay;
  switch (o.kind) {
    case OptimizerKind::sgd:
      e.theta -= lr * (g + decay * e.theta);
      break;
    case OptimizerKind::momentum:
      e.m = o.momentum * e.m + (g + decay * e.theta);
      e.theta -= lr * e.m;
      break;
    case OptimizerKind::nesterov:
      g += decay * e.theta;
      e.m = o.momentum * e.m + g;
      e.theta -= lr * (g + o.momentum * e.m);
      break;
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
      if (o.kind == OptimizerKind::adam) g += decay * e.theta;
      e.m = o.beta1 * e.m + (1.0 - o.beta1) * g;
      e.v = o.beta2 * e.v + (1.0 - o.beta2) * g * g;
      if (o.kind == OptimizerKind::adamw) e.theta -= lr * decay * e.theta;
      e.theta -= lr * (e.m * s.bias1) / (std::sqrt(e.v * s.bias2) + o.epsilon);
      break;
  }
  e.average = s.ema_decay * e.average + (1.0 - s.ema_decay) * e.theta;
  return e;
}

std::uint32_t bits(float x) {
  std::uint32_t u = 0;
  std::memcpy(&u, &x, sizeof u);
  return u;
}
void expect_same_bits(const std::vector<float>& a, const std::vector<float>& b, const char* what) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t j = 0; j < a.size(); ++j) ASSERT_EQ(bits(a[j]), bits(b[j])) << what << " " << j;
}

class Update : public testing::TestWithParam<RandomBackend> {
 protected:
  // Updates begin..end and compares with the oracle; outside nothing may change.
  static void expect_oracle(Problem p, int begin, int end) {
    const Problem before = p;
    UpdateArgs a = p.bound();
    a.begin = begin;
    a.end = end;
    GetParam().update(a);
    const auto compare = [&](const std::vector<float>& got, const std::vector<float>& was,
                             bool used, double Element::*member, const char* what) {
      for (int j = 0; j < static_cast<int>(got.size()); ++j) {
        if (!used || j < begin || j >= end) {
          ASSERT_EQ(bits(got[j]), bits(was[j])) << what << " " << j << " was touched";
          continue;
        }
        const double want = oracle_step(before, j).*member;
        // a few roundings of numbers of size 10, the largest there are
        ASSERT_TRUE(std::fabs(got[j] - want) <= 3e-6)
            << what << " " << j << ": " << got[j] << " for " << want;
      }
    };
    const OptimizerKind kind = a.optimizer.kind;
    compare(p.parameters, before.parameters, true, &Element::theta, "parameter");
    compare(p.moment1, before.moment1, has_moment1(kind), &Element::m, "moment1");
    compare(p.moment2, before.moment2, has_moment2(kind), &Element::v, "moment2");
    compare(p.average, before.average, p.use_average, &Element::average, "average");
  }
};

TEST_P(Update, MatchesTheOracle) {
  for (const OptimizerKind kind : kKinds)
    for (const int d : {1, 15, 255, 256, 257, 511, 512, 513, 1000})
      for (const bool averaged : {false, true}) {
        SCOPED_TRACE(testing::Message() << "optimizer " << static_cast<int>(kind) << ", d = " << d
                                        << (averaged ? ", averaged" : ""));
        expect_oracle(Problem(kind, d, averaged), 0, d);
        if (HasFatalFailure()) return;
      }
}

TEST_P(Update, TouchesItsRangeOnly) {
  for (const OptimizerKind kind : kKinds)
    for (const auto& [begin, end] :
         {std::pair{0, 0}, {256, 256}, {0, 100}, {256, 300}, {256, 768}, {512, 1000}}) {
      SCOPED_TRACE(testing::Message() << begin << " to " << end);
      expect_oracle(Problem(kind, 1000, true), begin, end);
      if (HasFatalFailure()) return;
    }
}

TEST_P(Update, InPartsIsBitIdentical) {
  constexpr int kSize = 2500;
  for (const OptimizerKind kind : kKinds) {
    Problem whole(kind, kSize, true);
    Problem parts = whole;
    for (std::uint64_t step = 1; step <= 3; ++step) {
      whole.args.scalars.learning_rate = parts.args.scalars.learning_rate =
          0.1f * static_cast<float>(step);
      GetParam().update(whole.bound());
      for (const auto& [begin, end] :
           {std::pair{1024, 2048}, {0, 256}, {256, 1024}, {2048, kSize}}) {
        UpdateArgs a = parts.bound();
        a.begin = begin;
        a.end = end;
        GetParam().update(a);
      }
    }
    expect_same_bits(whole.parameters, parts.parameters, "parameter");
    expect_same_bits(whole.moment1, parts.moment1, "moment1");
    expect_same_bits(whole.moment2, parts.moment2, "moment2");
    expect_same_bits(whole.average, parts.average, "average");
  }
}

/// A sum of d numbers in the engine's own order, and its release.
struct Sum {
  explicit Sum(int d, bool permuted)
      : where(static_cast<std::size_t>(d)), released(d + kBehind, kEnd) {
    std::mt19937_64 rng(static_cast<unsigned>(d));
    std::iota(where.begin(), where.end(), 0);
    if (permuted) std::shuffle(where.begin(), where.end(), rng);
    for (int i = 0; i < d; ++i)
      units.push_back(static_cast<std::int64_t>(rng() % 200'000) - 100'000);
    units[0] = INT64_MAX - 5;  // what is added to it goes around
    args = {.sum = units.data(),
            .where = permuted ? where.data() : nullptr,
            .grid = 0x1p-9,
            .noise_std = 0x1.8p8f,
            .noise = {Generator::chacha20, {{1, 2, 3, 4, 5, 6, 7, 8}}, Stream::noise, 9},
            .begin = 0,
            .end = d,
            .released = released.data()};
  }
  ~Sum() = default;
  Sum(const Sum&) = delete;
  Sum& operator=(const Sum&) = delete;

  std::vector<std::int64_t> units;
  std::vector<std::int32_t> where;
  std::vector<float> released;
  ReleaseSum args;
};

class Release : public testing::TestWithParam<RandomBackend> {};

TEST_P(Release, IsTheSumAndTheStreamsRoundedNormals) {
  for (const int d : {1, 15, 127, 128, 129, 512, 1000})
    for (const bool permuted : {false, true})
      for (const Generator generator : {Generator::chacha20, Generator::philox})
        for (const float noise : {0.0f, 0x1.8p8f, 0x1p30f}) {
          Sum s(d, permuted);
          s.args.noise.generator = generator;
          s.args.noise_std = noise;
          validate(s.args);
          GetParam().release(s.args);
          std::vector<std::int64_t> k(static_cast<std::size_t>(d), 0);
          if (noise > 0.0f)
            cpu_kernels(SimdLevel::baseline)
                .rounded_normals(
                    {s.args.noise, static_cast<double>(noise) / s.args.grid, 0, d, k.data()});
          for (int j = 0; j < d; ++j) {
            const auto sum =
                static_cast<std::uint64_t>(s.units[s.where[j]]) + static_cast<std::uint64_t>(k[j]);
            const auto want = static_cast<float>(
                static_cast<double>(static_cast<std::int64_t>(sum)) * s.args.grid);
            ASSERT_EQ(s.released[j], want) << j << " of " << d;
          }
          for (std::size_t j = d; j < s.released.size(); ++j) ASSERT_EQ(s.released[j], kEnd) << j;
        }
}

INSTANTIATE_TEST_SUITE_P(All, Release, testing::ValuesIn(random_backends()),
                         [](const auto& i) { return i.param.name; });

TEST(ReleaseSum, IsValidated) {
  const auto refused = [](auto spoil) {
    Sum s(300, true);
    spoil(s.args);
    EXPECT_THROW(validate(s.args), std::invalid_argument);
  };
  refused([](ReleaseSum& a) { a.sum = nullptr; });
  refused([](ReleaseSum& a) { a.released = nullptr; });
  refused([](ReleaseSum& a) { a.begin = 100; });
  refused([](ReleaseSum& a) { a.grid = 0.3; });
  refused([](ReleaseSum& a) { a.grid = 0.0; });
  refused([](ReleaseSum& a) { a.noise_std = 0x1p6f; });   // 2^15 units
  refused([](ReleaseSum& a) { a.noise_std = 0x1p32f; });  // 2^41
  refused([](ReleaseSum& a) { a.noise_std = std::numeric_limits<float>::quiet_NaN(); });
  refused([](ReleaseSum& a) { a.noise_std = -1.0f; });
}

INSTANTIATE_TEST_SUITE_P(All, Update, testing::ValuesIn(random_backends()),
                         [](const auto& i) { return i.param.name; });

TEST(UpdateArgs, AreValidated) {
  const auto refused = [](OptimizerKind kind, auto spoil) {
    Problem p(kind, 300, true);
    UpdateArgs a = p.bound();
    spoil(a);
    EXPECT_THROW(validate(a), std::invalid_argument);
  };
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  using enum OptimizerKind;
  refused(sgd, [](UpdateArgs& a) { a.begin = -1; });
  refused(sgd, [](UpdateArgs& a) { a.end = -1; });
  refused(sgd, [](UpdateArgs& a) { a.released = nullptr; });
  refused(sgd, [](UpdateArgs& a) { a.parameters = nullptr; });
  refused(momentum, [](UpdateArgs& a) { a.moment1 = nullptr; });
  refused(adamw, [](UpdateArgs& a) { a.moment2 = nullptr; });
  refused(sgd, [](UpdateArgs& a) { a.scalars.learning_rate = kNan; });
  refused(sgd, [](UpdateArgs& a) { a.scalars.noise_std = kNan; });
  refused(sgd, [](UpdateArgs& a) { a.scalars.noise_std = -1; });
  refused(sgd, [](UpdateArgs& a) { a.scalars.inverse_batch = 0; });
  refused(sgd, [](UpdateArgs& a) { a.scalars.ema_decay = 1.5f; });
  refused(sgd, [](UpdateArgs& a) { a.optimizer.weight_decay = kNan; });
  refused(nesterov, [](UpdateArgs& a) { a.optimizer.momentum = 1; });
  refused(adam, [](UpdateArgs& a) { a.optimizer.beta1 = kNan; });
  refused(adam, [](UpdateArgs& a) { a.optimizer.beta2 = 1; });
  refused(adam, [](UpdateArgs& a) { a.optimizer.epsilon = 0; });
  refused(adamw, [](UpdateArgs& a) { a.scalars.bias2 = 0; });
}

}  // namespace
}  // namespace cudp
