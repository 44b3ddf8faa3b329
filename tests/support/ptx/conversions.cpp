// cvt. A register may be wider than the type that it is read or written as.
#include <cmath>
#include <limits>

#include "tests/support/ptx/half.hpp"
#include "tests/support/ptx/operations.hpp"

namespace cudp::ptx {

namespace {

/// To a whole number: to nearest (ties to even), towards zero, down, up.
enum class Rounding { none, rni, rzi, rmi, rpi };

template <class T>
T whole(T value, Rounding rounding) {
  switch (rounding) {
    case Rounding::none:
      break;
    case Rounding::rni:
      return std::nearbyint(value);
    case Rounding::rzi:
      return std::trunc(value);
    case Rounding::rmi:
      return std::floor(value);
    case Rounding::rpi:
      return std::ceil(value);
  }
  return value;
}

/// A whole number as an integer: clamped to its range. NaN becomes 0, or, where either type has 64
/// bits, the integer whose highest bit alone is set.
template <class To, class From>
To integer(From value) {
  using Limits = std::numeric_limits<To>;
  if (value != value) {
    constexpr bool zero = sizeof(From) < 8 && sizeof(To) < 8;
    return zero ? To{0} : static_cast<To>(u64{1} << (8 * sizeof(To) - 1));
  }
  if (value < static_cast<From>(Limits::min())) return Limits::min();
  if (value >= std::ldexp(From{1}, Limits::digits)) return Limits::max();
  return static_cast<To>(value);
}

template <class To, class From, Rounding rounding>
[[gnu::always_inline]] inline To converted(From value) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return integer<To>(whole(value, rounding));
  } else if constexpr (std::is_floating_point_v<From>) {
    const To result = static_cast<To>(whole(value, rounding));
    if constexpr (sizeof(To) == 4) return result != result ? __builtin_nanf("0x3fffff") : result;
    return result;
  } else {
    return static_cast<To>(value);
  }
}

template <class To, class From, Rounding rounding>
void convert(Warp& w, const Instruction& i, u32 lanes) {
  const u8* const a = w.row(i.s[0]);
  u8* const d = w.result(i.d[0]);
  const auto run = [&](auto from_eight, auto to_eight) {
    for_lanes(lanes, [&](u32 l) {
      set_wide<To>(d, to_eight ? 8 : 4, l,
                   converted<To, From, rounding>(get_narrow<From>(a, from_eight ? 8 : 4, l)));
    });
  };
  const auto with_from = [&](auto from_eight) {
    if constexpr (kWideLetter<To> < 'a')
      run(from_eight, std::bool_constant<sizeof(To) == 8>{});
    else if (i.d[0].width == 8)
      run(from_eight, std::true_type{});
    else
      run(from_eight, std::false_type{});
  };
  if constexpr (kWideLetter<From> < 'a')
    with_from(std::bool_constant<sizeof(From) == 8>{});
  else if (i.s[0].width == 8)
    with_from(std::true_type{});
  else
    with_from(std::false_type{});
}

/// To a mantissa of 10 bits: to nearest, ties away from zero.
void to_tf32(Warp& w, const Instruction& i, u32 lanes) {
  const u8* const a = w.row(i.s[0]);
  u8* const d = w.result(i.d[0]);
  for_lanes(lanes, [&](u32 l) {
    const u32 bits = get<u32>(a, l), magnitude = bits & 0x7fffffffu;
    const u32 rounded = magnitude >= 0x7f800000u ? bits : (bits + 0x1000u) & ~0x1fffu;
    set<u32>(d, l, magnitude > 0x7f800000u ? 0x7fffffffu : rounded);
  });
}

/// Two numbers to fp16, the first in the high half.
void to_halves(Warp& w, const Instruction& i, u32 lanes) {
  const u8 *const a = w.row(i.s[0]), *const b = w.row(i.s[1]);
  u8* const d = w.result(i.d[0]);
  for_lanes(lanes, [&](u32 l) {
    set<u32>(d, l, u32{half_bits(get<float>(a, l))} << 16 | half_bits(get<float>(b, l)));
  });
}
void to_half(Warp& w, const Instruction& i, u32 lanes) {
  const u8* const a = w.row(i.s[0]);
  u8* const d = w.result(i.d[0]);
  for_lanes(lanes, [&](u32 l) { set<u16>(d, l, half_bits(get<float>(a, l))); });
}
void from_half(Warp& w, const Instruction& i, u32 lanes) {
  const u8* const a = w.row(i.s[0]);
  u8* const d = w.result(i.d[0]);
  for_lanes(lanes, [&](u32 l) { set<float>(d, l, half_value(get<u16>(a, l))); });
}

template <class To, class From>
void add_pair(Table& t, const std::string& to, const std::string& from) {
  const auto add = [&](const std::string& rounding, Action run) {
    t["cvt." + rounding + to + "." + from] = {
        run, Syntax::plain, {kWideLetter<To>, ':', kWideLetter<From>}};
  };
  constexpr bool to_float = std::is_floating_point_v<To>,
                 from_float = std::is_floating_point_v<From>;
  if constexpr (!to_float && !from_float) {
    add("", convert<To, From, Rounding::none>);
  } else if constexpr (!from_float) {
    add("rn.", convert<To, From, Rounding::none>);
  } else if constexpr (to_float && sizeof(To) != sizeof(From)) {
    add(sizeof(To) > sizeof(From) ? "" : "rn.", convert<To, From, Rounding::none>);
  } else if constexpr (sizeof(To) >= 4) {
    add("rni.", convert<To, From, Rounding::rni>);
    add("rzi.", convert<To, From, Rounding::rzi>);
    add("rmi.", convert<To, From, Rounding::rmi>);
    add("rpi.", convert<To, From, Rounding::rpi>);
  }
}

template <class To>
void add_all(Table& t, const std::string& to) {
  add_pair<To, i8>(t, to, "s8");
  add_pair<To, u8>(t, to, "u8");
  add_pair<To, i16>(t, to, "s16");
  add_pair<To, u16>(t, to, "u16");
  add_pair<To, i32>(t, to, "s32");
  add_pair<To, u32>(t, to, "u32");
  add_pair<To, i64>(t, to, "s64");
  add_pair<To, u64>(t, to, "u64");
  add_pair<To, float>(t, to, "f32");
  add_pair<To, double>(t, to, "f64");
}

}  // namespace

void add_conversions(Table& t) {
  add_all<i8>(t, "s8");
  add_all<u8>(t, "u8");
  add_all<i16>(t, "s16");
  add_all<u16>(t, "u16");
  add_all<i32>(t, "s32");
  add_all<u32>(t, "u32");
  add_all<i64>(t, "s64");
  add_all<u64>(t, "u64");
  add_all<float>(t, "f32");
  add_all<double>(t, "f64");
  t["cvt.rna.tf32.f32"] = {to_tf32, Syntax::plain, "4:4"};
  t["cvt.rn.f16x2.f32"] = {to_halves, Syntax::plain, "4:44"};
  t["cvt.rn.f16.f32"] = {to_half, Syntax::plain, "2:4"};
  t["cvt.f32.f16"] = {from_half, Syntax::plain, "4:2"};
}

}  // namespace cudp::ptx
