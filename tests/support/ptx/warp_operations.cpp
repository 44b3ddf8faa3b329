// What the lanes of a warp do together. The interpreter has seen to it that all lanes that the
// instruction names are here.
#include "tests/support/ptx/half.hpp"
#include "tests/support/ptx/operations.hpp"

namespace cudp::ptx {

namespace {

enum class Shuffle { up, down, bfly, idx };

/// Each lane takes the value of another, or keeps its own if that is outside of its segment.
template <Shuffle mode>
void shuffle(Warp& w, const Instruction& i, u32 lanes) {
  const u8 *const a = w.row(i.s[0]), *const b = w.row(i.s[1]), *const c = w.row(i.s[2]);
  std::array<u32, kLanes> values{};
  u32 inside = 0;
  for (u32 left = lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<u32>(__builtin_ctz(left));
    const u32 by = get<u32>(b, lane) & 31;
    const u32 clamp = get<u32>(c, lane) & 31, segment = get<u32>(c, lane) >> 8 & 31;
    const u32 first = lane & segment, last = first | (clamp & ~segment);
    u32 from = lane;
    bool in = true;
    if constexpr (mode == Shuffle::up) {
      in = static_cast<i32>(lane - by) >= static_cast<i32>(last);
      from = lane - by;
    } else {
      from = mode == Shuffle::down   ? lane + by
             : mode == Shuffle::bfly ? lane ^ by
                                     : first | (by & ~segment);
      in = from <= last;
    }
    if (!in) from = lane;
    if ((lanes >> from & 1) == 0)
      fault(w, lane, "a shuffle from lane " + std::to_string(from) + ", which takes no part");
    values[lane] = get<u32>(a, from);
    inside |= u32{in} << lane;
  }
  u8* const d = w.result(i.d[0]);
  for_lanes(lanes, [&](u32 l) { set<u32>(d, l, values[l]); });
  if (i.predicate.is_predicate()) {
    u32& p = w.predicates[i.predicate.id];
    p = (p & ~lanes) | inside;
  }
}

void ballot(Warp& w, const Instruction& i, u32 lanes) {
  const u32 p =
      i.s[0].is_constant() ? (get<u32>(w.row(i.s[0]), 0) != 0 ? ~0u : 0u) : w.predicates[i.s[0].id];
  u8* const d = w.result(i.d[0]);
  for_lanes(lanes, [&](u32 l) { set<u32>(d, l, p & lanes); });
}

void synchronise(Warp& w, const Instruction&, u32 lanes) {
  if (lanes != w.live)
    fault(w, static_cast<u32>(__builtin_ctz(lanes)),
          "bar.warp.sync of a part of a warp is unknown");
  if (++w.sync == 0) fault(w, 0, "more than 65535 warp-wide barriers between barriers are unknown");
}

using EightDoubles [[gnu::vector_size(64)]] = double;
template <u32 terms>
struct Matrices {
  double a[16][terms];
  EightDoubles b[terms], d[16];  // rows
};
/// d += a b. Products are exact, so that it makes no difference whether they are fused.
template <u32 terms>
[[gnu::always_inline]] inline void multiply(Matrices<terms>& m) {
  for (u32 row = 0; row < 16; ++row) {
    EightDoubles sum = m.d[row];
    for (u32 k = 0; k < terms; ++k) sum += m.a[row][k] * m.b[k];
    m.d[row] = sum;
  }
}
template <u32 terms>
void multiply_anywhere(Matrices<terms>& m) {
  multiply(m);
}
#ifdef CUDP_PTX_WIDE
template <u32 terms>
CUDP_PTX_WIDE void multiply_wide(Matrices<terms>& m) {
  multiply(m);
}
#else
template <u32 terms>
void multiply_wide(Matrices<terms>& m) {
  multiply(m);
}
#endif

/// c and d of both shapes of mma, 16 x 8: with g = lane / 4 and t = lane % 4
///   c0 (g, 2 t)   c1 (g, 2 t + 1)   c2 (g + 8, 2 t)   c3 (g + 8, 2 t + 1).
/// How a device rounds while it adds is not documented: sums are made in double and rounded once.
template <u32 terms>
void add_product(Warp& w, const Instruction& i, Matrices<terms>& m) {
  for (u32 k = 0; k < 4; ++k) {
    const u8* const c = w.row(i.s[6 + k]);
    for (u32 lane = 0; lane < kLanes; ++lane)
      m.d[lane / 4 + k / 2 * 8][2 * (lane % 4) + k % 2] = get<float>(c, lane);
  }
  static const auto product = wide_instructions() ? multiply_wide<terms> : multiply_anywhere<terms>;
  product(m);
  for (u32 k = 0; k < 4; ++k) {
    u8* const d = w.result(i.d[k]);
    for (u32 lane = 0; lane < kLanes; ++lane)
      set<float>(d, lane, static_cast<float>(m.d[lane / 4 + k / 2 * 8][2 * (lane % 4) + k % 2]));
  }
}

/// d = a b + c, where with g = lane / 4 and t = lane % 4
///   a, 16 x 8:  a0 (g, t)   a1 (g + 8, t)   a2 (g, t + 4)   a3 (g + 8, t + 4)
///   b, 8 x 8:   b0 (t, g)   b1 (t + 4, g)
void multiply_tf32(Warp& w, const Instruction& i, u32) {
  for (u32 k = 0; k < 6; ++k) {
    const u8* const row = w.row(i.s[k]);
    u32 wrong = 0;
    const auto lacking = [&](u32 lane) {  // bits that a tensor core would ignore
      const u32 bits = get<u32>(row, lane);
      return (bits & 0x7fffffffu) > 0x7f800000u ? 0 : bits & 0x1fffu;
    };
    for (u32 lane = 0; lane < kLanes; ++lane) wrong |= lacking(lane);
    for (u32 lane = 0; wrong != 0; ++lane)
      if (lacking(lane) != 0) fault(w, lane, "an operand of mma is not rounded to TF32");
  }
  Matrices<8> m;
  for (u32 k = 0; k < 4; ++k) {
    const u8* const a = w.row(i.s[k]);
    for (u32 lane = 0; lane < kLanes; ++lane)
      m.a[lane / 4 + k % 2 * 8][lane % 4 + k / 2 * 4] = get<float>(a, lane);
  }
  for (u32 k = 0; k < 2; ++k) {
    const u8* const b = w.row(i.s[4 + k]);
    for (u32 lane = 0; lane < kLanes; ++lane) m.b[lane % 4 + k * 4][lane / 4] = get<float>(b, lane);
  }
  add_product(w, i, m);
}

/// d = a b + c, where with g = lane / 4 and t = lane % 4, and two fp16 numbers to a register,
///   a, 16 x 16:  a0 (g, 2 t ..)   a1 (g + 8, 2 t ..)   a2 (g, 2 t + 8 ..)   a3 (g + 8, 2 t + 8 ..)
///   b, 16 x 8:   b0 (2 t .., g)   b1 (2 t + 8 .., g)
void multiply_f16(Warp& w, const Instruction& i, u32) {
  Matrices<16> m;
  for (u32 k = 0; k < 4; ++k) {
    const u8* const a = w.row(i.s[k]);
    for (u32 lane = 0; lane < kLanes; ++lane) {
      double* const at = &m.a[lane / 4 + k % 2 * 8][2 * (lane % 4) + k / 2 * 8];
      at[0] = half_value(low_half(get<u32>(a, lane)));
      at[1] = half_value(high_half(get<u32>(a, lane)));
    }
  }
  for (u32 k = 0; k < 2; ++k) {
    const u8* const b = w.row(i.s[4 + k]);
    for (u32 lane = 0; lane < kLanes; ++lane) {
      const u32 row = 2 * (lane % 4) + k * 8;
      m.b[row][lane / 4] = half_value(low_half(get<u32>(b, lane)));
      m.b[row + 1][lane / 4] = half_value(high_half(get<u32>(b, lane)));
    }
  }
  add_product(w, i, m);
}

void wait_for_primary(Warp& w, const Instruction&, u32 lanes) { w.has_waited |= lanes; }

void nothing(Warp&, const Instruction&, u32) {}

}  // namespace

void add_warp_operations(Table& t) {
  t["shfl.sync.up.b32"] = {shuffle<Shuffle::up>, Syntax::warp, "4o:444"};
  t["shfl.sync.down.b32"] = {shuffle<Shuffle::down>, Syntax::warp, "4o:444"};
  t["shfl.sync.bfly.b32"] = {shuffle<Shuffle::bfly>, Syntax::warp, "4o:444"};
  t["shfl.sync.idx.b32"] = {shuffle<Shuffle::idx>, Syntax::warp, "4o:444"};
  t["vote.sync.ballot.b32"] = {ballot, Syntax::warp, "4:q"};
  t["bar.warp.sync"] = {synchronise, Syntax::warp, ":"};
  t["mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"] = {multiply_tf32, Syntax::matrix,
                                                             "4444:4444444444"};
  t["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"] = {multiply_f16, Syntax::matrix,
                                                            "4444:4444444444"};
  t["griddepcontrol.wait"] = {wait_for_primary, Syntax::plain, ":"};
  t["griddepcontrol.launch_dependents"] = {nothing, Syntax::plain, ":"};
  t["bar.sync"] = {nothing, Syntax::barrier, ":"};
  t["bra"] = {nothing, Syntax::branch, ":"};
  t["bra.uni"] = {nothing, Syntax::branch, ":"};
  t["ret"] = {nothing, Syntax::exit, ":"};
}

}  // namespace cudp::ptx
