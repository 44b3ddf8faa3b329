#include "runtime/features/standardise.hpp"

#include <cmath>
#include <filesystem>
#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "privacy/accountant.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/random_key.hpp"
#include "runtime/base/safetensors.hpp"
#include "tests/support/cudp_process.hpp"
#include "tests/support/expect_normal.hpp"
#include "tests/support/test_books.hpp"

namespace cudp {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kChannels = 81;
constexpr std::size_t kPixels = 6;
constexpr std::size_t kNumbers = kChannels * kPixels;

/// What the header says of units: by the order of a channel.
double unit_of(std::size_t channel) {
  if (channel % 81 == 0) return 0.25;
  return channel % 81 <= 16 ? 1.0 / 32.0 : 1.0 / 512.0;
}

/// Channels of unlike means and variances; `size` times what features usually are.
Dataset features_of(std::size_t n, unsigned seed, double size) {
  Dataset data;
  data.shape = {static_cast<int>(kChannels), 2, 3};
  data.classes = 2;
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t c = 0; c < kChannels; ++c)
      for (std::size_t p = 0; p < kPixels; ++p)
        data.floats.push_back(static_cast<float>(
            size * unit_of(c) * (0.5 + 0.01 * static_cast<double>(c) + 0.3 * normal(random))));
  data.labels.assign(n, 0);
  return data;
}

Dataset without(Dataset data, std::size_t example) {
  const auto first = data.floats.begin() + static_cast<std::ptrdiff_t>(example * kNumbers);
  data.floats.erase(first, first + static_cast<std::ptrdiff_t>(kNumbers));
  data.labels.pop_back();
  return data;
}

/// Example by example in long double, with another way of clipping; of the largest row.
std::vector<double> oracle_moments(const Dataset& data) {
  std::vector<long double> sum(2 * kChannels);
  for (std::size_t e = 0; e < data.size(); ++e) {
    std::vector<long double> row(2 * kChannels);
    long double norm = 0.0L;
    for (std::size_t c = 0; c < kChannels; ++c) {
      for (std::size_t p = 0; p < kPixels; ++p) {
        const long double x = data.floats[e * kNumbers + c * kPixels + p] / unit_of(c);
        row[c] += x / kPixels;
        row[kChannels + c] += x * x / kPixels;
      }
      norm = std::hypot(norm, std::hypot(row[c], row[kChannels + c]));
    }
    const long double largest = 2.0L * 9.0L;  // 2 sqrt(81)
    for (std::size_t i = 0; i < row.size(); ++i) sum[i] += row[i] / std::fmax(norm, largest);
  }
  return {sum.begin(), sum.end()};
}

TEST(ChannelMoments, AreThoseOfClippedRows) {
  for (const std::size_t n : {0u, 1u, 255u, 256u, 700u})
    for (const double size : {0.5, 3.0}) {  // below the largest row, and above
      SCOPED_TRACE(testing::Message() << n << " examples, size " << size);
      const Dataset data = features_of(n, 5, size);
      const auto got = clipped_moments(data, moment_bits(1e6), 1);
      const auto want = oracle_moments(data);
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t i = 0; i < got.size(); ++i)
        ASSERT_TRUE(std::fabs(std::ldexp(got[i], -moment_bits(1e6)) - want[i]) <=
                    1.1 * static_cast<double>(n) * std::ldexp(1.0, -moment_bits(1e6)))
            << i;
      EXPECT_EQ(clipped_moments(data, moment_bits(1e6), 3), got);
    }
}

/// Exactly: sums are, so what one example adds does not depend on the others.
TEST(ChannelMoments, OneExampleMovesThemByAtMostOne) {
  double most = 0.0;
  for (const double size : {0.3, 2.0, 40.0, 1e15}) {
    Dataset data = features_of(300, 11, size);
    for (std::size_t i = 1; i < kNumbers; ++i) data.floats[i] = 0.0f;  // all in one number
    const auto all = clipped_moments(data, moment_bits(1e6), 1);
    for (const std::size_t example : {0u, 1u, 77u, 299u}) {
      const auto rest = clipped_moments(without(data, example), moment_bits(1e6), 1);
      double squares = 0.0;
      for (std::size_t i = 0; i < all.size(); ++i)
        squares += (all[i] - rest[i]) * (all[i] - rest[i]);
      const double moved = std::ldexp(std::sqrt(squares), -moment_bits(1e6));
      EXPECT_LE(moved, 1.0) << "size " << size;
      most = std::fmax(most, moved);
    }
  }
  EXPECT_GT(most, 0.999);
}

TEST(ChannelMoments, LeaveOutWhatIsNotFinite) {
  const Dataset data = features_of(70, 2, 1.0);
  const auto want = clipped_moments(without(data, 13), moment_bits(1e6), 1);
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    Dataset broken = data;
    broken.floats[13 * kNumbers + 44] = bad;
    EXPECT_EQ(clipped_moments(broken, moment_bits(1e6), 1), want);
  }
}

std::vector<float> scaling_of(const Dataset& data, double size, double sigma, double second_order,
                              std::uint64_t seed, int threads) {
  Gate gate(Generator::chacha20, key_from_seed(seed), all_paid());
  return dp_channel_scaling(data, size, 1e6, sigma, second_order, gate, threads);
}

TEST(ChannelScaling, GivesChannelsTheMeanAndVarianceOfTheirOrder) {
  constexpr double kSecondOrder = 0.25;
  Dataset data = features_of(4000, 7, 1.0);
  const auto scaling = scaling_of(data, 4000.0, 1e-6, kSecondOrder, 1, 2);
  EXPECT_EQ(scaling_of(data, 4000.0, 1e-6, kSecondOrder, 1, 1), scaling);
  Dataset one = data;
  scale_channels(one, scaling, 1);
  scale_channels(data, scaling, 3);
  EXPECT_EQ(data.floats, one.floats);
  for (std::size_t c = 0; c < kChannels; ++c) {
    double sum = 0.0;
    double squares = 0.0;
    for (std::size_t e = 0; e < data.size(); ++e)
      for (std::size_t p = 0; p < kPixels; ++p) {
        const double x = data.floats[e * kNumbers + c * kPixels + p];
        sum += x;
        squares += x * x;
      }
    const double n = 4000.0 * kPixels;
    EXPECT_TRUE(std::fabs(sum / n) <= 1e-3) << c;
    const double variance = c > 16 ? kSecondOrder * kSecondOrder : 1.0;
    EXPECT_TRUE(std::fabs(squares / n / variance - 1.0) <= 1e-2) << c;
  }
}

/// Of no examples, "known" as one: the mean is noise alone, of standard deviation sigma largest
/// row.
TEST(ChannelScaling, HasTheNoiseThatWasPaidFor) {
  constexpr double kSigma = 3.0;
  constexpr double kLargest = 18.0;  // 2 sqrt(81)
  std::vector<double> z;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const auto s = scaling_of(features_of(0, 1, 1.0), 1.0, kSigma, 1.0, seed, 1);
    for (std::size_t c = 0; c < kChannels; ++c)
      z.push_back(-double{s[kChannels + c]} / (double{s[c]} * unit_of(c)) / (kSigma * kLargest));
  }
  expect_normal(z, 1.0);
  EXPECT_NE(z[0], z[kChannels]);
}

class CliStandardise : public testing::Test {
 protected:
  Finished train(const std::string& out, const std::vector<std::string>& more) const {
    return run_cudp(folder_, with({"train",
                                   "--dataset",
                                   "glyphs",
                                   "--features",
                                   "scatter",
                                   "--feature-cache",
                                   "none",
                                   "--delta",
                                   "1e-5",
                                   "--batch",
                                   "256",
                                   "--steps",
                                   "10",
                                   "--lr",
                                   "4",
                                   "--clip",
                                   "0.1",
                                   "--seed",
                                   "3",
                                   "--device",
                                   "cpu",
                                   "--json",
                                   "--quiet",
                                   "--model",
                                   "scatter-linear",
                                   "--out",
                                   folder_ / out,
                                   "--feature-standardise"},
                                  more));
  }
  TemporaryFolder folder_;
};

TEST_F(CliStandardise, PaysForTheMomentsAndEvalUsesThem) {
  const Finished f = train("run", {"--epsilon", "3", "--feature-sigma", "8"});
  ASSERT_EQ(f.exit, 0) << f.err;
  const Json c = Json::parse(content_of(folder_ / "run/release/privacy.json"));
  EXPECT_EQ(c["feature_release"]["sigma"], 8.0);
  EXPECT_EQ(c["feature_release"]["sensitivity"], 1.0);
  ASSERT_EQ(c["releases"].size(), 2u);
  EXPECT_EQ(c["releases"][0]["q"], 1.0);
  EXPECT_EQ(c["releases"][0]["sigma"], 8.0);
  EXPECT_EQ(c["releases"][0]["steps"], 1);
  const std::vector<privacy::Release> both{
      {privacy::Gaussian{8.0}, 1},
      {privacy::PoissonGaussian{c["q"].get<double>(), c["sigma"].get<double>()}, 10}};
  EXPECT_EQ(c["epsilon"],
            privacy::Accountant({.releases = both}).epsilon(1e-5 * (1.0 - 1e-9)).epsilon);
  EXPECT_LE(c["epsilon"], 3.0);
  EXPECT_GT(c["epsilon"], 2.99);

  const Finished e = run_cudp(
      folder_, {"eval", folder_ / "run", "--feature-cache", "none", "--device", "cpu", "--json"});
  ASSERT_EQ(e.exit, 0) << e.err;
  EXPECT_EQ(Json::parse(e.out)["test_accuracy"], Json::parse(f.out)["test_accuracy"]);
  EXPECT_GT(Json::parse(f.out)["test_accuracy"], 0.5);
}

TEST_F(CliStandardise, ShrinksTheSecondOrderAsAsked) {
  const auto scaling = [&](const std::string& order) {
    const Finished f = train(order, {"--epsilon", "3", "--feature-second-order", order});
    EXPECT_EQ(f.exit, 0) << f.err;
    const TensorFile model =
        decode_safetensors(content_of(folder_ / (order + "/release/model.safetensors")), "model");
    for (const ParameterTensor& t : model.tensors)
      if (t.name == "features.scaling") {
        const float* const first = model.values.data() + t.offset;
        return std::vector<float>(first, first + t.size);
      }
    return std::vector<float>();
  };
  const auto whole = scaling("1");
  const auto half = scaling("0.5");
  ASSERT_EQ(whole.size(), 2 * kChannels);
  ASSERT_EQ(half.size(), 2 * kChannels);
  for (std::size_t i = 0; i < whole.size(); ++i)
    EXPECT_EQ(half[i], (i % kChannels > 16 ? 0.5f : 1.0f) * whole[i]) << i;
}

TEST_F(CliStandardise, RefusesWhatItCannotDo) {
  const std::vector<std::vector<std::string>> wrong = {{"--sigma", "1"},
                                                       {"--epsilon", "3", "--features", "none"},
                                                       {"--epsilon", "3", "--features", "pca"}};
  for (const auto& flags : wrong) {
    const Finished f = train("no", flags);
    EXPECT_EQ(f.exit, 2) << f.err;
    EXPECT_NE(f.err.find("--feature"), std::string::npos) << f.err;
  }
  const Finished agd =
      run_cudp(folder_, {"train", "--dataset", "glyphs", "--method", "dp-agd", "--features",
                         "scatter", "--feature-standardise", "--epsilon", "3", "--delta", "1e-5",
                         "--out", folder_ / "no"});
  EXPECT_EQ(agd.exit, 2) << agd.err;
  EXPECT_NE(agd.err.find("--model: expected logistic or svm"), std::string::npos) << agd.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "no"));
}

}  // namespace
}  // namespace cudp
