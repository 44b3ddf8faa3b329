// Comparisons and what is done with predicates.
#include "tests/support/ptx/operations.hpp"

namespace cudp::ptx {

namespace {

enum class Compare { eq, ne, lt, le, gt, ge };

/// A bit a lane from a byte a lane, which is 0 or 1.
[[gnu::always_inline]] inline u32 bits_of(const u8 (&bytes)[kLanes]) {
  u32 bits = 0;
  for (u32 k = 0; k < 4; ++k) {
    u64 eight = 0;
    std::memcpy(&eight, bytes + 8 * k, 8);
    bits |= static_cast<u32>((eight * 0x0102040810204080u) >> 56) << (8 * k);
  }
  return bits;
}

void assign(Warp& w, const Operand& predicate, u32 bits, u32 lanes) {
  u32& p = w.predicates[predicate.id];
  p = (p & ~lanes) | (bits & lanes);
}

template <class F>
[[gnu::always_inline]] inline void compare_rows(Warp& w, const Instruction& i, u32 lanes, F&& f) {
  if (lanes == ~0u) {
    u8 bytes[kLanes];
    for (u32 l = 0; l < kLanes; ++l) bytes[l] = f(l) ? 1 : 0;
    w.predicates[i.predicate.id] = bits_of(bytes);
  } else {
    u32 bits = 0;
    for_lanes(lanes, [&](u32 l) { bits |= u32{f(l)} << l; });
    assign(w, i.predicate, bits, lanes);
  }
}

/// With NaN a comparison is false, except that an unordered one (ltu and so on) is true.
template <class T, Compare c, bool unordered>
void compare(Warp& w, const Instruction& i, u32 lanes) {
  const u8 *const a = w.row(i.s[0]), *const b = w.row(i.s[1]);
  compare_rows(w, i, lanes, [&](u32 l) -> bool {
    const T x = get<T>(a, l), y = get<T>(b, l);
    if constexpr (std::is_floating_point_v<T>) {
      const bool nan = x != x || y != y;
      if constexpr (c == Compare::ne) return unordered ? x != y : x != y && !nan;
      if constexpr (c == Compare::eq) return unordered ? x == y || nan : x == y;
      if constexpr (c == Compare::lt) return unordered ? !(x >= y) : x < y;
      if constexpr (c == Compare::le) return unordered ? !(x > y) : x <= y;
      if constexpr (c == Compare::gt) return unordered ? !(x <= y) : x > y;
      return unordered ? !(x < y) : x >= y;
    } else {
      if constexpr (c == Compare::eq) return x == y;
      if constexpr (c == Compare::ne) return x != y;
      if constexpr (c == Compare::lt) return x < y;
      if constexpr (c == Compare::le) return x <= y;
      if constexpr (c == Compare::gt) return x > y;
      return x >= y;
    }
  });
}

template <class T, bool wanted>
void either_is_nan(Warp& w, const Instruction& i, u32 lanes) {
  const u8 *const a = w.row(i.s[0]), *const b = w.row(i.s[1]);
  compare_rows(w, i, lanes, [&](u32 l) -> bool {
    const T x = get<T>(a, l), y = get<T>(b, l);
    return (x != x || y != y) == wanted;
  });
}

/// A constant predicate is true if it is not zero.
u32 value(const Warp& w, const Operand& o) {
  if (o.is_constant()) return get<u32>(w.row(o), 0) != 0 ? ~0u : 0u;
  return w.predicates[o.id];
}
void predicate_and(Warp& w, const Instruction& i, u32 lanes) {
  assign(w, i.predicate, value(w, i.s[0]) & value(w, i.s[1]), lanes);
}
void predicate_or(Warp& w, const Instruction& i, u32 lanes) {
  assign(w, i.predicate, value(w, i.s[0]) | value(w, i.s[1]), lanes);
}
void predicate_xor(Warp& w, const Instruction& i, u32 lanes) {
  assign(w, i.predicate, value(w, i.s[0]) ^ value(w, i.s[1]), lanes);
}
void predicate_not(Warp& w, const Instruction& i, u32 lanes) {
  assign(w, i.predicate, ~value(w, i.s[0]), lanes);
}
void predicate_move(Warp& w, const Instruction& i, u32 lanes) {
  assign(w, i.predicate, value(w, i.s[0]), lanes);
}

template <class T>
void add(Table& t, const std::string& name, Action run) {
  t["setp." + name] = {run, Syntax::plain, {'p', ':', kLetter<T>, kLetter<T>}};
}
template <class T>
void add_equal(Table& t, const std::string& type) {
  add<T>(t, "eq." + type, compare<T, Compare::eq, false>);
  add<T>(t, "ne." + type, compare<T, Compare::ne, false>);
}
template <class T>
void add_ordered(Table& t, const std::string& type) {
  add_equal<T>(t, type);
  add<T>(t, "lt." + type, compare<T, Compare::lt, false>);
  add<T>(t, "le." + type, compare<T, Compare::le, false>);
  add<T>(t, "gt." + type, compare<T, Compare::gt, false>);
  add<T>(t, "ge." + type, compare<T, Compare::ge, false>);
}
template <class T>
void add_unordered(Table& t, const std::string& type) {
  add_ordered<T>(t, type);
  add<T>(t, "equ." + type, compare<T, Compare::eq, true>);
  add<T>(t, "neu." + type, compare<T, Compare::ne, true>);
  add<T>(t, "ltu." + type, compare<T, Compare::lt, true>);
  add<T>(t, "leu." + type, compare<T, Compare::le, true>);
  add<T>(t, "gtu." + type, compare<T, Compare::gt, true>);
  add<T>(t, "geu." + type, compare<T, Compare::ge, true>);
  add<T>(t, "num." + type, either_is_nan<T, false>);
  add<T>(t, "nan." + type, either_is_nan<T, true>);
}

}  // namespace

void add_comparisons(Table& t) {
  add_equal<u16>(t, "b16");
  add_equal<u32>(t, "b32");
  add_equal<u64>(t, "b64");
  add_ordered<i16>(t, "s16");
  add_ordered<u16>(t, "u16");
  add_ordered<i32>(t, "s32");
  add_ordered<u32>(t, "u32");
  add_ordered<i64>(t, "s64");
  add_ordered<u64>(t, "u64");
  add_unordered<float>(t, "f32");
  add_unordered<double>(t, "f64");
  t["and.pred"] = {predicate_and, Syntax::plain, "p:qq"};
  t["or.pred"] = {predicate_or, Syntax::plain, "p:qq"};
  t["xor.pred"] = {predicate_xor, Syntax::plain, "p:qq"};
  t["not.pred"] = {predicate_not, Syntax::plain, "p:q"};
  t["mov.pred"] = {predicate_move, Syntax::plain, "p:q"};
}

}  // namespace cudp::ptx
