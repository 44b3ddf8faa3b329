// The parts that the checker is made of, each against another implementation.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "privacy/transcript/records.hpp"
#include "privacy/verify/generator.hpp"
#include "privacy/verify/noisy_choice.hpp"
#include "privacy/verify/optimizer.hpp"
#include "privacy/verify/rounded_normal.hpp"
#include "runtime/base/random_key.hpp"
#include "runtime/base/random_numbers.hpp"
#include "runtime/methods/noisy_min.hpp"
#include "tests/support/fake_run.hpp"
#include "tests/support/test_files.hpp"

namespace cudp {
namespace {

using fake_run::words_of;
using transcript::Batch;
using transcript::Begin;
using transcript::Record;
using transcript::Release;
using transcript::State;
using transcript::Update;

using verify::Verdict;

// The optimizers; their steps are held against runs in tests/runtime/run/checked_runs_test.cpp.

TEST(VerifyOptimizer, ExpectsNothingOfAnInfiniteWeightAlone) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float none = std::numeric_limits<float>::quiet_NaN();
  const std::vector<double> released = {2.0};
  Update after;
  after.optimizer = "momentum";
  after.momentum = 0.5;
  after.learning_rate = 1.0;
  after.inverse_batch = 1.0;
  after.parameters = {none};
  after.moment1 = {none};  // g + 0 theta
  EXPECT_EQ(verify::follows(State{{infinity}, {1.0f}, {}, {}}, released, after), "");
  EXPECT_NE(verify::follows(State{{3.0f}, {1.0f}, {}, {}}, released, after), "");
  after.moment1 = {2.5f};
  after.parameters = {0.5f};
  EXPECT_EQ(verify::follows(State{{3.0f}, {1.0f}, {}, {}}, released, after), "");
}

// The generators.

TEST(VerifyGenerators, AreThoseOfTheRfcAndThePaper) {
  std::array<std::uint32_t, 8> key{};
  for (std::uint32_t i = 0; i < 8; ++i) key[i] = 0x03020100 + 0x04040404 * i;
  // RFC 8439, section 2.3.2
  const std::array<std::uint32_t, 16> rfc = {0xe4e7f110, 0x15593bd1, 0x1fdd0f50, 0xc47120a3,
                                             0xc7f4d1c7, 0x0368c033, 0x9aaa2204, 0x4e6cd4c3,
                                             0x466482d2, 0x09aa9f07, 0x05d7c214, 0xa2028bd9,
                                             0xd19c12b5, 0xb94e16de, 0xe883d0cb, 0x4e3c50a2};
  EXPECT_EQ(verify::chacha20_block(key, 1, {0x09000000, 0x4a000000, 0}), rfc);
  // Random123, kat_vectors
  using Four = std::array<std::uint32_t, 4>;
  EXPECT_EQ(verify::philox4x32_10({0, 0, 0, 0}, {0, 0}),
            (Four{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(verify::philox4x32_10({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Four{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(verify::philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                                  {0xa4093822, 0x299f31d0}),
            (Four{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(VerifyGenerators, DrawWhatTheProductDraws) {
  const RandomKey key = key_from_seed(5);
  for (const auto& [name, generator] :
       {std::pair("chacha20", Generator::chacha20), std::pair("philox", Generator::philox)})
    for (const std::uint64_t step : {std::uint64_t{0}, std::uint64_t{0xfffffff0}}) {
      const RandomStream stream{generator, key, Stream::noise, step};
      const verify::RandomWords words(name, words_of(key), 2, step);
      EXPECT_EQ(words.first(1000), random_words(stream, 1000));
      for (const double s : {0x1p16, 1234567.25, 0x1p40})
        EXPECT_EQ(verify::rounded_normals(words, s, 1003), rounded_normals(stream, s, 0, 1003))
            << name << " " << s;
    }
  EXPECT_THROW(verify::RandomWords("xorshift", {}, 2, 0), std::invalid_argument);
  EXPECT_THROW(verify::RandomWords("philox", {}, 2, std::uint64_t{1} << 32), std::invalid_argument);
}

std::uint64_t golden_word(std::uint64_t pair, std::uint64_t number) {
  std::uint64_t z = pair * 0x9e3779b97f4a7c15 + number * 0xd1342543de82ef95 + 12345;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }
std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }

TEST(VerifyRoundedNormals, AreThoseOfThreeHundredDigits) {
  std::ifstream file(golden_file("rounded_normal.json"));
  const nlohmann::json golden = nlohmann::json::parse(file);
  std::vector<std::uint64_t> radii, turns;
  for (const auto& text : golden["radii"]) radii.push_back(std::stoull(text.get<std::string>()));
  for (const auto& text : golden["turns"]) turns.push_back(std::stoull(text.get<std::string>()));
  const std::size_t forced = golden["forced"];
  std::uint64_t pair = 0;
  std::size_t choice = 0;
  std::size_t needed_more = 0;
  for (const auto& c : golden["cases"]) {
    const double s = c["s"];
    for (std::size_t j = 0; j < 1000; ++j, ++pair) {
      std::uint64_t a = golden_word(pair, 0);
      std::uint64_t b = golden_word(pair, 1);
      if (j < forced) {
        a = radii[choice % radii.size()];
        b = turns[choice / radii.size() % turns.size()];
        ++choice;
      }
      const verify::MoreBits more = [&](std::uint32_t round) {
        ++needed_more;
        std::array<std::uint32_t, 16> out{};
        for (std::uint64_t i = 0; i < 8; ++i) {
          const std::uint64_t w = golden_word(pair, 2 + 8 * (std::uint64_t{round} - 1) + i);
          out[2 * i] = high(w);
          out[2 * i + 1] = low(w);
        }
        return out;
      };
      const std::array<std::uint32_t, 4> words = {high(a), low(a), high(b), low(b)};
      const verify::NormalPair want{c["numbers"][2 * j], c["numbers"][2 * j + 1]};
      ASSERT_EQ(verify::rounded_normal_pair(words, s, more), want) << s << ", pair " << pair;
      if (j % 50 == 0) {
        ASSERT_EQ(verify::rounded_normal_pair_slowly(words, s, more), want) << s << ", " << pair;
      }
    }
  }
  EXPECT_GT(needed_more, 10u);
}

// Transcripts.

/// Of both implementations, which share nothing; and of noise of another scale other ones.
TEST(VerifyNoisyChoice, ChoosesWhatARunChooses) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> score(0.0, 40.0);
  int same = 0;
  int others = 0;
  for (std::uint64_t step = 0; step < 300; ++step) {
    std::vector<double> scores(2 + random() % 40);
    for (double& s : scores) s = score(random);
    const std::size_t count = 1 + random() % std::min<std::size_t>(scores.size(), 5);
    const std::string generator = step % 2 == 0 ? "chacha20" : "philox";
    const RandomStream stream{step % 2 == 0 ? Generator::chacha20 : Generator::philox,
                              {{1, 2, 3, 4, 5, 6, 7, static_cast<std::uint32_t>(step)}},
                              Stream::selection,
                              step};
    std::array<std::uint32_t, 8> key{};
    std::copy_n(std::begin(stream.key.words), 8, key.begin());
    const verify::RandomWords words(generator, key, 8, step);
    const std::vector<std::size_t> chosen = noisy_smallest(scores, count, 3.0, 0.7, stream);
    EXPECT_EQ(verify::gumbel_choices(words, scores, 0.7, 3.0, count), chosen);
    others += verify::gumbel_choices(words, scores, 0.63, 3.0, count) != chosen ? 1 : 0;
    const std::size_t one = noisy_min(scores, 3.0, 0.7, SelectionNoise::laplace, stream);
    EXPECT_EQ(verify::laplace_choice(words, scores, 0.7, 3.0), one);
    same += verify::laplace_choice(words, scores, 0.35, 3.0) == one ? 1 : 0;
  }
  EXPECT_GT(others, 20);
  EXPECT_LT(same, 250);
}

TEST(VerifyTranscript, IsReadBack) {
  const std::vector<Record> all = {
      Begin{.generator = "philox", .key = {1, 2, 3, 4, 5, 6, 7, ~0u}, .examples = 9, .step = 3},
      State{.parameters = {1.5f, -0.0f}, .moment1 = {}, .moment2 = {2.0f}, .average = {}},
      Batch{.step = 3, .threshold = std::uint64_t{1} << 32, .examples = {0, 5, 8}},
      Release{.name = "a \"sum\"\n",
              .stream = 2,
              .step = 3,
              .grid = 0x1p-30,
              .noise_std = 0.1,
              .sensitivity = 1.0 / 3.0,
              .charged = 7,
              .sums = {-1, std::int64_t{1} << 62},
              .scores = {-0.5, 1e300},
              .values = {0.1, -std::numeric_limits<double>::infinity()}},
      Update{.step = 3,
             .optimizer = "adam",
             .learning_rate = INFINITY,
             .coordinates = true,
             .parameters = {1.0f},
             .moment1 = {},
             .moment2 = {},
             .average = {}},
      State{}};
  std::string bytes;
  std::size_t last = 0;
  for (const Record& r : all) {
    last = bytes.size();
    bytes += transcript::encode(r);
  }
  EXPECT_EQ(transcript::decode(bytes), all);
  EXPECT_TRUE(transcript::decode("").empty());
  // A last record that was cut off, anywhere, is left away.
  const std::vector<Record> less(all.begin(), all.end() - 1);
  for (std::size_t cut = last; cut < bytes.size(); ++cut)
    ASSERT_EQ(transcript::decode(bytes.substr(0, cut)), less) << cut;
  EXPECT_THROW(transcript::decode("begin\n"), std::invalid_argument);
  EXPECT_THROW(transcript::decode("nothing"), std::invalid_argument);
  EXPECT_THROW(transcript::decode("{\"kind\":\"end\"}\n"), std::invalid_argument);
  EXPECT_THROW(transcript::decode("{\"kind\":\"batch\",\"step\":1}\n"), std::invalid_argument);
  EXPECT_THROW(transcript::decode("{\"kind\": \"state\"}\n"), std::invalid_argument);
  EXPECT_THROW(transcript::decode("{\"kind\":\"state\",\"more\":1}\n"), std::invalid_argument);
}

}  // namespace
}  // namespace cudp
