#include "privacy/verify/rounded_normal.hpp"

#include <cfloat>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <optional>
#include <stdexcept>

#include <boost/math/constants/constants.hpp>
#include <boost/multiprecision/cpp_bin_float.hpp>

namespace cudp::verify {
namespace {

namespace mp = boost::multiprecision;

static_assert(LDBL_MANT_DIG >= 64, "the bounds below are for at least 64 bits");

/// Returns the integer nearest to s r c, for standard deviation s, Box-Muller radius r in [r_low,
/// r_high] and cosine or sine c; nullopt if rounding errors leave two possible integers.
///
/// Error bounds in long double, with e = 2^-63, one unit in the last place of 1. A rounding has a
/// relative error of at most e / 2. logl, cosl and sinl have at most 2 units in the last place
/// (glibc's manual states 1), so 2 e relative; sqrtl has one rounding. u and t are the uniforms U1
/// and U2 from their first 64 bits, L = -2 ln U1 = r^2, and x the result before rounding. Their
/// errors are at most the sum of:
///   u, t  2^-65, because half a unit replaces the bits after the first 64; one rounding, 2^-64
///   L     2 d / (u - d) with d = 2^-63 >= |u - U1|, the effect of u's error; 4 e L
///   c     2 pi 2^-63, the effect of t's error on cos 2 pi U2; two roundings of 2 pi t, each less
///         than 2^-61; 2 e for the cosine; together less than 2^-58
///   x     4 e relative for r and the two products of s r c; 2^-18 for x + 1/2, which is < 2^46
/// All bounds in the code are at least twice these sums.
std::optional<std::int64_t> nearest(long double s, long double r_low, long double r_high,
                                    long double c) {
  constexpr long double kCircle = 0x1p-58L;
  constexpr long double kWide = 1.0L + 0x1p-60L;
  const long double low = c - kCircle;
  const long double high = c + kCircle;
  // Each end uses the radius that makes the interval longer.
  const long double x_low = s * low * (low < 0 ? r_high * kWide : r_low / kWide) - 0x1p-17L;
  const long double x_high = s * high * (high < 0 ? r_low / kWide : r_high * kWide) + 0x1p-17L;
  const long double k = std::floor(x_low + 0.5L);
  if (!(k == std::floor(x_high + 0.5L))) return std::nullopt;
  return static_cast<std::int64_t>(k);
}

long double fraction(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t bits = std::uint64_t{high} << 32 | low;
  return std::ldexp(static_cast<long double>(bits) + 0.5L, -64);
}

std::optional<NormalPair> quickly(const std::array<std::uint32_t, 4>& words, double s) {
  const long double u = fraction(words[0], words[1]);
  const long double t = fraction(words[2], words[3]);
  constexpr long double d = 0x1p-63L;
  if (!(u > 4 * d)) return std::nullopt;
  const long double l = -2.0L * std::log(u);
  const long double off = 2.0L * d / (u - d) + 0x1p-60L * l;
  const long double r_high = std::sqrt(l + off);
  const long double r_low = l > off ? std::sqrt(l - off) : 0.0L;
  const long double angle = 2.0L * std::numbers::pi_v<long double> * t;
  const auto wide_s = static_cast<long double>(s);
  const auto cosine = nearest(wide_s, r_low, r_high, std::cos(angle));
  const auto sine = nearest(wide_s, r_low, r_high, std::sin(angle));
  if (!cosine || !sine) return std::nullopt;
  return NormalPair{*cosine, *sine};
}

/// Computes a pair of rounded normals in multiple precision, if the first 64 + 256 kRounds bits of
/// U1 and U2 suffice. u_ and t_ are U1 and U2 with all later bits 0; so U1 is in [u_, u_ + width()]
/// and U2 in [t_, t_ + width()]. Boost's functions have no proven error bound; margin() allows
/// 2^100 units in the last place.
template <int kRounds>
class KnownWords {
 public:
  KnownWords(const std::vector<std::uint32_t>& of_u, const std::vector<std::uint32_t>& of_t)
      : u_(join(of_u)), t_(join(of_t)) {}

  std::optional<NormalPair> pair(double s) const {
    if (u_ == 0) return std::nullopt;
    Real upper = u_ + width();
    if (upper > 1) upper = 1;
    const Real l_high = -2 * log(u_) + margin();
    Real l_low = -2 * log(upper) - margin();
    if (l_low < 0) l_low = 0;
    const Real r_high = sqrt(l_high) + margin();
    Real r_low = sqrt(l_low) - margin();
    if (r_low < 0) r_low = 0;
    const Real angle = 2 * boost::math::constants::pi<Real>() * t_;
    const auto cosine = nearest(s, r_low, r_high, Real(cos(angle)));
    const auto sine = nearest(s, r_low, r_high, Real(sin(angle)));
    if (!cosine || !sine) return std::nullopt;
    return NormalPair{*cosine, *sine};
  }

 private:
  static constexpr int kBits = 64 + 256 * kRounds;
  using Real =
      mp::number<mp::cpp_bin_float<kBits + 192, mp::digit_base_2, void, std::int64_t>, mp::et_off>;

  static Real join(const std::vector<std::uint32_t>& digits) {
    Real x = 0;
    for (std::size_t i = digits.size(); i-- > 0;) x = ldexp(x + digits[i], -32);
    return x;
  }
  static Real width() { return ldexp(Real(1), -kBits); }
  static Real margin() { return ldexp(Real(1), -kBits - 60); }

  static std::optional<std::int64_t> nearest(double s, const Real& r_low, const Real& r_high,
                                             const Real& c) {
    const Real swing = 7 * width() + margin();  // |d/dt cos 2 pi t| <= 2 pi < 7
    const Real low = c - swing;
    const Real high = c + swing;
    const Real off = ldexp(Real(1), -kBits - 40);
    const Real x_low = s * low * (low < 0 ? r_high : r_low) - off;
    const Real x_high = s * high * (high < 0 ? r_low : r_high) + off;
    const Real k = floor(x_low + 0.5);
    if (k != floor(x_high + 0.5)) return std::nullopt;
    return k.template convert_to<std::int64_t>();
  }

  Real u_, t_;
};

}  // namespace

NormalPair rounded_normal_pair_slowly(const std::array<std::uint32_t, 4>& words, double s,
                                      const MoreBits& more) {
  std::vector<std::uint32_t> u = {words[0], words[1]};
  std::vector<std::uint32_t> t = {words[2], words[3]};
  std::uint32_t known = 0;
  const auto attempt = [&]<int kRounds>() {
    while (known < kRounds) {
      const auto digits = more(++known);
      u.insert(u.end(), digits.begin(), digits.begin() + 8);
      t.insert(t.end(), digits.begin() + 8, digits.end());
    }
    return KnownWords<kRounds>(u, t).pair(s);
  };
  if (const auto pair = attempt.operator()<0>()) return *pair;
  if (const auto pair = attempt.operator()<1>()) return *pair;
  if (const auto pair = attempt.operator()<3>()) return *pair;
  throw std::runtime_error("rounded normals: 832 bits leave a pair undecided");
}

NormalPair rounded_normal_pair(const std::array<std::uint32_t, 4>& words, double s,
                               const MoreBits& more) {
  if (const auto pair = quickly(words, s)) return *pair;
  return rounded_normal_pair_slowly(words, s, more);
}

std::vector<std::int64_t> rounded_normals(const RandomWords& words, double s, std::uint64_t count) {
  const std::uint64_t tiles = (count + 127) / 128;
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(128 * tiles));
  for (std::uint64_t tile = 0; tile < tiles; ++tile)
    for (std::uint64_t lane = 0; lane < 16; ++lane) {
      const auto rows = words.block(static_cast<std::uint32_t>(16 * tile + lane));
      for (std::uint64_t p = 0; p < 4; ++p) {
        const std::uint64_t cosine = 128 * tile + 32 * p + lane;
        if (cosine >= count) continue;
        const auto number = static_cast<std::uint32_t>(64 * tile + 16 * p + lane);
        const NormalPair pair =
            rounded_normal_pair({rows[4 * p], rows[4 * p + 1], rows[4 * p + 2], rows[4 * p + 3]}, s,
                                [&](std::uint32_t round) { return words.block(number, round); });
        numbers[cosine] = pair.cosine;
        numbers[cosine + 16] = pair.sine;
      }
    }
  numbers.resize(static_cast<std::size_t>(count));
  return numbers;
}

}  // namespace cudp::verify
