#pragma once
// The table of instructions, a function for each file that fills it.
#include <functional>

#include "tests/support/ptx/warp.hpp"

namespace cudp::ptx {

using Table = std::map<std::string, Operation, std::less<>>;

void add_integers(Table& table);
void add_floats(Table& table);
void add_comparisons(Table& table);
void add_conversions(Table& table);
void add_memory(Table& table);
void add_warp_operations(Table& table);

/// Letter in Operation's list of operands for a register of type T.
template <class T>
inline constexpr char kLetter = sizeof(T) == 8   ? '8'
                                : sizeof(T) == 4 ? '4'
                                                 : '2';

/// Letter for a register that may be wider than T. Only integers can be extended.
template <class T>
inline constexpr char kWideLetter = std::is_floating_point_v<T> ? kLetter<T>
                                    : sizeof(T) == 8            ? '8'
                                    : sizeof(T) == 4            ? 'c'
                                    : sizeof(T) == 2            ? 'b'
                                                                : 'a';

/// Computes d = f(a) for one type, lane by lane. F::f is a static function template of that type.
template <class T, class F>
void unary(Warp& w, const Instruction& i, u32 lanes) {
  const u8* const a = w.row(i.s[0]);
  u8* const d = w.result(i.d[0]);
  for_lanes(lanes, [&](u32 l) { set<T>(d, l, F::template f<T>(get<T>(a, l))); });
}
template <class T, class F>
void binary(Warp& w, const Instruction& i, u32 lanes) {
  const u8 *const a = w.row(i.s[0]), *const b = w.row(i.s[1]);
  u8* const d = w.result(i.d[0]);
  for_lanes(lanes, [&](u32 l) { set<T>(d, l, F::template f<T>(get<T>(a, l), get<T>(b, l))); });
}

/// Adds the operation d = f(sources) of one type to the table.
template <class T>
void add_plain(Table& table, const std::string& name, Action run, std::size_t sources) {
  table[name] = {run, Syntax::plain,
                 std::string(1, kLetter<T>) + ":" + std::string(sources, kLetter<T>)};
}

}  // namespace cudp::ptx
