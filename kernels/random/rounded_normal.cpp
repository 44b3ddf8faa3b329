#include "kernels/random/rounded_normal.hpp"

#include <cmath>
#include <stdexcept>
#include <string>

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <boost/multiprecision/cpp_int.hpp>

#include "kernels/random/random_block.hpp"

namespace cudp {

namespace {

namespace mp = boost::multiprecision;

/// Tries to compute a pair of rounded normals from the first 64 + 256 kRounds bits of each of U1
/// and U2, the two uniform numbers of the pair. digits: their 32-bit words, [2, 2 + 8 kRounds]. s:
/// standard deviation. If these bits decide what both normals round to, returns true and writes the
/// pair to *out.
///
/// Every quantity is an interval that contains the true value, whatever the later bits are. The
/// functions of cpp_bin_float have no proven bound. The worst error observed of log, sin, cos and
/// sqrt is 2^6 units of their last place (for 128 to 1984 bits, including the ends of their
/// ranges). Each result is widened by 2^-(bits + 40): 2^76 units of the last place or more, because
/// no result here reaches 2^11. A product s r c, with r the radius and c the cosine or sine, rounds
/// by less than 2^-(bits + 76).
template <int kRounds>
bool decide(const std::uint32_t* digits, double s, RoundedPair* out) {
  constexpr int kWords = 2 + 8 * kRounds;
  constexpr int kBits = 32 * kWords;
  using Real =
      mp::number<mp::cpp_bin_float<kBits + 128, mp::digit_base_2, void, std::int64_t>, mp::et_off>;
  const Real margin = ldexp(Real(1), -(kBits + 40));
  const Real width = ldexp(Real(1), -kBits);
  Real u[2];  // U is in [u, u + width]
  for (int i = 0; i < 2; ++i) {
    u[i] = 0;
    for (int j = kWords; j-- > 0;) u[i] = ldexp(u[i] + digits[i * kWords + j], -32);
  }
  if (u[0] == 0) return false;

  // -2 ln U1 falls with U1, and ln(1 + width / u) <= width / u.
  const Real max_square = -2 * log(u[0]);
  const Real min_square = max_square - 2 * width / u[0] - margin;
  const Real radius_high = sqrt(max_square + margin) + margin;
  Real radius_low = 0;
  if (min_square > margin) radius_low = sqrt(min_square) - margin;

  const Real angle = 2 * boost::math::constants::pi<Real>() * u[1];
  const Real swing = 7 * width + margin;  // 2 pi < 7
  const Real circle[2] = {cos(angle), sin(angle)};
  std::int64_t k[2];
  for (int i = 0; i < 2; ++i) {
    const Real low = circle[i] - swing;
    const Real high = circle[i] + swing;
    const Real x_low = s * low * (low < 0 ? radius_high : radius_low) - margin;
    const Real x_high = s * high * (high < 0 ? radius_low : radius_high) + margin;
    const Real nearest = floor(x_low + 0.5);
    if (nearest != floor(x_high + 0.5)) return false;
    k[i] = nearest.template convert_to<std::int64_t>();
  }
  *out = {k[0], k[1]};
  return true;
}

struct PairOfStream {
  const RandomStream& stream;
  std::uint32_t pair;
};

void further_words(const void* source, std::uint32_t round, std::uint32_t* out) {
  const auto& from = *static_cast<const PairOfStream*>(source);
  RandomStream s = from.stream;
  s.stream = static_cast<Stream>(static_cast<std::uint32_t>(s.stream) | round << 8);
  std::uint32_t words[16];
  random_block<ScalarLanes>(s, from.pair, words);
  for (int i = 0; i < 16; ++i) out[i] = words[i];
}

}  // namespace

void validate(const RoundedNormals& a) {
  const auto expected = [](const std::string& what, const std::string& found) {
    throw std::invalid_argument("rounded normals: expected " + what + ", found " + found);
  };
  if (!(a.s >= kMinRoundedNormalS && a.s <= kLargestRoundedNormalS))
    expected("an s in 2^16..2^40", std::to_string(a.s));
  if (a.begin < 0 || a.begin % 128 != 0)
    expected("a begin >= 0 that is a multiple of 128", std::to_string(a.begin));
  if (a.end < a.begin || a.end > std::int64_t{1} << 33)
    expected("an end in " + std::to_string(a.begin) + "..2^33", std::to_string(a.end));
  const auto number = static_cast<std::uint32_t>(a.stream.stream);
  if (number >= 256) expected("a stream number below 256", std::to_string(number));
  if (a.end > a.begin && a.out == nullptr) expected("an array `out`", "none");
  validate(a.stream, 0, 0);
}

RoundedPair exact_rounded_pair(const std::uint32_t* words, double s, const FurtherDigits& further) {
  constexpr int kMaxRounds = 3;  // 64 + 256 * 3 = 832 bits of each uniform number
  std::uint32_t u1[2 + 8 * kMaxRounds] = {words[0], words[1]};
  std::uint32_t u2[2 + 8 * kMaxRounds] = {words[2], words[3]};
  int known = 0;
  const auto attempt = [&]<int kRounds>(RoundedPair* out) {
    for (; known < kRounds; ++known) {
      std::uint32_t more[16];
      further.words(further.source, static_cast<std::uint32_t>(known) + 1, more);
      for (int i = 0; i < 8; ++i) {
        u1[2 + 8 * known + i] = more[i];
        u2[2 + 8 * known + i] = more[8 + i];
      }
    }
    constexpr int kWords = 2 + 8 * kRounds;
    std::uint32_t digits[2 * kWords];
    for (int i = 0; i < kWords; ++i) {
      digits[i] = u1[i];
      digits[kWords + i] = u2[i];
    }
    return decide<kRounds>(digits, s, out);
  };
  RoundedPair pair{};
  if (attempt.operator()<0>(&pair) || attempt.operator()<1>(&pair) ||
      attempt.operator()<kMaxRounds>(&pair))
    return pair;
  throw std::runtime_error(
      "rounded normals: 832 bits leave a pair undecided, so the random generator is broken");
}

RoundedPair exact_rounded_pair(const RandomStream& stream, std::int64_t pair,
                               const std::uint32_t* words, double s) {
  const PairOfStream source{stream, static_cast<std::uint32_t>(pair)};
  return exact_rounded_pair(words, s, {further_words, &source});
}

}  // namespace cudp
