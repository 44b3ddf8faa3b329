// Rounded normals: the same integers on every backend, and those of arithmetic with 300 digits.
#include "kernels/random/rounded_normal.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/random_backends.hpp"
#include "tests/support/reference/random.hpp"
#ifndef CUDP_TEST_ON_GPU
#include <fstream>

#include <nlohmann/json.hpp>

#include "kernels/random/rounded_normal.cuh"
#include "tests/support/expect_normal.hpp"
#include "tests/support/test_files.hpp"
#endif

namespace cudp {

#ifndef CUDP_TEST_ON_GPU
// random_chunk.hpp declares it in the namespace of one SIMD level.
#define CUDP_TRY_ROUNDED_PAIRS                                                         \
  unsigned try_rounded_pairs(const std::uint32_t* words, double s, std::int64_t* even, \
                             std::int64_t* odd, double error_factor)
namespace baseline {
CUDP_TRY_ROUNDED_PAIRS;
}
#if defined(__x86_64__)
namespace avx2 {
CUDP_TRY_ROUNDED_PAIRS;
}
namespace avx512 {
CUDP_TRY_ROUNDED_PAIRS;
}
#endif
#undef CUDP_TRY_ROUNDED_PAIRS
#endif

namespace {

RandomStream normal_stream(Generator generator, std::uint64_t step = 5) {
  return {generator, {{11, 12, 13, 14, 15, 16, 17, 18}}, Stream::noise, step};
}

/// A source of further digits that is a function (round, out).
template <class F>
FurtherDigits digits_of(const F& f) {
  return {[](const void* source, std::uint32_t round, std::uint32_t* out) {
            (*static_cast<const F*>(source))(round, out);
          },
          &f};
}

/// Pair number `pair` of a stream, by the layout that rounded_normal.hpp states, word by word from
/// the generators' papers.
RoundedPair oracle_pair(const RandomStream& s, std::uint64_t pair, double scale) {
  const std::uint64_t row = 256 * (pair / 64) + 16 * (pair % 64 / 16) * 4 + pair % 16;
  std::uint32_t words[4];
  for (std::uint64_t j = 0; j < 4; ++j) words[j] = reference::word(s, row + 16 * j);
  const auto further = [&](std::uint32_t round, std::uint32_t* out) {
    RandomStream t = s;
    t.stream = static_cast<Stream>(static_cast<std::uint32_t>(s.stream) + 256 * round);
    for (std::uint64_t j = 0; j < 16; ++j)
      out[j] = reference::word(t, pair / 16 * 256 + 16 * j + pair % 16);
  };
  return exact_rounded_pair(words, scale, digits_of(further));
}

/// Numbers begin..end of a stream, begin a multiple of 128.
std::vector<std::int64_t> oracle(const RandomStream& s, std::int64_t begin, std::int64_t end,
                                 double scale) {
  std::vector<std::int64_t> k(static_cast<std::size_t>(end - begin));
  for (std::int64_t i = begin; i < end; ++i) {
    if (i % 32 >= 16) continue;
    const RoundedPair pair =
        oracle_pair(s, static_cast<std::uint64_t>(i / 32 * 16 + i % 16), scale);
    k[i - begin] = pair.even;
    if (i + 16 < end) k[i + 16 - begin] = pair.odd;
  }
  return k;
}

class RoundedNormalNumbers : public testing::TestWithParam<RandomBackend> {
 protected:
  /// A loud number after the end shows a write past it.
  static std::vector<std::int64_t> numbers(const RandomStream& s, std::int64_t begin,
                                           std::int64_t end, double scale) {
    std::vector<std::int64_t> k(static_cast<std::size_t>(end - begin) + 1, 12345);
    const RoundedNormals args{s, scale, begin, end, k.data()};
    validate(args);
    GetParam().rounded_normals(args);
    EXPECT_EQ(k.back(), 12345);
    k.pop_back();
    return k;
  }
};

TEST_P(RoundedNormalNumbers, AreTheOracles) {
  for (const Generator g : kEveryGenerator)
    for (const double s : {0x1p16, 12345678.9, 0x1p40}) {
      const RandomStream from = normal_stream(g);
      EXPECT_EQ(numbers(from, 0, 1024, s), oracle(from, 0, 1024, s)) << s;
    }
}

TEST_P(RoundedNormalNumbers, AreTheBaselines) {
  const std::int64_t n = GetParam().emulated ? 1 << 12 : 1 << 18;
  for (const Generator g : kEveryGenerator)
    for (const double s : {0x1p16, 0x1.23p31, 0x1p38}) {
      const RandomStream from = normal_stream(g, 77);
      std::vector<std::int64_t> want(static_cast<std::size_t>(n));
      cpu_kernels(SimdLevel::baseline).rounded_normals({from, s, 0, n, want.data()});
      EXPECT_TRUE(numbers(from, 0, n, s) == want) << s;
    }
}

TEST_P(RoundedNormalNumbers, AnyRangeIsAPartOfTheSameStream) {
  for (const Generator g : kEveryGenerator) {
    const RandomStream from = normal_stream(g);
    const auto whole = numbers(from, 0, 2048, 0x1p30);
    for (const int begin : {0, 128, 384, 512})
      for (const int length : {0, 1, 15, 16, 17, 127, 128, 129, 511, 512, 513, 1024}) {
        const auto part = numbers(from, begin, begin + length, 0x1p30);
        ASSERT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + begin))
            << begin << " + " << length;
      }
  }
}

// Where a pair's number no longer fits in a signed or in 32 bits; many are undecided there.
TEST_P(RoundedNormalNumbers, AreTheOraclesFarIntoTheStream) {
  for (const Generator g : kEveryGenerator)
    for (const std::int64_t begin : {std::int64_t{1} << 32, (std::int64_t{1} << 33) - 256}) {
      const RandomStream from = normal_stream(g);
      EXPECT_EQ(numbers(from, begin, begin + 256, 0x1p40),
                oracle(from, begin, begin + 256, 0x1p40));
    }
}

INSTANTIATE_TEST_SUITE_P(All, RoundedNormalNumbers, testing::ValuesIn(random_backends()),
                         [](const auto& i) { return i.param.name; });

#ifndef CUDP_TEST_ON_GPU

/// What a backend makes of given words: try_rounded_pairs of random_chunk.hpp.
struct Attempt {
  std::string name;
  unsigned (*pairs)(const std::uint32_t* words, double s, std::int64_t* even, std::int64_t* odd,
                    double error_factor);
};

unsigned try_on_device(const std::uint32_t* words, double s, std::int64_t* even, std::int64_t* odd,
                       double error_factor) {
  unsigned undecided = 0;
  for (int lane = 0; lane < 16; ++lane) {
    const std::uint32_t word[4] = {words[lane], words[16 + lane], words[32 + lane],
                                   words[48 + lane]};
    const TriedPair tried = try_rounded_pair(word, s, error_factor);
    even[lane] = tried.k.even;
    odd[lane] = tried.k.odd;
    if (!tried.decided) undecided |= 1u << lane;
  }
  return undecided;
}

std::vector<Attempt> attempts() {
  std::vector<Attempt> all = {{"baseline", baseline::try_rounded_pairs}, {"simt", try_on_device}};
#if defined(__x86_64__)
  for (const auto& [level, pairs] : {std::pair{SimdLevel::avx2, &avx2::try_rounded_pairs},
                                     {SimdLevel::avx512, &avx512::try_rounded_pairs}}) {
    try {
      cpu_kernels(level);
      all.push_back({std::string(simd_name(level)), pairs});
    } catch (const std::invalid_argument&) {  // this processor lacks it
    }
  }
#endif
  return all;
}

struct FirstWords {
  std::uint64_t a;  ///< the first 64 bits of U1
  std::uint64_t b;  ///< of U2
};

/// Sixteen pairs from `at` on as rows of words, the last pair again where there are no more.
std::array<std::uint32_t, 64> rows_of(const std::vector<FirstWords>& from, std::size_t at) {
  std::array<std::uint32_t, 64> words{};
  for (std::size_t lane = 0; lane < 16; ++lane) {
    const FirstWords& w = from[std::min(at + lane, from.size() - 1)];
    words[lane] = static_cast<std::uint32_t>(w.a >> 32);
    words[16 + lane] = static_cast<std::uint32_t>(w.a);
    words[32 + lane] = static_cast<std::uint32_t>(w.b >> 32);
    words[48 + lane] = static_cast<std::uint32_t>(w.b);
  }
  return words;
}

/// How many of the pairs `from` a backend leaves undecided; the others must be `want`.
int compare(const Attempt& attempt, const std::vector<FirstWords>& from,
            const std::vector<RoundedPair>& want, double s, double error_factor) {
  int undecided = 0;
  for (std::size_t at = 0; at < from.size(); at += 16) {
    std::int64_t even[16];
    std::int64_t odd[16];
    const unsigned bits = attempt.pairs(rows_of(from, at).data(), s, even, odd, error_factor);
    for (std::size_t lane = 0; lane < 16 && at + lane < from.size(); ++lane) {
      if (bits >> lane & 1) {
        ++undecided;
        continue;
      }
      const FirstWords& w = from[at + lane];
      EXPECT_EQ(even[lane], want[at + lane].even)
          << attempt.name << ", s = " << s << ": " << w.a << ", " << w.b;
      EXPECT_EQ(odd[lane], want[at + lane].odd)
          << attempt.name << ", s = " << s << ": " << w.a << ", " << w.b;
    }
  }
  return undecided;
}

/// Bits of the pairs in tests/golden/make_rounded_normal.py, which has the same function.
std::uint64_t golden_word(std::uint64_t pair, std::uint64_t number) {
  std::uint64_t z = pair * 0x9e3779b97f4a7c15 + number * 0xd1342543de82ef95 + 12345;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

RoundedPair exact_golden_pair(std::uint64_t pair, const FirstWords& first, double s) {
  const std::uint32_t words[4] = {
      static_cast<std::uint32_t>(first.a >> 32), static_cast<std::uint32_t>(first.a),
      static_cast<std::uint32_t>(first.b >> 32), static_cast<std::uint32_t>(first.b)};
  const auto further = [&](std::uint32_t round, std::uint32_t* out) {
    for (std::uint64_t i = 0; i < 8; ++i) {
      const std::uint64_t w = golden_word(pair, 2 + 8 * (std::uint64_t{round} - 1) + i);
      out[2 * i] = static_cast<std::uint32_t>(w >> 32);
      out[2 * i + 1] = static_cast<std::uint32_t>(w);
    }
  };
  return exact_rounded_pair(words, s, digits_of(further));
}

TEST(RoundedNormals, AreThoseOfThreeHundredDigits) {
  std::ifstream file(golden_file("rounded_normal.json"));
  const nlohmann::json golden = nlohmann::json::parse(file);
  const auto words_of = [&](const char* name) {
    std::vector<std::uint64_t> words;
    for (const auto& text : golden[name]) words.push_back(std::stoull(text.get<std::string>()));
    return words;
  };
  const auto radii = words_of("radii");
  const auto turns = words_of("turns");
  const std::size_t forced = golden["forced"];
  ASSERT_EQ(golden["cases"].size(), 10u);
  std::uint64_t pair = 0;
  std::size_t choice = 0;
  for (const auto& c : golden["cases"]) {
    const double s = c["s"];
    ASSERT_EQ(c["numbers"].size(), 2000u);
    std::vector<FirstWords> first;
    std::vector<RoundedPair> want;
    for (std::size_t j = 0; j < 1000; ++j, ++pair) {
      FirstWords w{golden_word(pair, 0), golden_word(pair, 1)};
      if (j < forced) {
        w = {radii[choice % radii.size()], turns[choice / radii.size() % turns.size()]};
        ++choice;
      }
      first.push_back(w);
      want.push_back({c["numbers"][2 * j], c["numbers"][2 * j + 1]});
      const RoundedPair exact = exact_golden_pair(pair, w, s);
      ASSERT_EQ(exact.even, want.back().even) << s << ": " << w.a << ", " << w.b;
      ASSERT_EQ(exact.odd, want.back().odd) << s << ": " << w.a << ", " << w.b;
    }
    for (const Attempt& attempt : attempts())
      for (const double error_factor : {1.0, 1e3, 1e6})
        compare(attempt, first, want, s, error_factor);
  }
}

/// Pairs of any bits, with the same further ones.
void random_pairs(int n, double s, std::vector<FirstWords>* first, std::vector<RoundedPair>* want) {
  for (int j = 0; j < n; ++j) {
    const std::uint64_t pair = 1000000 + static_cast<std::uint64_t>(j);
    first->push_back({golden_word(pair, 0), golden_word(pair, 1)});
    want->push_back(exact_golden_pair(pair, first->back(), s));
  }
}

// A bound that is a million times too large sends nearly all to the exact routine, or all of them:
// it must not change an integer. How many are undecided shows that it does its work.
TEST(RoundedNormals, DoNotDependOnTheErrorBound) {
  for (const double s : {0x1p16, 0x1.4p18, 0x1p20, 0x1.9p25}) {
    std::vector<FirstWords> first;
    std::vector<RoundedPair> want;
    random_pairs(4096, s, &first, &want);
    for (const Attempt& attempt : attempts()) {
      EXPECT_LE(compare(attempt, first, want, s, 1.0), 1) << attempt.name;
      compare(attempt, first, want, s, 1e3);
      const int undecided = compare(attempt, first, want, s, 1e6);
      // 4 E of the pairs, and E is about 9e6 2^-52 s
      EXPECT_GE(undecided, s > 0x1p25 ? 1000 : s > 0x1p17 ? 1 : 0) << attempt.name << " " << s;
    }
  }
}

// Undecided are about 4 E: more than that is slow, less would be a bound that is too small.
TEST(RoundedNormals, AreNearlyAlwaysDecided) {
  for (const double s : {0x1p30, 0x1p36, 0x1p40}) {
    std::vector<FirstWords> first;
    constexpr int kPairs = 1 << 16;
    first.reserve(kPairs);
    for (std::uint64_t j = 0; j < kPairs; ++j)
      first.push_back({golden_word(j, 0), golden_word(j, 1)});
    for (const Attempt& attempt : attempts()) {
      int undecided = 0;
      for (std::size_t at = 0; at < first.size(); at += 16) {
        std::int64_t numbers[32];
        undecided += __builtin_popcount(
            attempt.pairs(rows_of(first, at).data(), s, numbers, numbers + 16, 1.0));
      }
      const double expected = kPairs * 4 * 9 * s * 0x1p-52;  // E is near 9 s 2^-52
      EXPECT_LE(undecided, 2 * expected + 10) << attempt.name << " " << s;
      EXPECT_GE(undecided, expected / 2 - 10) << attempt.name << " " << s;
    }
  }
}

// The ends of U1 and the eighths of a turn, where a double is exactly 0, 1 or -0.
TEST(RoundedNormals, OfForcedWordsAreExact) {
  std::vector<std::uint64_t> radii = {0, 1, 2, 3, 4, 5, 6, 7};
  for (std::uint64_t i = 1; i <= 2048; i += 89) radii.push_back(-i);
  radii.push_back(-std::uint64_t{2048});
  for (int i = 3; i < 64; i += 5) radii.push_back(std::uint64_t{1} << i);
  for (const double s : {0x1p16, 0x1.7p27, 0x1p40}) {
    std::vector<FirstWords> first;
    std::vector<RoundedPair> want;
    for (const std::uint64_t a : radii)
      for (std::uint64_t eighth = 0; eighth < 8; ++eighth)
        for (const std::uint64_t beside : {~std::uint64_t{0}, std::uint64_t{0}, std::uint64_t{1}}) {
          first.push_back({a, (eighth << 61) + beside});
          want.push_back(exact_golden_pair(first.size(), first.back(), s));
        }
    for (const Attempt& attempt : attempts()) {
      // What needs more digits is not accepted: 24 pairs of each of 0..7 and of a dozen at the top.
      const int undecided = compare(attempt, first, want, s, 1.0);
      EXPECT_GE(undecided, 24 * (8 + 12)) << attempt.name;
    }
  }
}

TEST(RoundedNormals, AskForFurtherDigits) {
  const std::uint32_t zeros[4] = {};
  std::uint32_t asked = 0;
  // all bits 0 but the one of 2^-352 of U1, in round 2
  const auto late = [&](std::uint32_t round, std::uint32_t* out) {
    EXPECT_EQ(round, asked + 1);
    asked = round;
    for (int i = 0; i < 16; ++i) out[i] = 0;
    if (round == 2) out[0] = 1;
  };
  const RoundedPair pair = exact_rounded_pair(zeros, 0x1p20, digits_of(late));
  EXPECT_EQ(asked, 3u);
  EXPECT_EQ(pair.even, std::llround(0x1p20 * std::sqrt(2 * std::log(2.0) * 352)));
  EXPECT_EQ(pair.odd, 0);
  asked = 0;
  const std::uint32_t plain[4] = {0x80000000, 0, 0x12345678, 0};
  exact_rounded_pair(plain, 0x1p20, digits_of(late));
  EXPECT_EQ(asked, 0u);
  // a generator that gives nothing else
  const auto nothing = [](std::uint32_t, std::uint32_t* out) {
    for (int i = 0; i < 16; ++i) out[i] = 0;
  };
  EXPECT_THROW(exact_rounded_pair(zeros, 0x1p20, digits_of(nothing)), std::runtime_error);
}

// Digits that are not seen yet matter where the first 64 bits of U1 are 0, and each has its place.
TEST(RoundedNormals, FurtherDigitsAreTheStreams) {
  const std::uint32_t zeros[4] = {};
  for (const Generator g : kEveryGenerator)
    for (const std::int64_t pair : {std::int64_t{0}, std::int64_t{17}, std::int64_t{0xffffffff}}) {
      const RandomStream s = normal_stream(g);
      const auto block = [&](std::uint32_t round, std::uint32_t* out) {
        RandomStream t = s;
        t.stream = static_cast<Stream>(static_cast<std::uint32_t>(Stream::noise) | round << 8);
        const auto n = static_cast<std::uint64_t>(pair);
        for (std::uint64_t j = 0; j < 16; ++j)
          out[j] = reference::word(t, n / 16 * 256 + 16 * j + n % 16);
      };
      const RoundedPair got = exact_rounded_pair(s, pair, zeros, 0x1p40);
      const RoundedPair want = exact_rounded_pair(zeros, 0x1p40, digits_of(block));
      EXPECT_EQ(got.even, want.even);
      EXPECT_EQ(got.odd, want.odd);
      EXPECT_GT(std::hypot(static_cast<double>(got.even), static_cast<double>(got.odd)),
                9.4 * 0x1p40);
      const RoundedPair next = exact_rounded_pair(s, pair ^ 1, zeros, 0x1p40);
      EXPECT_NE(got.even, next.even);
    }
}

TEST(RoundedNormals, HaveATail) {
  for (const Attempt& attempt : attempts()) {
    std::uint32_t words[64] = {};  // U2 = 0
    for (std::uint32_t lane = 0; lane < 16; ++lane) words[16 + lane] = 1u << (16 + lane);
    std::int64_t even[16];
    std::int64_t odd[16];
    const double s = 0x1p16;
    EXPECT_EQ(attempt.pairs(words, s, even, odd, 1.0), 0u) << attempt.name;
    for (int lane = 0; lane < 16; ++lane)  // U1 = 2^-(48 - lane)
      EXPECT_NEAR(static_cast<double>(even[lane]) / s, std::sqrt(2 * std::log(2.0) * (48 - lane)),
                  1e-4);
    EXPECT_GT(static_cast<double>(even[0]) / s, 8.1);
  }
}

TEST(RoundedNormals, PairsAndNumbersAreOneToOne) {
  std::vector<int> seen(1024);
  for (std::int64_t pair = 0; pair < 512; ++pair) {
    const std::int64_t even = even_number_of(pair);
    ++seen[even], ++seen[even + 16];
    EXPECT_EQ(rounded_pair_of(even), pair);
    EXPECT_EQ(rounded_pair_of(even + 16), pair);
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), 1024);
}

// The (1 - 1e-6) quantile of chi-square, after Wilson and Hilferty.
double chi_square_limit(double freedom) {
  const double v = 2.0 / (9.0 * freedom);
  return freedom * std::pow(1.0 - v + 4.7534 * std::sqrt(v), 3.0);
}

double chi_square(const std::vector<int>& counts) {  // all equally likely
  double n = 0.0;
  for (const int c : counts) n += c;
  const double due = n / static_cast<double>(counts.size());
  double sum = 0.0;
  for (const int c : counts) sum += (c - due) * (c - due) / due;
  return sum;
}

// Each test's false alarm is about 1e-6.
TEST(RoundedNormals, AreNormal) {
  constexpr std::int64_t kNumbers = 1 << 20;
  constexpr double n = kNumbers;
  for (const Generator g : kEveryGenerator) {
    const double s = 0x1.3p17;
    std::vector<std::int64_t> k(kNumbers);
    cpu_kernels(best_simd_level()).rounded_normals({normal_stream(g), s, 0, kNumbers, k.data()});
    std::vector<double> z(kNumbers);
    for (std::size_t i = 0; i < z.size(); ++i) z[i] = static_cast<double>(k[i]) / s;
    expect_normal(z, 1.0);

    double fourth = 0.0;
    for (const double x : z) fourth += x * x * x * x;
    EXPECT_TRUE(std::fabs(fourth / n - 3.0) <= 5.2 * std::sqrt(96.0 / n)) << fourth / n;

    std::vector<int> low_bits(256);
    for (const std::int64_t x : k) ++low_bits[x & 255];
    EXPECT_TRUE(chi_square(low_bits) <= chi_square_limit(255));

    const auto normal_cdf = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); };
    std::vector<int> table(64);  // eighths of both numbers of a pair
    double product = 0.0;
    double product_of_squares = 0.0;
    for (std::int64_t pair = 0; pair < kNumbers / 2; ++pair) {
      const double x = z[even_number_of(pair)];
      const double y = z[even_number_of(pair) + 16];
      const auto eighth = [&](double v) {
        return std::min(7, static_cast<int>(8 * normal_cdf(v)));
      };
      ++table[8 * eighth(x) + eighth(y)];
      product += x * y;
      product_of_squares += (x * x - 1) * (y * y - 1);
    }
    EXPECT_TRUE(chi_square(table) <= chi_square_limit(63));
    EXPECT_TRUE(std::fabs(product) <= 4.9 * std::sqrt(n / 2));
    EXPECT_TRUE(std::fabs(product_of_squares) <= 5.2 * std::sqrt(4 * n / 2));

    std::sort(z.begin(), z.end());
    double distance = 0.0;
    for (std::size_t i = 0; i < z.size(); ++i) {
      const double p = normal_cdf(z[i]);
      const auto at = static_cast<double>(i);
      distance = std::max({distance, p - at / n, (at + 1) / n - p});
    }
    EXPECT_TRUE(distance * std::sqrt(n) <= std::sqrt(-std::log(0.5e-6) / 2));
  }
}

#endif  // CUDP_TEST_ON_GPU

TEST(RoundedNormals, RefuseWhatIsOutOfRange) {
  std::int64_t out = 0;
  const auto with = [&](auto change) {
    RoundedNormals a{normal_stream(Generator::chacha20), 0x1p16, 0, 1, &out};
    change(a);
    return a;
  };
  using Args = RoundedNormals;
  EXPECT_NO_THROW(validate(with([](Args&) {})));
  EXPECT_NO_THROW(validate(with([](Args& a) { a.s = 0x1p40; })));
  EXPECT_NO_THROW(validate(with([](Args& a) { a.end = std::int64_t{1} << 33; })));
  EXPECT_NO_THROW(validate(with([](Args& a) { a.begin = a.end = 128, a.out = nullptr; })));
  for (const double s : {0.0, -0x1p20, std::nextafter(0x1p16, 0.0), std::nextafter(0x1p40, 0x1p41),
                         static_cast<double>(INFINITY), static_cast<double>(NAN)})
    EXPECT_THROW(validate(with([&](Args& a) { a.s = s; })), std::invalid_argument) << s;
  EXPECT_THROW(validate(with([](Args& a) { a.begin = -128; })), std::invalid_argument);
  EXPECT_THROW(validate(with([](Args& a) { a.begin = 64, a.end = 128; })), std::invalid_argument);
  EXPECT_THROW(validate(with([](Args& a) { a.begin = 128, a.end = 127; })), std::invalid_argument);
  EXPECT_THROW(validate(with([](Args& a) { a.end = (std::int64_t{1} << 33) + 1; })),
               std::invalid_argument);
  EXPECT_THROW(validate(with([](Args& a) { a.out = nullptr; })), std::invalid_argument);
  EXPECT_THROW(validate(with([](Args& a) { a.stream.stream = static_cast<Stream>(256); })),
               std::invalid_argument);
  EXPECT_THROW(validate(with([](Args& a) {
                 a.stream.generator = Generator::philox, a.stream.step = std::uint64_t{1} << 32;
               })),
               std::invalid_argument);
}

}  // namespace
}  // namespace cudp
