#include "runtime/features/pca.hpp"

#include <cmath>
#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "privacy/accountant.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/random_key.hpp"
#include "runtime/features/features.hpp"
#include "tests/support/cudp_process.hpp"
#include "tests/support/expect_normal.hpp"
#include "tests/support/test_books.hpp"

namespace cudp {
namespace {

using Json = nlohmann::json;

Dataset rows_of(int n, int d, unsigned seed, double size) {
  Dataset data;
  data.shape = {.channels = d};
  data.classes = 2;
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (int i = 0; i < n * d; ++i)
    data.floats.push_back(static_cast<float>(size / std::sqrt(d)) * normal(random));
  data.labels.assign(static_cast<std::size_t>(n), 0);
  return data;
}

Dataset without(Dataset data, std::size_t row) {
  const auto d = static_cast<std::ptrdiff_t>(data.shape.size());
  const auto first = data.floats.begin() + static_cast<std::ptrdiff_t>(row) * d;
  data.floats.erase(first, first + d);
  data.labels.pop_back();
  return data;
}

double frobenius(const std::vector<double>& a, const std::vector<double>& b) {
  double square = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) square += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(square);
}

/// Row by row, with another way of clipping.
std::vector<double> oracle_moments(const Dataset& data) {
  const auto d = static_cast<std::size_t>(data.shape.size());
  std::vector<double> sum(d * d);
  for (std::size_t r = 0; r < data.size(); ++r) {
    std::vector<double> x(d);
    double norm = 0.0;
    for (std::size_t i = 0; i < d; ++i) {
      x[i] = data.is_bytes() ? double{data.scale} * data.bytes[r * d + i] + double{data.shift}
                             : double{data.floats[r * d + i]};
      norm = std::hypot(norm, x[i]);
    }
    for (std::size_t i = 0; i < d; ++i)
      for (std::size_t j = 0; j < d; ++j)
        sum[i * d + j] += norm > 1.0 ? x[i] / norm * (x[j] / norm) : x[i] * x[j];
  }
  return sum;
}

TEST(SecondMoments, AreThoseOfClippedRows) {
  for (const int d : {1, 3, 4, 31, 32, 33, 70})
    for (const int n : {0, 1, 63, 64, 65, 150}) {
      SCOPED_TRACE(testing::Message() << d << " numbers, " << n << " rows");
      const Dataset data = rows_of(n, d, 5, 1.0);  // about half are clipped
      const auto got = clipped_second_moments(data, row_bits(1e6), 1);
      const auto want = oracle_moments(data);
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t i = 0; i < got.size(); ++i)
        ASSERT_TRUE(std::fabs(got[i] - want[i]) <= 2.0 * n * 0x1p-13) << i;
      EXPECT_EQ(clipped_second_moments(data, row_bits(1e6), 3), got);
    }
  Dataset images;
  images.shape = {.channels = 1, .height = 5, .width = 7};
  std::mt19937 random(3);
  for (int i = 0; i < 35 * 40; ++i)
    images.bytes.push_back(static_cast<std::uint8_t>(random() % 64));
  images.labels.assign(40, 0);
  const auto got = clipped_second_moments(images, row_bits(1e6), 1);
  const auto want = oracle_moments(images);
  EXPECT_TRUE(frobenius(got, want) <= 0.05) << frobenius(got, want);
}

/// Exactly: sums are, so what one row adds does not depend on the others.
TEST(SecondMoments, OneRowMovesThemByAtMostOne) {
  double most = 0.0;
  for (const int d : {1, 2, 7, 100})
    for (const double size : {0.3, 1.0, 1.0001, 30.0, 1e18}) {
      Dataset data = rows_of(300, d, 11, size);
      data.floats[0] = 1.0f;  // the worst case: everything in one number
      for (int i = 1; i < d; ++i) data.floats[static_cast<std::size_t>(i)] = 0.0f;
      const auto all = clipped_second_moments(data, row_bits(1e6), 1);
      for (const std::size_t row : {0u, 1u, 77u, 299u}) {
        const double moved =
            frobenius(all, clipped_second_moments(without(data, row), row_bits(1e6), 1));
        EXPECT_LE(moved, 1.0) << d << " numbers, size " << size;
        most = std::max(most, moved);
      }
    }
  EXPECT_GT(most, 0.999);
}

TEST(SecondMoments, LeaveOutWhatIsNotFinite) {
  const Dataset data = rows_of(70, 9, 2, 1.0);
  const auto want = clipped_second_moments(without(data, 13), row_bits(1e6), 1);
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    Dataset broken = data;
    broken.floats[13 * 9 + 4] = bad;
    EXPECT_EQ(clipped_second_moments(broken, row_bits(1e6), 1), want);
  }
}

Gate gate_of(std::uint64_t seed) { return {Generator::chacha20, key_from_seed(seed), all_paid()}; }

constexpr int kBits = 13;

TEST(SymmetricNoise, HasTheVarianceThatFrobeniusNormAsksFor) {
  constexpr int kSize = 300;
  constexpr double kSigma = 3.0;
  std::vector<double> m(std::size_t{kSize} * kSize, 1.0);
  Gate gate = gate_of(1);
  add_symmetric_noise(m, kSize, kBits, kSigma, gate);
  std::vector<double> on;
  std::vector<double> off;
  for (std::size_t i = 0; i < kSize; ++i)
    for (std::size_t j = i; j < kSize; ++j) {
      ASSERT_EQ(m[i * kSize + j], m[j * kSize + i]);
      (i == j ? on : off).push_back(m[i * kSize + j] - 1.0);
    }
  expect_normal(on, kSigma * kSigma);
  expect_normal(off, 0.5 * kSigma * kSigma);
}

/// Entries stay multiples of what they are multiples of, or of a power of two below, and both
/// releases are listed: of noise multiplier sigma, each and together.
TEST(SymmetricNoise, IsOnTheGridOfTheEntries) {
  constexpr int kSize = 9;
  for (const double sigma : {1e-3, 1.0, 8000.0, 1e6}) {
    const int bits = row_bits(1000.0, sigma);
    const auto before = clipped_second_moments(rows_of(1000, kSize, 3, 1.0), bits, 1);
    auto after = before;
    Gate gate = gate_of(7);
    add_symmetric_noise(after, kSize, bits, sigma, gate);
    ASSERT_EQ(gate.released().size(), 2u);
    const Released& on = gate.released()[0];
    const Released& off = gate.released()[1];
    EXPECT_EQ(on.dimension, 9u);
    EXPECT_EQ(off.dimension, 36u);
    EXPECT_EQ(on.release.noise_std, sigma);
    for (const Released& r : gate.released()) {
      EXPECT_LE(r.release.grid, std::ldexp(1.0, -2 * bits));
      EXPECT_NEAR(r.release.noise_std / r.release.sensitivity / sigma, 1.0, 1e-15);
      EXPECT_GE(r.release.noise_std / r.release.sensitivity, sigma * (1.0 - 0x1p-52));
    }
    EXPECT_NEAR(2.0 * off.release.sensitivity * off.release.sensitivity, 1.0, 1e-15);
    for (std::size_t i = 0; i < kSize; ++i)
      for (std::size_t j = 0; j < kSize; ++j) {
        const double grid = i == j ? on.release.grid : off.release.grid;
        const double units = (after[i * kSize + j] - before[i * kSize + j]) / grid;
        EXPECT_EQ(units, std::round(units));
      }
  }
  std::vector<double> one(1, 0.25);
  Gate gate = gate_of(7);
  add_symmetric_noise(one, 1, kBits, 1.0, gate);
  EXPECT_EQ(gate.released().size(), 1u);
}

/// What tells a row x from none is the noise along x x^T, of Frobenius norm 1: sigma, whatever x.
TEST(SymmetricNoise, IsSigmaAlongEveryRow) {
  constexpr int kSize = 3;
  const double h = std::sqrt(0.5);
  const double t = std::sqrt(1.0 / 3.0);
  for (const std::vector<double>& x : std::vector<std::vector<double>>{
           {1.0, 0.0, 0.0}, {h, h, 0.0}, {h, 0.0, -h}, {t, t, t}, {0.6, 0.8, 0.0}}) {
    std::vector<double> along;
    for (std::uint64_t seed = 0; seed < 4000; ++seed) {
      std::vector<double> m(std::size_t{kSize} * kSize, 0.0);
      Gate gate = gate_of(seed);
      add_symmetric_noise(m, kSize, kBits, 2.0, gate);
      double product = 0.0;
      for (std::size_t i = 0; i < kSize; ++i)
        for (std::size_t j = 0; j < kSize; ++j) product += x[i] * x[j] * m[i * kSize + j];
      along.push_back(product);
    }
    expect_normal(along, 4.0);
  }
}

/// Columns of a rotation by Gram-Schmidt.
std::vector<std::vector<double>> orthonormal(std::size_t d) {
  std::mt19937 random(8);
  std::normal_distribution<double> normal;
  std::vector<std::vector<double>> q;
  while (q.size() < d) {
    std::vector<double> v(d);
    for (double& x : v) x = normal(random);
    for (int twice = 0; twice < 2; ++twice)
      for (const auto& u : q) {
        double dot = 0.0;
        for (std::size_t i = 0; i < d; ++i) dot += u[i] * v[i];
        for (std::size_t i = 0; i < d; ++i) v[i] -= dot * u[i];
      }
    double norm = 0.0;
    for (const double x : v) norm = std::hypot(norm, x);
    for (double& x : v) x /= norm;
    q.push_back(v);
  }
  return q;
}

TEST(Eigenvectors, AreTheLeadingOnesInOrder) {
  constexpr std::size_t kSize = 40;
  const auto q = orthonormal(kSize);
  std::vector<double> m(kSize * kSize);
  for (std::size_t e = 0; e < kSize; ++e)
    for (std::size_t i = 0; i < kSize; ++i)
      for (std::size_t j = 0; j < kSize; ++j)
        m[i * kSize + j] += (10.0 - static_cast<double>(e)) * q[e][i] * q[e][j];  // some below 0
  for (const int count : {1, 7, 40}) {
    const auto got = leading_eigenvectors(m, kSize, count);
    ASSERT_EQ(got.vectors.size(), count * kSize);
    ASSERT_EQ(got.values.size(), static_cast<std::size_t>(count));
    for (std::size_t c = 0; c < static_cast<std::size_t>(count); ++c) {
      double dot = 0.0;
      float largest = 0.0f;
      for (std::size_t i = 0; i < kSize; ++i) {
        const float v = got.vectors[c * kSize + i];
        dot += double{v} * q[c][i];
        if (std::fabs(v) > std::fabs(largest)) largest = v;
      }
      EXPECT_TRUE(std::fabs(std::fabs(dot) - 1.0) <= 1e-6) << c;
      EXPECT_GT(largest, 0.0f);
      EXPECT_TRUE(std::fabs(got.values[c] - (10.0 - static_cast<double>(c))) <= 1e-9) << c;
    }
  }
}

TEST(DpPca, FindsWhatDataVaryAlongUnlessNoiseHidesIt) {
  constexpr int kSize = 24;
  const auto q = orthonormal(kSize);
  Dataset data;
  data.shape = {.channels = kSize};
  data.labels.assign(5000, 0);
  std::mt19937 random(9);
  std::normal_distribution<double> normal;
  for (int r = 0; r < 5000; ++r) {
    const double a = 0.3 * normal(random);
    const double b = 0.15 * normal(random);
    for (std::size_t i = 0; i < kSize; ++i)
      data.floats.push_back(static_cast<float>(a * q[0][i] + b * q[1][i]));
  }
  const auto found = [&](double sigma) {
    Gate gate = gate_of(4);
    const auto p = dp_pca(data, 1e6, 2, false, sigma, gate, 1);
    double share = 0.0;
    for (std::size_t c = 0; c < 2; ++c) {
      double dot = 0.0;
      for (std::size_t i = 0; i < kSize; ++i) dot += double{p[c * kSize + i]} * q[c][i];
      share += 0.5 * dot * dot;
    }
    return share;
  };
  EXPECT_GT(found(1e-6), 0.999);  // 5,000 rows do not say it exactly
  EXPECT_GT(found(1.0), 0.99);
  EXPECT_LT(found(1e4), 0.5);
}

TEST(Whitening, GivesEveryComponentTheSameSecondMoment) {
  Eigenpairs pairs{.values = {8.0, 2.0, 0.5, -3.0}, .vectors = {1, 0, 0, 1, 0.6f, 0.8f, 1, 0}};
  whiten(pairs);
  const double least = 8e-3;  // noise made the last one negative
  const double mean = (8.0 + 2.0 + 0.5 + least) / 4.0;
  const std::vector<double> moments = {8.0, 2.0, 0.5, least};
  for (std::size_t c = 0; c < 4; ++c) {
    const double length = std::hypot(pairs.vectors[2 * c], pairs.vectors[2 * c + 1]);
    EXPECT_TRUE(std::fabs(length * length * moments[c] / mean - 1.0) <= 1e-6) << c;
  }
  Eigenpairs noise{.values = {-1.0, -2.0}, .vectors = {1, 0, 0, 1}};
  whiten(noise);
  EXPECT_EQ(noise.vectors, (std::vector<float>{1, 0, 0, 1}));
}

TEST(DpPca, WhitenedComponentsOfTheDataHaveEqualSecondMoments) {
  constexpr int kSize = 24;
  constexpr int kCount = 6;
  Dataset data = rows_of(3000, kSize, 6, 0.5);
  Gate gate = gate_of(4);
  project(data, dp_pca(data, 1e6, kCount, true, 1e-9, gate, 1), 1);
  std::vector<double> squares(kCount);
  double all = 0.0;
  for (std::size_t i = 0; i < data.floats.size(); ++i) {
    squares[i % kCount] += double{data.floats[i]} * data.floats[i];
    all += double{data.floats[i]} * data.floats[i];
  }
  for (const double s : squares) EXPECT_TRUE(std::fabs(s * kCount / all - 1.0) <= 0.02) << s;
}

TEST(Projection, IsTheProductAndDoesNotDependOnThreads) {
  const Dataset data = rows_of(600, 37, 6, 3.0);
  std::vector<float> p(std::size_t{5} * 37);
  for (std::size_t i = 0; i < p.size(); ++i) p[i] = 0.01f * static_cast<float>(i % 23) - 0.1f;
  Dataset one = data;
  project(one, p, 1);
  EXPECT_EQ(one.shape, (Shape{5, 1, 1}));
  ASSERT_EQ(one.floats.size(), 600u * 5);
  for (std::size_t r = 0; r < 600; ++r)
    for (std::size_t c = 0; c < 5; ++c) {
      double dot = 0.0;
      for (std::size_t i = 0; i < 37; ++i) dot += double{p[c * 37 + i]} * data.floats[r * 37 + i];
      ASSERT_TRUE(std::fabs(one.floats[r * 5 + c] - dot) <= 1e-5);
    }
  Dataset three = data;
  project(three, p, 3);
  EXPECT_EQ(three.floats, one.floats);
}

TEST(Projection, StandsInAReleasedModel) {
  TensorFile file;
  const FeatureSettings pca{.kind = Features::pca, .dimensions = 2};
  EXPECT_THROW(read_release(file, pca, "m"), InputError);
  const std::vector<float> p = {1, 2, 3, 4, 5, 6};
  add_release(file, pca, p);
  const TensorFile read = decode_safetensors(encode_safetensors(file), "m");
  EXPECT_EQ(read_release(read, pca, "m"), p);
  EXPECT_EQ(read.tensors.at(0).shape, (std::vector<int>{2, 3}));
}

class CliPca : public testing::Test {
 protected:
  Finished train(const std::string& out, const std::vector<std::string>& more) const {
    return run_cudp(folder_,
                    with({"train",       "--dataset",   table_.table, "--schema",
                          table_.schema, "--test-data", table_.test,  "--test-data-is-public",
                          "--model",     "logistic",    "--seed",     "3",
                          "--delta",     "1e-5",        "--batch",    "64",
                          "--steps",     "80",          "--device",   "cpu",
                          "--features",  "pca",         "--quiet",    "--json",
                          "--out",       folder_ / out, "--threads",  "1"},
                         more));
  }
  Json certificate(const std::string& run) const {
    return Json::parse(content_of(folder_ / (run + "/release/privacy.json")));
  }
  TemporaryFolder folder_;
  SmallTable table_ = write_small_table(folder_);
};

TEST_F(CliPca, PaysForTheCovarianceAndSaysSo) {
  const Finished f =
      train("run", {"--size-is-public", "--epsilon", "4", "--feature-dimensions", "3"});
  ASSERT_EQ(f.exit, 0) << f.err;
  const Json c = certificate("run");
  const double sigma = c["feature_release"]["sigma"];
  ASSERT_EQ(c["releases"].size(), 2u);
  EXPECT_EQ(c["releases"][0]["q"], 1.0);
  EXPECT_EQ(c["releases"][0]["sigma"], sigma);
  EXPECT_EQ(c["releases"][0]["steps"], 1);
  EXPECT_EQ(c["steps"], 80);
  const std::vector<privacy::Release> both{
      {privacy::Gaussian{sigma}, 1},
      {privacy::PoissonGaussian{c["q"].get<double>(), c["sigma"].get<double>()}, 80}};
  EXPECT_EQ(c["epsilon"],
            privacy::Accountant({.releases = both}).epsilon(1e-5 * (1.0 - 1e-9)).epsilon);
  EXPECT_LE(c["epsilon"], 4.0);
  EXPECT_GT(c["epsilon"], 3.99);
  // A tenth of the budget's 1 / sigma^2, by default.
  const std::vector<privacy::Release> all{{privacy::Gaussian{sigma * std::sqrt(0.1)}, 1}};
  EXPECT_NEAR(privacy::Accountant({.releases = all}).epsilon(1e-5).epsilon, 4.0, 1e-3);

  const Finished e = run_cudp(folder_, {"eval", folder_ / "run", "--dataset", table_.test,
                                        "--schema", table_.schema, "--device", "cpu", "--json"});
  ASSERT_EQ(e.exit, 0) << e.err;
  EXPECT_EQ(Json::parse(e.out)["test_accuracy"], Json::parse(f.out)["test_accuracy"]);
  EXPECT_GT(Json::parse(f.out)["test_accuracy"], 0.6);
}

TEST_F(CliPca, TakesSigmaAsGivenAlsoWhereTheSizeIsPrivate) {
  ASSERT_EQ(train("a", {"--sigma", "3", "--epsilon", "50", "--feature-sigma", "5",
                        "--feature-dimensions", "2"})
                .exit,
            0);
  const Json c = certificate("a");
  EXPECT_EQ(c["feature_release"]["sigma"], 5.0);
  EXPECT_EQ(c["releases"].size(), 3u);  // the size, the covariance, the steps
  EXPECT_EQ(c["steps"], 80);
}

/// A method with a filter, and one that pays at once: the covariance is paid for before them.
TEST_F(CliPca, LinearMethodsTrainOnThem) {
  for (const char* method : {"dp-agd", "outpert"}) {
    const Finished f = run_cudp(
        folder_, {"train",    "--dataset", table_.table, "--schema", table_.schema,
                  "--method", method,      "--features", "pca",      "--feature-dimensions",
                  "2",        "--epsilon", "3",          "--delta",  "1e-5",
                  "--quiet",  "--seed",    "1",          "--out",    folder_ / method});
    ASSERT_EQ(f.exit, 0) << f.err;
    const Json c = certificate(method);
    EXPECT_LE(c["epsilon"], 3.0);
    EXPECT_GT(c["feature_release"]["sigma"], 0.0);
    ASSERT_GE(c["releases"].size(), 3u);  // the size, the covariance, the method's own
    EXPECT_EQ(c["releases"][1].dump().find("gaussian") != std::string::npos ||
                  c["releases"][1].contains("sigma"),
              true)
        << c["releases"][1];
  }
}

TEST_F(CliPca, RefusesWhatItCannotDo) {
  const std::vector<std::vector<std::string>> wrong = {
      {"--epsilon", "3", "--feature-dimensions", "5"},
      {"--sigma", "3", "--size-is-public"},
      {"--epsilon", "3", "--feature-share", "1"}};
  for (const auto& flags : wrong) {
    const Finished f = train("no", flags);
    EXPECT_EQ(f.exit, 2) << f.err;
    EXPECT_NE(f.err.find("--feature"), std::string::npos) << f.err;
  }
  const Finished agd = run_cudp(
      folder_, {"train", "--dataset", table_.table, "--schema", table_.schema, "--method", "dp-agd",
                "--features", "pca", "--epsilon", "3", "--delta", "1e-5", "--out", folder_ / "no"});
  EXPECT_EQ(agd.exit, 2) << agd.err;
  EXPECT_NE(agd.err.find("--feature-dimensions: expected at most the 4"), std::string::npos)
      << agd.err;
  const Finished f = train("no", {"--epsilon", "1", "--feature-sigma", "0.5",
                                  "--feature-dimensions", "2", "--size-is-public"});
  EXPECT_EQ(f.exit, 3) << f.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "no"));
}

}  // namespace
}  // namespace cudp
