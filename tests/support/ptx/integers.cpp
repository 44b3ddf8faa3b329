// Integer arithmetic, bits, moves. Overflow wraps; what PTX says of the odd cases stands beside
// them.
#include <limits>

#include "tests/support/ptx/operations.hpp"

namespace cudp::ptx {

namespace {

// u16 and u8 would be multiplied as int, which overflows.
template <class T>
using Unsigned = std::conditional_t<sizeof(T) == 8, u64, u32>;
template <class T>
using Twice = std::conditional_t<
    sizeof(T) == 8, std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>,
    std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, i64, u64>,
                       std::conditional_t<std::is_signed_v<T>, i32, u32>>>;

struct Add {
  template <class T>
  static T f(T a, T b) {
    return static_cast<T>(Unsigned<T>(a) + Unsigned<T>(b));
  }
};
struct Sub {
  template <class T>
  static T f(T a, T b) {
    return static_cast<T>(Unsigned<T>(a) - Unsigned<T>(b));
  }
};
struct MulLow {
  template <class T>
  static T f(T a, T b) {
    return static_cast<T>(Unsigned<T>(a) * Unsigned<T>(b));
  }
};
struct MulHigh {
  template <class T>
  static T f(T a, T b) {
    return static_cast<T>((Twice<T>(a) * Twice<T>(b)) >> (8 * sizeof(T)));
  }
};
struct Min {
  template <class T>
  static T f(T a, T b) {
    return b < a ? b : a;
  }
};
struct Max {
  template <class T>
  static T f(T a, T b) {
    return a < b ? b : a;
  }
};
struct And {
  template <class T>
  static T f(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <class T>
  static T f(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <class T>
  static T f(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};
struct Not {
  template <class T>
  static T f(T a) {
    return static_cast<T>(~a);
  }
};
struct Negate {
  template <class T>
  static T f(T a) {
    return static_cast<T>(Unsigned<T>(0) - Unsigned<T>(a));
  }
};
struct Same {
  template <class T>
  static T f(T a) {
    return a;
  }
};
struct ReverseBits {
  template <class T>
  static T f(T a) {
    a = (a >> 1 & 0x55555555u) | (a & 0x55555555u) << 1;
    a = (a >> 2 & 0x33333333u) | (a & 0x33333333u) << 2;
    a = (a >> 4 & 0x0f0f0f0fu) | (a & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(a);
  }
};
struct CountBits {
  template <class T>
  static T f(T a) {
    return static_cast<T>(__builtin_popcount(a));
  }
};
/// How far the highest one is to be shifted to stand in the highest place; ~0 where there is none.
struct HighestBitShift {
  template <class T>
  static T f(T a) {
    return a == 0 ? ~T{0} : static_cast<T>(__builtin_clz(a));
  }
};

template <class T>
void multiply_wide(Warp& w, const Instruction& i, u32 lanes) {
  const u8 *const a = w.row(i.s[0]), *const b = w.row(i.s[1]);
  u8* const d = w.result(i.d[0]);
  for_lanes(lanes, [&](u32 l) {
    set<Twice<T>>(d, l, static_cast<Twice<T>>(Twice<T>(get<T>(a, l)) * Twice<T>(get<T>(b, l))));
  });
}

template <class T>
void multiply_add(Warp& w, const Instruction& i, u32 lanes) {
  const u8 *const a = w.row(i.s[0]), *const b = w.row(i.s[1]), *const c = w.row(i.s[2]);
  u8* const d = w.result(i.d[0]);
  for_lanes(lanes, [&](u32 l) {
    set<T>(d, l, Add::f<T>(MulLow::f<T>(get<T>(a, l), get<T>(b, l)), get<T>(c, l)));
  });
}

template <class T, bool remainder>
void divide(Warp& w, const Instruction& i, u32 lanes) {
  const u8 *const a = w.row(i.s[0]), *const b = w.row(i.s[1]);
  u8* const d = w.result(i.d[0]);
  for (; lanes != 0; lanes &= lanes - 1) {
    const auto l = static_cast<u32>(__builtin_ctz(lanes));
    const T x = get<T>(a, l), y = get<T>(b, l);
    if (y == 0) fault(w, l, "division by zero");
    if constexpr (std::is_signed_v<T>) {
      if (y == -1) {  // the smallest number has no counterpart
        if (!remainder && x == std::numeric_limits<T>::min()) note(w, "a quotient that overflows");
        set<T>(d, l, remainder ? T{0} : Negate::f<T>(x));
        continue;
      }
    }
    set<T>(d, l, static_cast<T>(remainder ? x % y : x / y));
  }
}

/// Amounts beyond the width shift all bits out.
template <class T, bool left>
[[gnu::always_inline]] inline T shifted(T a, u32 amount) {
  constexpr u32 bits = 8 * sizeof(T);
  if constexpr (left) return amount < bits ? static_cast<T>(a << amount) : T{0};
  if constexpr (std::is_signed_v<T>)
    return static_cast<T>(a >> (amount < bits ? amount : bits - 1));
  return amount < bits ? static_cast<T>(a >> amount) : T{0};
}
template <class T, bool left>
void shift(Warp& w, const Instruction& i, u32 lanes) {
  const u8 *const a = w.row(i.s[0]), *const b = w.row(i.s[1]);
  u8* const d = w.result(i.d[0]);
  if (i.s[1].is_constant()) {  // one shift for all lanes, which vectors have
    const u32 amount = get<u32>(b, 0);
    for_lanes(lanes, [&](u32 l) { set<T>(d, l, shifted<T, left>(get<T>(a, l), amount)); });
  } else {
    for_lanes(lanes, [&](u32 l) { set<T>(d, l, shifted<T, left>(get<T>(a, l), get<u32>(b, l))); });
  }
}

/// (b, a) shifted by c modulo 32: left, of which this is the upper half, or right, and the lower.
template <bool left>
void funnel(Warp& w, const Instruction& i, u32 lanes) {
  const u8 *const a = w.row(i.s[0]), *const b = w.row(i.s[1]), *const c = w.row(i.s[2]);
  u8* const d = w.result(i.d[0]);
  const auto of = [&](u32 l, u32 amount) {
    const u64 both = u64{get<u32>(b, l)} << 32 | get<u32>(a, l);
    return static_cast<u32>(left ? (both << (amount & 31)) >> 32 : both >> (amount & 31));
  };
  if (i.s[2].is_constant()) {
    const u32 amount = get<u32>(c, 0);
    for_lanes(lanes, [&](u32 l) { set<u32>(d, l, of(l, amount)); });
  } else {
    for_lanes(lanes, [&](u32 l) { set<u32>(d, l, of(l, get<u32>(c, l))); });
  }
}

/// Four of the eight bytes of (b, a): c has four bits for each, its number and, above, whether its
/// sign is meant, in all eight bits.
void permute(Warp& w, const Instruction& i, u32 lanes) {
  const u8 *const a = w.row(i.s[0]), *const b = w.row(i.s[1]), *const c = w.row(i.s[2]);
  u8* const d = w.result(i.d[0]);
  for_lanes(lanes, [&](u32 l) {
    const u64 both = u64{get<u32>(b, l)} << 32 | get<u32>(a, l);
    const u32 chosen = get<u32>(c, l);
    u32 result = 0;
    for (u32 k = 0; k < 4; ++k) {
      const u32 nibble = chosen >> 4 * k & 15;
      const u32 byte = static_cast<u32>(both >> 8 * (nibble & 7)) & 255;
      result |= (nibble < 8 ? byte : byte < 128 ? 0 : 255) << 8 * k;
    }
    set<u32>(d, l, result);
  });
}

/// b with the lowest bits of a from a position on; position and length are c and e modulo 256.
template <class T>
void insert_bits(Warp& w, const Instruction& i, u32 lanes) {
  const u8 *const a = w.row(i.s[0]), *const b = w.row(i.s[1]);
  const u8 *const c = w.row(i.s[2]), *const e = w.row(i.s[3]);
  u8* const d = w.result(i.d[0]);
  for_lanes(lanes, [&](u32 l) {
    const u32 position = get<u32>(c, l) & 255, length = get<u32>(e, l) & 255;
    const T ones = static_cast<T>(~shifted<T, true>(static_cast<T>(~T{0}), length));
    const T mask = shifted<T, true>(ones, position);
    const T bits = shifted<T, true>(get<T>(a, l), position);
    set<T>(d, l, static_cast<T>((get<T>(b, l) & ~mask) | (bits & mask)));
  });
}

/// The bits of a from a position on, as the lowest ones of a number; position and length are b and
/// c modulo 256.
template <class T>
void extract_bits(Warp& w, const Instruction& i, u32 lanes) {
  const u8 *const a = w.row(i.s[0]), *const b = w.row(i.s[1]), *const c = w.row(i.s[2]);
  u8* const d = w.result(i.d[0]);
  for_lanes(lanes, [&](u32 l) {
    const u32 position = get<u32>(b, l) & 255, length = get<u32>(c, l) & 255;
    const T beyond = shifted<T, true>(static_cast<T>(~T{0}), length);
    set<T>(d, l, static_cast<T>(shifted<T, false>(get<T>(a, l), position) & ~beyond));
  });
}

template <class T>
void select(Warp& w, const Instruction& i, u32 lanes) {
  static constexpr auto bit = [] {
    std::array<Unsigned<T>, kLanes> bits{};
    for (u32 l = 0; l < kLanes; ++l) bits[l] = Unsigned<T>{1} << l;
    return bits;
  }();
  const u8 *const a = w.row(i.s[0]), *const b = w.row(i.s[1]);
  u8* const d = w.result(i.d[0]);
  const Unsigned<T> p = w.predicates[i.s[2].id];
  for_lanes(lanes, [&](u32 l) { set<T>(d, l, (p & bit[l]) != 0 ? get<T>(a, l) : get<T>(b, l)); });
}

/// A register as several shorter ones, the lowest bits first.
template <class T, class Part>
void split(Warp& w, const Instruction& i, u32 lanes) {
  const u8* const a = w.row(i.s[0]);
  for (u32 k = 0; k < sizeof(T) / sizeof(Part); ++k) {
    u8* const d = w.result(i.d[k]);
    for_lanes(lanes, [&](u32 l) {
      set<Part>(d, l, static_cast<Part>(get<T>(a, l) >> (8 * sizeof(Part) * k)));
    });
  }
}
template <class T, class Part>
void join(Warp& w, const Instruction& i, u32 lanes) {
  constexpr u32 parts = sizeof(T) / sizeof(Part);
  std::array<const u8*, parts> s;
  for (u32 k = 0; k < parts; ++k) s[k] = w.row(i.s[k]);
  u8* const d = w.result(i.d[0]);
  for_lanes(lanes, [&](u32 l) {
    T value = 0;
    for (u32 k = 0; k < parts; ++k)
      value = static_cast<T>(value | T{get<Part>(s[k], l)} << (8 * sizeof(Part) * k));
    set<T>(d, l, value);
  });
}

template <class T>
void add_integer(Table& t, const std::string& type) {
  using U = std::make_unsigned_t<T>;
  add_plain<T>(t, "add." + type, binary<U, Add>, 2);
  add_plain<T>(t, "sub." + type, binary<U, Sub>, 2);
  add_plain<T>(t, "mul.lo." + type, binary<U, MulLow>, 2);
  add_plain<T>(t, "mul.hi." + type, binary<T, MulHigh>, 2);
  add_plain<T>(t, "mad.lo." + type, multiply_add<U>, 3);
  add_plain<T>(t, "div." + type, divide<T, false>, 2);
  add_plain<T>(t, "rem." + type, divide<T, true>, 2);
  add_plain<T>(t, "min." + type, binary<T, Min>, 2);
  add_plain<T>(t, "max." + type, binary<T, Max>, 2);
  if constexpr (std::is_signed_v<T>) add_plain<T>(t, "neg." + type, unary<T, Negate>, 1);
  if constexpr (sizeof(T) < 8) {
    const char a = kLetter<T>;
    t["mul.wide." + type] = {multiply_wide<T>, Syntax::plain, {kLetter<Twice<T>>, ':', a, a}};
  }
  t["shr." + type] = {shift<T, false>, Syntax::plain, {kLetter<T>, ':', kLetter<T>, '4'}};
}

template <class T>
void add_bits(Table& t, const std::string& type) {
  add_plain<T>(t, "and." + type, binary<T, And>, 2);
  add_plain<T>(t, "or." + type, binary<T, Or>, 2);
  add_plain<T>(t, "xor." + type, binary<T, Xor>, 2);
  add_plain<T>(t, "not." + type, unary<T, Not>, 1);
  t["shl." + type] = {shift<T, true>, Syntax::plain, {kLetter<T>, ':', kLetter<T>, '4'}};
}

template <class T>
void add_moves(Table& t, const std::string& type) {
  add_plain<T>(t, "mov." + type, unary<T, Same>, 1);
  t["selp." + type] = {select<T>, Syntax::plain, {kLetter<T>, ':', kLetter<T>, kLetter<T>, 'p'}};
}

}  // namespace

void add_integers(Table& t) {
  add_integer<i16>(t, "s16");
  add_integer<u16>(t, "u16");
  add_integer<i32>(t, "s32");
  add_integer<u32>(t, "u32");
  add_integer<i64>(t, "s64");
  add_integer<u64>(t, "u64");
  add_bits<u16>(t, "b16");
  add_bits<u32>(t, "b32");
  add_bits<u64>(t, "b64");
  for (const char* type : {"u16", "s16", "b16"}) add_moves<u16>(t, type);
  for (const char* type : {"u32", "s32", "b32", "f32"}) add_moves<u32>(t, type);
  for (const char* type : {"u64", "s64", "b64", "f64"}) add_moves<u64>(t, type);
  t["mov.b64 {2}"] = {split<u64, u32>, Syntax::plain, "44:8"};
  t["mov.b64 {4}"] = {split<u64, u16>, Syntax::plain, "2222:8"};
  t["mov.b32 {2}"] = {split<u32, u16>, Syntax::plain, "22:4"};
  t["mov.b64 ={2}"] = {join<u64, u32>, Syntax::plain, "8:44"};
  t["mov.b64 ={4}"] = {join<u64, u16>, Syntax::plain, "8:2222"};
  t["mov.b32 ={2}"] = {join<u32, u16>, Syntax::plain, "4:22"};
  t["shf.l.wrap.b32"] = {funnel<true>, Syntax::plain, "4:444"};
  t["shf.r.wrap.b32"] = {funnel<false>, Syntax::plain, "4:444"};
  add_plain<u32>(t, "prmt.b32", permute, 3);
  t["bfe.u32"] = {extract_bits<u32>, Syntax::plain, "4:444"};
  t["bfi.b32"] = {insert_bits<u32>, Syntax::plain, "4:4444"};
  t["bfi.b64"] = {insert_bits<u64>, Syntax::plain, "8:8844"};
  add_plain<u32>(t, "brev.b32", unary<u32, ReverseBits>, 1);
  add_plain<u32>(t, "popc.b32", unary<u32, CountBits>, 1);
  add_plain<u32>(t, "bfind.shiftamt.u32", unary<u32, HighestBitShift>, 1);
}

}  // namespace cudp::ptx
