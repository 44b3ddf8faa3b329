// Every instruction of arithmetic that nvcc makes of our kernels, against the words of the PTX ISA
// 9.0 (the section of each instruction), on numbers where a careless reading goes wrong.
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "tests/support/ptx_machine.hpp"

namespace cudp::ptx {
namespace {

/// Bits of the sources, and those of the result behind them.
using Row = std::vector<u64>;

u64 f(float value) { return std::bit_cast<u32>(value); }
u64 d(double value) { return std::bit_cast<u64>(value); }

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr u64 kNan = 0x7fffffffu;       // what a device makes
constexpr u64 kOtherNan = 0xffc00001u;  // what it may be given
constexpr u64 kNan64 = 0x7ff8000000000000u;

/// Each row is a thread. `registers`: a letter for the result and for each source: s (16 bits),
/// r (32), R (64), p (predicate).
std::string text(const std::string& op, const std::string& registers) {
  std::string body =
      "ld.param.u64 %rd1, [k_param_0];\nld.param.u64 %rd2, [k_param_1];\nmov.u32 %r1, %tid.x;\n"
      "mul.wide.u32 %rd3, %r1, " +
      std::to_string(8 * (registers.size() - 1)) +
      ";\n"
      "add.s64 %rd4, %rd1, %rd3;\nmul.wide.u32 %rd5, %r1, 8;\nadd.s64 %rd6, %rd2, %rd5;\n";
  std::string operands;
  const auto name = [](char letter, std::size_t k) {
    const std::string n = std::to_string(10 + k);
    return letter == 's'   ? "%rs" + n
           : letter == 'r' ? "%r" + n
           : letter == 'R' ? "%rd" + n
                           : "%p" + n;
  };
  for (std::size_t k = 1; k < registers.size(); ++k) {
    const char letter = registers[k];
    const std::string at = ", [%rd4+" + std::to_string(8 * (k - 1)) + "];\n";
    if (letter == 'p') {
      body += "ld.global.u32 %r" + std::to_string(30 + k) + at + "setp.ne.s32 " + name('p', k) +
              ", %r" + std::to_string(30 + k) + ", 0;\n";
    } else {
      body += (letter == 's'   ? "ld.global.u16 "
               : letter == 'r' ? "ld.global.u32 "
                               : "ld.global.u64 ") +
              name(letter, k) + at;
    }
    operands += ", " + name(letter, k);
  }
  body += op + " " + name(registers[0], 0) + operands + ";\n";
  if (registers[0] == 'p') {
    body += "selp.b64 %rd7, 1, 0, %p10;\n";
  } else if (registers[0] == 's') {
    body += "cvt.u64.u16 %rd7, %rs10;\n";
  } else if (registers[0] == 'r') {
    body += "cvt.u64.u32 %rd7, %r10;\n";
  } else {
    body += "mov.b64 %rd7, %rd10;\n";
  }
  return one_kernel(body + "st.global.u64 [%rd6], %rd7;\nret;", 2);
}

/// All rows in whole warps, whose 32 lanes run at once, and each in a warp of its own.
void expect(const std::string& op, const std::string& registers, const std::vector<Row>& rows) {
  Module module(text(op, registers));
  Kernel* kernel = nullptr;
  ASSERT_NO_THROW(kernel = module.find("k")) << op;
  ASSERT_NE(kernel, nullptr);
  const std::size_t sources = registers.size() - 1;
  const std::size_t whole = (rows.size() + 31) / 32 * 32;
  std::vector<u64> in;
  for (std::size_t k = 0; k < whole; ++k) {
    const Row& row = rows[k % rows.size()];
    ASSERT_EQ(row.size(), sources + 1) << op;
    in.insert(in.end(), row.begin(), row.end() - 1);
  }
  Machine machine;
  const u64 from = machine.upload(in), to = machine.allocate(8 * whole);
  const auto check = [&](const std::vector<u64>& out, std::size_t first) {
    for (std::size_t k = 0; k < out.size(); ++k) {
      const Row& row = rows[(first + k) % rows.size()];
      EXPECT_EQ(out[k], row.back())
          << std::hex << op << " of " << row[0] << ", " << (sources > 1 ? row[1] : 0) << " is "
          << out[k] << ", not " << row.back();
    }
  };
  machine.run(*kernel, {1, 1, 1}, {static_cast<u32>(whole), 1, 1}, {from, to});
  check(machine.download<u64>(to, whole), 0);
  for (std::size_t k = 0; k < rows.size(); ++k) {
    machine.run(*kernel, {1, 1, 1}, {1, 1, 1}, {from + 8 * sources * k, to});
    check(machine.download<u64>(to, 1), k);
  }
}

/// The same of operands that are drawn: whole ranges, and small and large numbers.
template <class T, class F>
void expect_drawn(const std::string& op, const std::string& registers, F&& of) {
  std::mt19937_64 random(7);
  std::vector<Row> rows;
  const auto draw = [&] {
    const u64 bits = random();
    return static_cast<T>(bits >> (random() % 64));
  };
  const auto bits = [](auto value) {
    using V = decltype(value);
    if constexpr (sizeof(V) == 1)
      return static_cast<u64>(std::bit_cast<u8>(value));
    else if constexpr (sizeof(V) == 2)
      return static_cast<u64>(std::bit_cast<u16>(value));
    else if constexpr (sizeof(V) == 4)
      return static_cast<u64>(std::bit_cast<u32>(value));
    else
      return std::bit_cast<u64>(value);
  };
  for (int k = 0; k < 64; ++k) {
    const T a = draw();
    T b = draw();
    if (b == 0) b = 1;
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) b = 2;
    rows.push_back(registers.size() == 2 ? Row{bits(a), bits(of(a, b))}
                                         : Row{bits(a), bits(b), bits(of(a, b))});
  }
  expect(op, registers, rows);
}

TEST(PtxArithmetic, AddsAndSubtractsModuloTheWidth) {
  expect("add.s16", "sss", {{0x7fff, 1, 0x8000}, {0xffff, 1, 0}, {3, 0xfffe, 1}});
  expect("add.s32", "rrr", {{0x7fffffff, 1, 0x80000000}, {0xffffffff, 2, 1}});
  expect("add.s64", "RRR", {{~0ull, 1, 0}, {0xffffffffu, 1, 0x100000000}});
  expect("sub.s16", "sss", {{0, 1, 0xffff}, {0x8000, 1, 0x7fff}});
  expect("sub.s32", "rrr", {{0, 1, 0xffffffff}, {5, 7, 0xfffffffe}});
  expect("sub.s64", "RRR", {{0, 1, ~0ull}, {u64{1} << 32, 1, 0xffffffff}});
  expect("neg.s32", "rr", {{1, 0xffffffff}, {0x80000000, 0x80000000}, {0, 0}});
  expect("neg.s64", "RR", {{1, ~0ull}, {u64{1} << 63, u64{1} << 63}});
}

TEST(PtxArithmetic, MultipliesLowHighAndWide) {
  expect("mul.lo.s16", "sss", {{0xffff, 0xffff, 1}, {300, 300, 90000 & 0xffff}});
  expect("mul.lo.s32", "rrr", {{0x10001, 0x10001, 0x20001}, {0xffffffff, 5, 0xfffffffb}});
  expect("mul.lo.s64", "RRR", {{u64{1} << 40, u64{1} << 30, 0}, {~0ull, 7, ~0ull - 6}});
  expect("mul.hi.s16", "sss", {{0xffff, 0xffff, 0}, {0x8000, 0x8000, 0x4000}, {0xffff, 1, 0xffff}});
  expect("mul.hi.u16", "sss", {{0xffff, 0xffff, 0xfffe}, {0x8000, 2, 1}});
  expect("mul.hi.s32", "rrr", {{0xffffffff, 1, 0xffffffff}, {0x80000000, 0x80000000, 0x40000000}});
  expect("mul.hi.u32", "rrr", {{0xffffffff, 0xffffffff, 0xfffffffe}, {0x80000000, 2, 1}});
  expect("mul.wide.s16", "rss", {{0xffff, 5, 0xfffffffb}, {0x8000, 0x8000, 0x40000000}});
  expect("mul.wide.u16", "rss", {{0xffff, 0xffff, 0xfffe0001}});
  expect("mul.wide.s32", "Rrr", {{0xffffffff, 8, ~0ull - 7}, {0x80000000, 2, ~0ull << 32}});
  expect("mul.wide.u32", "Rrr", {{0xffffffff, 0xffffffff, 0xfffffffe00000001}});
  expect("mad.lo.s16", "ssss", {{0x100, 0x101, 1, 0x101}, {0xffff, 2, 5, 3}});
  expect("mad.lo.s32", "rrrr", {{0xffffffff, 3, 10, 7}, {0x10000, 0x10000, 9, 9}});
  expect("mad.lo.s64", "RRRR", {{~0ull, 3, 10, 7}, {u64{1} << 32, u64{1} << 32, 9, 9}});
}

TEST(PtxArithmetic, DividesTowardsZero) {
  expect("div.s32", "rrr",
         {{static_cast<u32>(-7), 2, static_cast<u32>(-3)},
          {7, static_cast<u32>(-2), static_cast<u32>(-3)}});
  expect("rem.s32", "rrr",
         {{static_cast<u32>(-7), 2, static_cast<u32>(-1)},
          {7, static_cast<u32>(-2), 1},
          {0x80000000, 0xffffffff, 0}});
  expect("div.u32", "rrr", {{0xfffffff9, 2, 0x7ffffffc}});
  expect("rem.u32", "rrr", {{0xfffffff9, 10, 0xfffffff9 % 10}});
  expect("div.s64", "RRR",
         {{static_cast<u64>(-7), 2, static_cast<u64>(-3)}, {5, ~0ull, static_cast<u64>(-5)}});
  expect("rem.s64", "RRR", {{static_cast<u64>(-7), 2, ~0ull}, {u64{1} << 63, ~0ull, 0}});
  expect("div.u64", "RRR", {{~0ull, 3, 0x5555555555555555}});
  expect("rem.u64", "RRR", {{~0ull, 10, 5}});
  expect_drawn<i32>("div.s32", "rrr", [](i32 a, i32 b) { return a / b; });
  expect_drawn<u32>("rem.u32", "rrr", [](u32 a, u32 b) { return a % b; });
  expect_drawn<i64>("div.s64", "RRR", [](i64 a, i64 b) { return a / b; });
  expect_drawn<u64>("rem.u64", "RRR", [](u64 a, u64 b) { return a - a / b * b; });
}

TEST(PtxArithmetic, ComparesSignedAndUnsignedMinimaAndMaxima) {
  expect("min.s32", "rrr", {{0x80000000, 1, 0x80000000}, {0xffffffff, 1, 0xffffffff}});
  expect("max.s32", "rrr", {{0x80000000, 1, 1}, {0xffffffff, 1, 1}});
  expect("min.u32", "rrr", {{0x80000000, 1, 1}});
  expect("max.u32", "rrr", {{0x80000000, 1, 0x80000000}, {0xffffffff, 1, 0xffffffff}});
  expect("min.s64", "RRR", {{~0ull, 1, ~0ull}});
  expect("max.s64", "RRR", {{~0ull, 1, 1}});
  expect("max.u64", "RRR", {{~0ull, 1, ~0ull}});
  expect("min.u64", "RRR", {{~0ull, 1, 1}});
}

TEST(PtxArithmetic, ShiftsBeyondTheWidthLeaveNothingOrTheSign) {
  expect("shl.b16", "ssr", {{0xffff, 4, 0xfff0}, {1, 16, 0}, {1, 32, 0}, {1, 0xffffffff, 0}});
  expect("shl.b32", "rrr",
         {{1, 31, 0x80000000}, {1, 32, 0}, {1, 33, 0}, {3, 0xffffffff, 0}, {7, 0, 7}});
  expect("shl.b64", "RRr", {{1, 63, u64{1} << 63}, {1, 64, 0}, {1, 65, 0}});
  expect("shr.u16", "ssr", {{0x8000, 15, 1}, {0xffff, 16, 0}});
  expect("shr.s16", "ssr", {{0x8000, 15, 0xffff}, {0x8000, 200, 0xffff}, {0x7fff, 16, 0}});
  expect("shr.u32", "rrr", {{0x80000000, 31, 1}, {0xffffffff, 32, 0}});
  expect("shr.s32", "rrr",
         {{0x80000000, 31, 0xffffffff}, {0x80000000, 32, 0xffffffff}, {0x7fffffff, 99, 0}});
  expect("shr.u64", "RRr", {{~0ull, 63, 1}, {~0ull, 64, 0}});
  expect("shr.s64", "RRr",
         {{u64{1} << 63, 64, ~0ull}, {u64{1} << 62, 64, 0}, {~0ull << 8, 4, ~0ull << 4}});
  // A constant amount is another path.
  for (const u32 amount : {0u, 5u, 31u, 32u, 40u}) {
    const u64 left = amount < 32 ? (u64{0x80000123} << amount) & 0xffffffffu : 0;
    const u64 right = static_cast<u32>(static_cast<i32>(0x80000123u) >> std::min(amount, 31u));
    Module module(one_kernel(
        "ld.param.u64 %rd1, [k_param_0];\nld.global.u32 %r1, [%rd1];\nshl.b32 %r2, %r1, " +
        std::to_string(amount) + ";\nshr.s32 %r3, %r1, " + std::to_string(amount) +
        ";\nst.global.v2.u32 [%rd1], {%r2, %r3};\nret;"));
    Machine machine;
    const u64 at = machine.upload<u32>({0x80000123, 0});
    machine.run(*module.find("k"), {}, {}, {at});
    EXPECT_EQ(machine.download<u32>(at, 2),
              (std::vector<u32>{static_cast<u32>(left), static_cast<u32>(right)}));
  }
}

TEST(PtxArithmetic, ShiftsAFunnelByTheAmountModulo32) {
  // d = (b << n) | (a >> (32 - n)), n = c mod 32
  expect("shf.l.wrap.b32", "rrrr",
         {{0x80000001, 0x00000003, 1, 7},
          {0xdeadbeef, 0x12345678, 0, 0x12345678},
          {0xdeadbeef, 0x12345678, 32, 0x12345678},
          {0xf0000000, 1, 36, 0x1f}});
  // d = (b << (32 - n)) | (a >> n)
  expect("shf.r.wrap.b32", "rrrr",
         {{0x80000001, 0x00000003, 1, 0xc0000000},
          {0xdeadbeef, 0x12345678, 0, 0xdeadbeef},
          {0xdeadbeef, 0x12345678, 32, 0xdeadbeef},
          {0x00000010, 1, 36, 0x10000001}});
}

TEST(PtxArithmetic, PermutesBytesAndSpreadsSigns) {
  // Bytes 0 to 3 are a's and 4 to 7 b's; above them, bit 3: the byte's sign in all 8 bits.
  expect("prmt.b32", "rrrr",
         {{0x33221100, 0x77665544, 0x3210, 0x33221100},
          {0x33221100, 0x77665544, 0x7654, 0x77665544},
          {0x33221100, 0x77665544, 0x4061, 0x44006611},
          {0x33221100, 0x77665544, 0xffff4061, 0x44006611},
          {0x8022f100, 0x7f665584, 0xb9c8, 0xffffff00},
          {0x8022f100, 0x7f665584, 0xafde, 0x00000000}});
}

TEST(PtxArithmetic, HandlesBits) {
  expect("and.b16", "sss", {{0xff0f, 0x0fff, 0x0f0f}});
  expect("and.b32", "rrr", {{0xff00ff00, 0x0ff00ff0, 0x0f000f00}});
  expect("and.b64", "RRR", {{0xff00ff00ff, ~0ull << 8, 0xff00ff0000}});
  expect("or.b32", "rrr", {{0xf0, 0x0f, 0xff}});
  expect("or.b64", "RRR", {{u64{1} << 63, 1, (u64{1} << 63) | 1}});
  expect("xor.b32", "rrr", {{0xff, 0x0f, 0xf0}});
  expect("not.b32", "rr", {{0xf, 0xfffffff0}});
  expect("not.b64", "RR", {{0xf, ~0xfull}});
  expect("brev.b32", "rr", {{1, 0x80000000}, {0x80000001, 0x80000001}, {0x12345678, 0x1e6a2c48}});
  expect("popc.b32", "rr", {{0, 0}, {0xffffffff, 32}, {0x80000001, 2}});
  // The shift that brings the highest one to bit 31; 0xffffffff where there is none.
  expect("bfind.shiftamt.u32", "rr", {{0, 0xffffffff}, {1, 31}, {0x80000000, 0}, {0x00010000, 15}});
  // bfe d, a, b, c: c bits of a from b on; positions and lengths of the lowest 8 bits
  expect("bfe.u32", "rrrr",
         {{0x12345678, 4, 8, 0x67},
          {0xffffffff, 0, 0, 0},
          {0xabcdef01, 0, 32, 0xabcdef01},
          {0xabcdef01, 0, 255, 0xabcdef01},
          {0x80000001, 31, 8, 1},
          {0xffffffff, 32, 8, 0},
          {0x12345678, 0x104, 0x104, 7}});
  // bfi f, a, b, c, d: a into b at c, d bits; positions and lengths of the lowest 8 bits
  expect("bfi.b32", "rrrrr",
         {{0xff, 0, 4, 4, 0xf0},
          {0, 0xffffffff, 8, 8, 0xffff00ff},
          {0xffffffff, 0, 28, 8, 0xf0000000},
          {5, 7, 3, 0, 7},
          {1, 0, 32, 1, 0},
          {0xabcdef01, 0, 0, 32, 0xabcdef01},
          {0xabcdef01, 0, 0, 255, 0xabcdef01},
          {1, 0, 0x101, 0x101, 2}});
  expect("bfi.b64", "RRRrr",
         {{0x1234, ~0ull, 32, 16, 0xffff1234ffffffff},
          {1, 0, 63, 9, u64{1} << 63},
          {7, 9, 64, 3, 9},
          {0x123456789abcdef0, 0, 0, 64, 0x123456789abcdef0}});
}

TEST(PtxArithmetic, SelectsAndMoves) {
  for (const char* type : {"b16", "u16"})
    expect("selp." + std::string(type), "sssp", {{1, 2, 1, 1}, {1, 2, 0, 2}});
  for (const char* type : {"b32", "s32", "u32", "f32"})
    expect("selp." + std::string(type), "rrrp",
           {{1, 2, 1, 1}, {1, 2, 0, 2}, {kOtherNan, 2, 1, kOtherNan}});
  for (const char* type : {"b64", "u64", "f64"})
    expect("selp." + std::string(type), "RRRp", {{1, ~0ull, 1, 1}, {1, ~0ull, 0, ~0ull}});
  expect("mov.u16", "ss", {{0xabcd, 0xabcd}});
  for (const char* type : {"b32", "u32", "f32"})
    expect("mov." + std::string(type), "rr", {{kOtherNan, kOtherNan}, {7, 7}});
  for (const char* type : {"b64", "u64", "f64"})
    expect("mov." + std::string(type), "RR", {{0xfff0000000000001, 0xfff0000000000001}});
  expect("and.pred", "ppp", {{1, 1, 1}, {1, 0, 0}, {0, 0, 0}});
  expect("or.pred", "ppp", {{0, 1, 1}, {1, 1, 1}, {0, 0, 0}});
  expect("xor.pred", "ppp", {{1, 1, 0}, {1, 0, 1}, {0, 0, 0}});
  expect("not.pred", "pp", {{1, 0}, {0, 1}});
  expect("mov.pred", "pp", {{1, 1}, {0, 0}});
}

TEST(PtxArithmetic, SplitsAndJoinsRegistersLowestFirst) {
  Module module(one_kernel(R"(
    ld.param.u64 %rd1, [k_param_0];
    ld.global.u64 %rd2, [%rd1];
    mov.b64 {%r1, %r2}, %rd2;
    mov.b64 %rd3, {%r2, %r1};
    st.global.u64 [%rd1+8], %rd3;
    mov.b64 {%rs1, %rs2, %rs3, %rs4}, %rd2;
    mov.b32 %r3, {%rs4, %rs1};
    mov.b64 %rd4, {%rs2, %rs3, %rs4, %rs1};
    mov.b32 {%rs5, %rs6}, %r1;
    cvt.u32.u16 %r4, %rs6;
    st.global.v2.u32 [%rd1+16], {%r3, %r4};
    st.global.u64 [%rd1+24], %rd4;
    mov.pred %p1, -1;
    mov.pred %p2, 0;
    selp.b32 %r5, 1, 2, %p1;
    selp.b32 %r6, 1, 2, %p2;
    st.global.v2.u32 [%rd1+32], {%r5, %r6};
    ret;)"));
  Machine machine;
  const u64 at = machine.upload<u64>({0x1111222233334444, 0, 0, 0, 0});
  machine.run(*module.find("k"), {}, {}, {at});
  EXPECT_EQ(machine.download<u64>(at, 5),
            (std::vector<u64>{0x1111222233334444, 0x3333444411112222, 0x0000333344441111,
                              0x4444111122223333, 0x0000000200000001}));
}

/// eq, ne, lt, le, gt, ge of smaller, equal and larger numbers.
template <class T>
void expect_order(const std::string& type, const std::string& registers, T small, T large) {
  const auto bits = [](T value) {
    return static_cast<u64>(static_cast<std::make_unsigned_t<T>>(value));
  };
  const std::pair<const char*, std::array<u64, 3>> all[] = {{"eq", {0, 1, 0}}, {"ne", {1, 0, 1}},
                                                            {"lt", {1, 0, 0}}, {"le", {1, 1, 0}},
                                                            {"gt", {0, 0, 1}}, {"ge", {0, 1, 1}}};
  for (const auto& [name, out] : all)
    expect("setp." + std::string(name) + "." + type, registers,
           {{bits(small), bits(large), out[0]},
            {bits(large), bits(large), out[1]},
            {bits(large), bits(small), out[2]}});
}

TEST(PtxArithmetic, ComparesIntegers) {
  expect_order<i16>("s16", "pss", -1, 1);
  expect_order<u16>("u16", "pss", 1, 0xffff);
  expect_order<i32>("s32", "prr", -1, 1);
  expect_order<u32>("u32", "prr", 1, 0xffffffff);
  expect_order<i64>("s64", "pRR", -1, 1);
  expect_order<u64>("u64", "pRR", 1, ~0ull);
  expect("setp.eq.b32", "prr", {{5, 5, 1}, {5, 6, 0}});
  expect("setp.ne.b32", "prr", {{5, 5, 0}, {5, 6, 1}});
  expect("setp.eq.b64", "pRR", {{u64{1} << 32, 0, 0}, {u64{1} << 32, u64{1} << 32, 1}});
  expect("setp.ne.b64", "pRR", {{u64{1} << 32, 0, 1}, {u64{1} << 32, u64{1} << 32, 0}});
}

TEST(PtxArithmetic, ComparesNumbersAndNan) {
  struct Comparison {
    const char* name;
    u64 less, equal, greater, nan;
  };
  const Comparison all[] = {{"eq", 0, 1, 0, 0},  {"ne", 1, 0, 1, 0},  {"lt", 1, 0, 0, 0},
                            {"le", 1, 1, 0, 0},  {"gt", 0, 0, 1, 0},  {"ge", 0, 1, 1, 0},
                            {"equ", 0, 1, 0, 1}, {"neu", 1, 0, 1, 1}, {"ltu", 1, 0, 0, 1},
                            {"leu", 1, 1, 0, 1}, {"gtu", 0, 0, 1, 1}, {"geu", 0, 1, 1, 1},
                            {"num", 1, 1, 1, 0}, {"nan", 0, 0, 0, 1}};
  for (const Comparison& c : all) {
    expect("setp." + std::string(c.name) + ".f32", "prr",
           {{f(-1), f(1), c.less},
            {f(0.0f), f(-0.0f), c.equal},
            {f(kInf), f(kInf), c.equal},
            {f(2), f(1), c.greater},
            {kNan, f(1), c.nan},
            {f(1), kOtherNan, c.nan},
            {kNan, kNan, c.nan}});
    expect("setp." + std::string(c.name) + ".f64", "pRR",
           {{d(-1), d(1), c.less},
            {d(0.0), d(-0.0), c.equal},
            {d(2), d(1), c.greater},
            {kNan64, d(1), c.nan},
            {d(1), kNan64, c.nan},
            {kNan64, kNan64, c.nan}});
  }
}

TEST(PtxArithmetic, AddsAndMultipliesFloatsRoundedOnce) {
  expect("add.f32", "rrr",
         {{f(0x1p24f), f(1), f(0x1p24f)},
          {f(0x1p24f), f(3), f(0x1p24f + 4)},
          {f(-0.0f), f(-0.0f), f(-0.0f)},
          {f(1), f(-1), f(0.0f)},
          {f(kInf), f(-kInf), kNan},
          {kOtherNan, f(1), kNan},
          {f(0x1p-149f), f(0x1p-149f), f(0x1p-148f)},
          {f(0x1.fffffep127f), f(0x1p103f), f(kInf)}});
  expect("sub.f32", "rrr",
         {{f(1), f(1), f(0.0f)},
          {f(kInf), f(kInf), kNan},
          {f(0x1p-126f), f(0x1p-149f), f(0x1.fffffcp-127f)}});
  expect("mul.f32", "rrr",
         {{f(0x1.000002p0f), f(0x1.000002p0f), f(0x1.000004p0f)},
          {f(0.0f), f(kInf), kNan},
          {f(-0.0f), f(5), f(-0.0f)},
          {f(0x1p-100f), f(0x1p-49f), f(0x1p-149f)},
          {f(0x1p-100f), f(0x1p-50f), f(0.0f)}});
  expect("add.f64", "RRR",
         {{d(0x1p53), d(1), d(0x1p53)}, {d(0.1), d(0.2), d(0.30000000000000004)}});
  expect("add.rn.f64", "RRR", {{d(0x1p53), d(3), d(0x1p53 + 4)}});
  expect("sub.f64", "RRR", {{d(1), d(0x1p-54), d(1)}, {d(1), d(0x1p-53), d(1 - 0x1p-53)}});
  expect(
      "mul.f64", "RRR",
      {{d(1 + 0x1p-52), d(1 + 0x1p-52), d(1 + 0x1p-51)}, {d(0x1p-1000), d(0x1p-74), d(0x1p-1074)}});
  expect("mul.rn.f64", "RRR", {{d(3), d(1.0 / 3), d(1)}});
  expect("neg.f32", "rr", {{f(0.0f), f(-0.0f)}, {f(-1.5f), f(1.5f)}, {f(kInf), f(-kInf)}});
  expect("neg.f64", "RR", {{d(0.0), d(-0.0)}, {d(2), d(-2)}});
}

TEST(PtxArithmetic, AddsTowardsZero) {
  expect("add.rz.f32", "rrr",
         {{f(0x1p24f), f(3), f(0x1p24f + 2)},
          {f(-0x1p24f), f(-3), f(-0x1p24f - 2)},
          {f(1), f(2), f(3)},
          {f(1), f(-0x1p-60f), f(0x1.fffffep-1f)},
          {f(-1), f(0x1p-60f), f(-0x1.fffffep-1f)},
          {f(1), f(0x1p-60f), f(1)},
          {f(0x1p60f), f(-0x1p-60f), f(0x1.fffffep59f)},
          {f(0x1.fffffep127f), f(0x1.fffffep127f), f(0x1.fffffep127f)},
          {f(5), f(-5), f(0.0f)},
          {f(kInf), f(1), f(kInf)},
          {f(kInf), f(-kInf), kNan}});
}

TEST(PtxArithmetic, FusesWithOneRounding) {
  const float a = 0x1.000002p0f;  // a^2 = 1 + 2^-22 + 2^-46
  expect("fma.rn.f32", "rrrr",
         {{f(a), f(a), f(-0x1.000004p0f), f(0x1p-46f)},
          {f(2), f(3), f(4), f(10)},
          {f(0.0f), f(kInf), f(1), kNan},
          {f(kInf), f(1), f(-kInf), kNan},
          {f(-0.0f), f(1), f(-0.0f), f(-0.0f)},
          // 1 + 2^-23 + 2^-24 - 2^-70 is below the middle: rounded to double first it would be it
          {f(0x1.000002p-12f), f(0x1.fffffcp-13f), f(0x1.000002p0f), f(0x1.000002p0f)}});
  const double b = 1 + 0x1p-52;
  expect("fma.rn.f64", "RRRR",
         {{d(b), d(b), d(-(1 + 0x1p-51)), d(0x1p-104)}, {d(2), d(3), d(4), d(10)}});
  // Two fp16 numbers each: 1 (0x3c00), 2, 3 (0x4200); 65504 (0x7bff); infinity (0x7c00).
  expect("fma.rn.f16x2", "rrrr",
         {{0x40003c00, 0x42004000, 0x44004200, 0x49004500},  // 2 3 + 4, 1 2 + 3
          {0x7bff7c00, 0x40003c00, 0x0000fc00, 0x7c007fff},  // 2 65504, inf - inf
          // (1 + 2^-10)(1 - 2^-10) + 2050 = 2051 - 2^-20: below the middle of 2050 and 2052.
          {0x3c013c01, 0x3bfe3bfe, 0x68016800, 0x68016800},
          {0x64016464, 0x1c001c00, 0xc400c400, 0x1c003640}});  // bytes 1 and 100, by 256
}

TEST(PtxArithmetic, DividesAndTakesRootsRoundedToNearest) {
  expect("div.rn.f32", "rrr",
         {{f(1), f(3), f(0x1.555556p-2f)},
          {f(1), f(0.0f), f(kInf)},
          {f(-1), f(0.0f), f(-kInf)},
          {f(0.0f), f(0.0f), kNan},
          {f(0x1p-149f), f(2), f(0.0f)},
          {f(0x1.8p-148f), f(2), f(0x1p-148f)},
          {f(7), f(kInf), f(0.0f)}});
  expect("div.rn.f64", "RRR",
         {{d(1), d(3), d(0x1.5555555555555p-2)}, {d(-1), d(0.0), d(-kInfinity)}});
  expect("sqrt.rn.f32", "rr",
         {{f(2), f(0x1.6a09e6p0f)},
          {f(-0.0f), f(-0.0f)},
          {f(-1), kNan},
          {f(kInf), f(kInf)},
          {f(0x1p-149f), f(0x1.6a09e6p-75f)}});
  expect("sqrt.rn.f64", "RR", {{d(2), d(0x1.6a09e667f3bcdp0)}, {d(-0.0), d(-0.0)}});
  expect("rcp.rn.f32", "rr",
         {{f(3), f(0x1.555556p-2f)},
          {f(-0.0f), f(-kInf)},
          {f(kInf), f(0.0f)},
          {f(0x1p127f), f(0x1p-127f)},
          {kOtherNan, kNan}});
  expect("rcp.rn.f64", "RR", {{d(3), d(0x1.5555555555555p-2)}, {d(0.0), d(kInfinity)}});
}

TEST(PtxArithmetic, TakesCoarseReciprocalsOfUpperHalves) {
  // The lower 32 bits of the operand are ignored, those of the result are 0; too small is zero.
  expect("rcp.approx.ftz.f64", "RR",
         {{d(2) | 0x12345678, d(0.5)},
          {d(-4), d(-0.25)},
          {d(0.0), d(kInfinity)},
          {d(-0.0), d(-kInfinity)},
          {d(kInfinity), d(0.0)},
          {d(0x1p-1074), d(kInfinity)},
          {d(-0x1p1023), d(-0.0)},
          {d(3), d(0x1.5555555555555p-2) & ~0xffffffffull}});
}

TEST(PtxArithmetic, OrdersSignedZerosAndPassesOverNan) {
  expect("min.f32", "rrr",
         {{f(0.0f), f(-0.0f), f(-0.0f)},
          {f(-0.0f), f(0.0f), f(-0.0f)},
          {kNan, f(1), f(1)},
          {f(2), kOtherNan, f(2)},
          {kOtherNan, kOtherNan, kNan},
          {f(-kInf), f(3), f(-kInf)},
          {f(1), f(2), f(1)},
          {f(2), f(1), f(1)}});
  expect("max.f32", "rrr",
         {{f(0.0f), f(-0.0f), f(0.0f)},
          {f(-0.0f), f(0.0f), f(0.0f)},
          {kNan, f(1), f(1)},
          {f(2), kOtherNan, f(2)},
          {kOtherNan, kOtherNan, kNan},
          {f(kInf), f(3), f(kInf)},
          {f(1), f(2), f(2)},
          {f(2), f(1), f(2)}});
}

TEST(PtxArithmetic, ConvertsIntegersByCuttingAndExtending) {
  expect("cvt.s16.s8", "ss", {{0x80, 0xff80}, {0x17f, 0x7f}});
  expect("cvt.s32.s8", "rr", {{0xff, 0xffffffff}, {0x100, 0}});
  expect("cvt.s32.s16", "rs", {{0x8000, 0xffff8000}, {0x7fff, 0x7fff}});
  expect("cvt.s64.s32", "Rr", {{0x80000000, 0xffffffff80000000}, {5, 5}});
  expect("cvt.s8.s32", "rr", {{0x180, 0xffffff80}, {0x7f, 0x7f}});
  expect("cvt.s8.s64", "sR", {{0x180, 0xff80}, {u64{1} << 40, 0}});
  expect("cvt.u16.u32", "sr", {{0x12345678, 0x5678}});
  expect("cvt.u16.u64", "sR", {{0x1234567890, 0x7890}});
  expect("cvt.u32.u16", "rs", {{0xffff, 0xffff}});
  expect("cvt.u32.u64", "rR", {{0x1234567890, 0x34567890}});
  expect("cvt.u64.u32", "Rr", {{0xffffffff, 0xffffffff}});
  expect("cvt.s64.s8", "RR", {{0x1ff, ~0ull}});
}

TEST(PtxArithmetic, ConvertsIntegersToFloatsToNearest) {
  expect("cvt.rn.f32.s32", "rr",
         {{0x7fffffff, f(0x1p31f)},
          {0xffffffff, f(-1)},
          {0x1000001, f(0x1p24f)},
          {0x1000003, f(0x1p24f + 4)}});
  expect("cvt.rn.f32.u32", "rr", {{0xffffffff, f(0x1p32f)}, {0x80000000, f(0x1p31f)}});
  expect("cvt.rn.f32.u16", "rs", {{0xffff, f(65535)}});
  expect("cvt.rn.f64.s32", "Rr", {{0x80000000, d(-0x1p31)}});
  expect("cvt.rn.f64.u32", "Rr", {{0xffffffff, d(4294967295.0)}});
  expect("cvt.rn.f64.u16", "Rs", {{0xffff, d(65535)}});
  expect("cvt.rn.f64.s64", "RR", {{(u64{1} << 53) + 1, d(0x1p53)}, {~0ull, d(-1)}});
  expect("cvt.rn.f64.u64", "RR", {{~0ull, d(0x1p64)}, {(u64{1} << 53) + 3, d(0x1p53 + 4)}});
}

TEST(PtxArithmetic, ConvertsBetweenFloats) {
  expect("cvt.f64.f32", "Rr",
         {{f(0.1f), d(0.1f)}, {f(-kInf), d(-kInfinity)}, {f(0x1p-149f), d(0x1p-149)}});
  expect("cvt.rn.f32.f64", "rR",
         {{d(1 + 0x1p-24), f(1)},
          {d(1 + 0x1p-24 + 0x1p-50), f(1 + 0x1p-23f)},
          {d(1e300), f(kInf)},
          {d(0x1p-150), f(0.0f)},
          {d(0x1.8p-149), f(0x1p-148f)},
          {0xfff8000000000001, kNan}});
  expect("cvt.rni.f64.f64", "RR",
         {{d(2.5), d(2)}, {d(3.5), d(4)}, {d(-0.5), d(-0.0)}, {d(-1.5), d(-2)}});
  expect("cvt.rzi.f64.f64", "RR", {{d(2.9), d(2)}, {d(-2.9), d(-2)}});
  expect("cvt.rmi.f64.f64", "RR", {{d(2.9), d(2)}, {d(-2.1), d(-3)}});
  expect("cvt.rpi.f64.f64", "RR", {{d(2.1), d(3)}, {d(-2.9), d(-2)}});
  // 10 bits of mantissa, to nearest, ties away from zero
  expect("cvt.rna.tf32.f32", "rr",
         {{f(1 + 0x1p-11f), f(1 + 0x1p-10f)},
          {f(-(1 + 0x1p-11f)), f(-(1 + 0x1p-10f))},
          {f(1 + 0x1p-12f), f(1)},
          {f(0x1.fffffep0f), f(2)},
          {f(0x1.fffffep127f), f(kInf)},
          {f(-kInf), f(-kInf)},
          {kOtherNan, kNan},
          {f(0x1p-149f), f(0.0f)}});
}

TEST(PtxArithmetic, ConvertsToAndFromFp16) {
  // 11 significant bits, the least 2^-24; to nearest, ties to even; infinity from 65520 on.
  const std::vector<Row> rows{{f(1), 0x3c00},
                              {f(-2), 0xc000},
                              {f(1 + 0x1p-11f), 0x3c00},
                              {f(1 + 0x3p-11f), 0x3c02},
                              {f(1 + 0x1p-11f + 0x1p-20f), 0x3c01},
                              {f(65504), 0x7bff},
                              {f(65519.996f), 0x7bff},
                              {f(65520), 0x7c00},
                              {f(-1e30f), 0xfc00},
                              {f(kInf), 0x7c00},
                              {f(0x1p-24f), 1},
                              {f(0x1p-25f), 0},
                              {f(-0x1p-25f), 0x8000},
                              {f(0x3p-25f), 2},
                              {f(0x1p-14f), 0x0400},
                              {kOtherNan, 0x7fff}};
  expect("cvt.rn.f16.f32", "sr", rows);
  std::vector<Row> pairs;
  for (std::size_t k = 0; k < rows.size(); ++k) {  // d = high half of a, low half of b
    const Row& other = rows[(k + 1) % rows.size()];
    pairs.push_back({rows[k][0], other[0], rows[k][1] << 16 | other[1]});
  }
  expect("cvt.rn.f16x2.f32", "rrr", pairs);
  expect("cvt.f32.f16", "rs",
         {{0x3c00, f(1)},
          {0xc200, f(-3)},
          {0x7bff, f(65504)},
          {0x7c00, f(kInf)},
          {0xfc00, f(-kInf)},
          {0x8000, f(-0.0f)},
          {1, f(0x1p-24f)},
          {0x83ff, f(-0x1.ff8p-15f)}});
}

TEST(PtxArithmetic, ConvertsFloatsToIntegersClamped) {
  expect("cvt.rni.s32.f32", "rr",
         {{f(2.5f), 2},
          {f(3.5f), 4},
          {f(-2.5f), static_cast<u32>(-2)},
          {f(3e9f), 0x7fffffff},
          {f(-3e9f), 0x80000000},
          {f(kInf), 0x7fffffff},
          {kNan, 0},
          {f(0x1p31f), 0x7fffffff},
          {f(-0x1p31f), 0x80000000}});
  // NaN: 0 only if the source is no f64 and the result has not 64 bits; otherwise the highest bit.
  expect("cvt.rzi.s64.f64", "RR",
         {{d(2.9), 2},
          {d(-2.9), static_cast<u64>(-2)},
          {d(1e19), (u64{1} << 63) - 1},
          {d(-1e19), u64{1} << 63},
          {kNan64, u64{1} << 63},
          {d(0x1p63), (u64{1} << 63) - 1},
          {d(0x1p53), u64{1} << 53}});
  expect("cvt.rzi.u64.f64", "RR",
         {{d(2.9), 2},
          {d(-0.9), 0},
          {d(-5), 0},
          {d(1e20), ~0ull},
          {d(0x1p63), u64{1} << 63},
          {kNan64, u64{1} << 63},
          {d(kInfinity), ~0ull}});
}

}  // namespace
}  // namespace cudp::ptx
