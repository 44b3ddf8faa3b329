// How the interpreter runs lanes, warps, barriers and blocks, in whatever order.
#include <random>

#include <gtest/gtest.h>

#include "tests/support/ptx_faults.hpp"

namespace cudp::ptx {
namespace {

// ---- warps

TEST(PtxInterpreter, FindsLanesMissingFromWarpOperations) {
  const std::string half = "setp.lt.s32 %p1, %r1, 16;\n";
  for (const std::string operation :
       {"shfl.sync.bfly.b32 %r2|%p2, %r1, 1, 31, -1;\n", "vote.sync.ballot.b32 %r2, %p1, -1;\n",
        "bar.warp.sync -1;\n"}) {
    expect_found(half + "@%p1 " + operation + "ret;", half + operation + "ret;", "never",
                 threads(32));
    expect_found(half + "@%p1 bra $A;\n" + operation + "bra $B;\n$A:\n" + operation + "$B:\nret;",
                 half + operation + "ret;", "others that never come", threads(32));
    // A warp that is not whole.
    EXPECT_NE(fault_of(half + operation + "ret;", threads(48)).find("which has ended or never was"),
              std::string::npos);
  }
  expect_found("mov.u32 %r3, 65534;\nshfl.sync.bfly.b32 %r2|%p2, %r1, 1, 31, %r3;\nret;",
               "shfl.sync.bfly.b32 %r2|%p2, %r1, 1, 31, -1;\nret;", "leaves out the caller",
               threads(32));
  // Half a warp, which says so.
  EXPECT_EQ(
      fault_of(half + "@!%p1 bra $A;\nshfl.sync.bfly.b32 %r2|%p2, %r1, 1, 15, 65535;\n$A:\nret;",
               threads(32)),
      "");
  expect_found(half + "@!%p1 bra $A;\nshfl.sync.bfly.b32 %r2|%p2, %r1, 16, 31, 65535;\n$A:\nret;",
               half + "shfl.sync.bfly.b32 %r2|%p2, %r1, 16, 31, -1;\nret;", "which takes no part",
               threads(32));
}

TEST(PtxInterpreter, LanesWaitForThoseThatComeLater) {
  // Half of the warp takes a detour before all shuffle.
  Module module(one_kernel(R"(
    ld.param.u64 %rd1, [k_param_0]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;
    mov.u32 %r2, %r1;
    and.b32 %r3, %r1, 3;
    setp.eq.s32 %p1, %r3, 2;
    @%p1 bra $A;
    add.s32 %r2, %r2, 100;
    setp.eq.s32 %p2, %r3, 1;
    @%p2 bra $A;
    add.s32 %r2, %r2, 1000;
$A:
    shfl.sync.bfly.b32 %r4|%p3, %r2, 1, 31, -1;
    st.global.u32 [%rd3], %r4;
    ret;)"));
  for (u64 seed = 1; seed <= 4 * kSeeds; ++seed) {
    Machine machine(seed);
    const u64 at = machine.allocate(4 * 64);
    machine.run(*module.find("k"), {}, {64, 1, 1}, {at});
    const auto out = machine.download<u32>(at, 64);
    for (u32 t = 0; t < 64; ++t) {
      const u32 from = t ^ 1;
      EXPECT_EQ(out[t], from + (from % 4 == 2 ? 0u : from % 4 == 1 ? 100u : 1100u));
    }
  }
}

/// What each lane of a warp gets, and whether it was of its segment.
std::vector<u32> shuffled(const std::string& mode, u32 by, u32 clamp_and_segment) {
  Module module(one_kernel(
      "ld.param.u64 %rd1, [k_param_0];\nmov.u32 %r1, %laneid;\nmul.wide.u32 %rd2, %r1, 4;\nadd.s64 "
      "%rd3, %rd1, %rd2;\n"
      "add.s32 %r2, %r1, 100;\nshfl.sync." +
      mode + ".b32 %r3|%p1, %r2, " + std::to_string(by) + ", " + std::to_string(clamp_and_segment) +
      ", -1;\nselp.b32 %r4, 1000, 0, %p1;\nadd.s32 %r3, %r3, %r4;\nst.global.u32 [%rd3], "
      "%r3;\nret;"));
  Machine machine;
  const u64 at = machine.allocate(128);
  machine.run(*module.find("k"), {}, {32, 1, 1}, {at});
  return machine.download<u32>(at, 32);
}

TEST(PtxInterpreter, ShufflesAsTheIsaHasIt) {
  for (u32 lane = 0; lane < 32; ++lane) {
    // Whole warps: __shfl_xor_sync and its like give these constants.
    EXPECT_EQ(shuffled("bfly", 5, 31)[lane], 1100 + (lane ^ 5));
    EXPECT_EQ(shuffled("up", 3, 0)[lane], lane < 3 ? 100 + lane : 1100 + lane - 3);
    EXPECT_EQ(shuffled("down", 3, 31)[lane], lane > 28 ? 100 + lane : 1100 + lane + 3);
    EXPECT_EQ(shuffled("idx", 7, 31)[lane], 1107u);
    // Segments of 8 lanes: (32 - 8) << 8 is the mask.
    const u32 first = lane / 8 * 8;
    EXPECT_EQ(shuffled("up", 3, 0x1800)[lane], lane - first < 3 ? 100 + lane : 1100 + lane - 3);
    EXPECT_EQ(shuffled("down", 3, 0x181f)[lane], lane - first > 4 ? 100 + lane : 1100 + lane + 3);
    EXPECT_EQ(shuffled("idx", 5, 0x181f)[lane], 1100 + first + 5);
    EXPECT_EQ(shuffled("bfly", 8, 0x181f)[lane],
              (lane ^ 8) > first + 7 ? 100 + lane : 1100 + (lane ^ 8));
  }
}

TEST(PtxInterpreter, VotesWithABitForEachLane) {
  Module module(
      one_kernel("ld.param.u64 %rd1, [k_param_0];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, "
                 "4;\nadd.s64 %rd3, %rd1, %rd2;\n"
                 "and.b32 %r2, %r1, 3;\nsetp.eq.s32 %p1, %r2, 1;\nvote.sync.ballot.b32 %r3, %p1, "
                 "-1;\nst.global.u32 [%rd3], %r3;\nret;"));
  Machine machine;
  const u64 at = machine.allocate(256);
  machine.run(*module.find("k"), {}, {64, 1, 1}, {at});
  for (const u32 v : machine.download<u32>(at, 64)) EXPECT_EQ(v, 0x22222222u);
}

TEST(PtxInterpreter, MultipliesFragmentsLaneByLane) {
  // Where each lane's registers are in a, b and c, from the figures of the PTX ISA's section on
  // mma.m16n8k8 with .tf32: groupID = lane >> 2, threadID_in_group = lane % 4.
  //   a: row = groupID for a0 and a2, groupID + 8 for a1 and a3
  //      col = threadID_in_group for a0 and a1, threadID_in_group + 4 for a2 and a3
  //   b: row = threadID_in_group for b0, threadID_in_group + 4 for b1; col = groupID
  //   c: row = groupID for c0 and c1, groupID + 8 for c2 and c3; col = threadID_in_group * 2 + (i &
  //   1)
  float a[16][8], b[8][8], c[16][8];
  std::mt19937 random(3);
  const auto whole = [&] { return static_cast<float>(static_cast<int>(random() % 31) - 15); };
  for (auto& row : a)
    for (float& x : row) x = whole();
  for (auto& row : b)
    for (float& x : row) x = whole();
  for (auto& row : c)
    for (float& x : row) x = whole();
  std::vector<float> registers;
  for (int lane = 0; lane < 32; ++lane) {
    const int group = lane >> 2, in_group = lane % 4;
    registers.insert(registers.end(), {a[group][in_group], a[group + 8][in_group],
                                       a[group][in_group + 4], a[group + 8][in_group + 4]});
    registers.insert(registers.end(), {b[in_group][group], b[in_group + 4][group]});
    registers.insert(registers.end(), {c[group][in_group * 2], c[group][in_group * 2 + 1],
                                       c[group + 8][in_group * 2], c[group + 8][in_group * 2 + 1]});
  }
  std::string body =
      "ld.param.u64 %rd1, [k_param_0];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 40;\nadd.s64 "
      "%rd3, %rd1, %rd2;\n";
  for (int k = 0; k < 6; ++k)
    body +=
        "ld.global.u32 %r" + std::to_string(10 + k) + ", [%rd3+" + std::to_string(4 * k) + "];\n";
  for (int k = 0; k < 4; ++k)
    body += "ld.global.f32 %f" + std::to_string(10 + k) + ", [%rd3+" + std::to_string(24 + 4 * k) +
            "];\n";
  body +=
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f20, %f21, %f22, %f23}, {%r10, %r11, "
      "%r12, %r13}, {%r14, %r15}, {%f10, %f11, %f12, %f13};\n";
  for (int k = 0; k < 4; ++k)
    body += "st.global.f32 [%rd3+" + std::to_string(24 + 4 * k) + "], %f" + std::to_string(20 + k) +
            ";\n";
  Module module(one_kernel(body + "ret;"));
  Machine machine;
  const u64 at = machine.upload(registers);
  machine.run(*module.find("k"), {}, {32, 1, 1}, {at});
  const auto out = machine.download<float>(at, registers.size());
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 4; ++i) {
      const int row = (lane >> 2) + (i < 2 ? 0 : 8), column = lane % 4 * 2 + (i & 1);
      float sum = c[row][column];
      for (int k = 0; k < 8; ++k) sum += a[row][k] * b[k][column];
      EXPECT_EQ(out[static_cast<std::size_t>(10 * lane + 6 + i)], sum) << lane << " " << i;
    }
}

TEST(PtxInterpreter, LoadsMatricesLaneByLane) {
  // From the figures of the PTX ISA's section on ldmatrix, .m8n8 of 16 bits: thread 8 m + r has the
  // address of row r of matrix m. Thread t receives, of each matrix, row t / 4, elements
  // 2 (t % 4) and the next; with .trans, of column t / 4.
  std::vector<u16> values(32 * 8);
  for (std::size_t k = 0; k < values.size(); ++k) values[k] = static_cast<u16>(257 * k);
  for (const int matrices : {1, 2, 4})
    for (const bool transposed : {false, true}) {
      std::string registers;
      for (int m = 0; m < matrices; ++m)
        registers += (m > 0 ? ", %r" : "%r") + std::to_string(20 + m);
      // The row of thread l is at ((5 l) % 32) 16 bytes.
      std::string body =
          ".shared .align 16 .b8 a[512];\nld.param.u64 %rd1, [k_param_0];\nmov.u32 %r1, %tid.x;\n"
          "mul.wide.u32 %rd2, %r1, 16;\nadd.s64 %rd3, %rd1, %rd2;\nld.global.v4.u32 {%r10, %r11, "
          "%r12, %r13}, [%rd3];\nmov.u32 %r4, a;\nshl.b32 %r5, %r1, 4;\nadd.s32 %r5, %r4, %r5;\n"
          "st.shared.v4.u32 [%r5], {%r10, %r11, %r12, %r13};\nbar.warp.sync -1;\n"
          "mul.lo.s32 %r6, %r1, 5;\nand.b32 %r6, %r6, 31;\nshl.b32 %r6, %r6, 4;\n"
          "add.s32 %r6, %r4, %r6;\nldmatrix.sync.aligned.m8n8.x" +
          std::to_string(matrices) + (transposed ? ".trans" : "") + ".shared.b16 {" + registers +
          "}, [%r6];\n";
      for (int m = 0; m < matrices; ++m)
        body += "st.global.u32 [%rd3+" + std::to_string(4 * m) + "], %r" + std::to_string(20 + m) +
                ";\n";
      Module module(one_kernel(body + "ret;"));
      Machine machine;
      const u64 at = machine.upload(values);
      machine.run(*module.find("k"), {}, {32, 1, 1}, {at});
      const auto out = machine.download<u32>(at, 128);
      for (int t = 0; t < 32; ++t)
        for (int m = 0; m < matrices; ++m) {
          const auto value = [&](int row, int column) -> u32 {
            return values[static_cast<std::size_t>(5 * (8 * m + row) % 32 * 8 + column)];
          };
          const int line = t / 4, two = 2 * (t % 4);
          const u32 want = transposed ? value(two, line) | value(two + 1, line) << 16
                                      : value(line, two) | value(line, two + 1) << 16;
          EXPECT_EQ(out[static_cast<std::size_t>(4 * t + m)], want) << matrices << transposed << t;
        }
    }
}

TEST(PtxInterpreter, MultipliesFragmentsOfFp16LaneByLane) {
  // From the figures of the PTX ISA's section on mma.m16n8k16 with .f16: groupID = lane >> 2,
  // threadID_in_group = lane % 4, and a_i is number i of a thread, two to a register.
  //   a: row = groupID for i in 0, 1, 4, 5, groupID + 8 for the others
  //      col = threadID_in_group * 2 + (i & 1), + 8 for i >= 4
  //   b: row = threadID_in_group * 2 + (i & 1), + 8 for i >= 2; col = groupID
  //   c: row = groupID for i < 2, groupID + 8 for the others; col = threadID_in_group * 2 + (i & 1)
  int a[16][16], b[16][8], c[16][8];
  std::mt19937 random(4);
  const auto fill = [&](auto& matrix) {
    for (auto& row : matrix)
      for (int& x : row) x = static_cast<int>(random() % 31) - 15;
  };
  fill(a);
  fill(b);
  fill(c);
  std::vector<float> registers;  // 8 + 4 + 4 numbers a lane
  for (int lane = 0; lane < 32; ++lane) {
    const int group = lane >> 2, in_group = lane % 4;
    for (int i = 0; i < 8; ++i)
      registers.push_back(static_cast<float>(
          a[group + (i % 4 < 2 ? 0 : 8)][in_group * 2 + (i & 1) + (i >= 4 ? 8 : 0)]));
    for (int i = 0; i < 4; ++i)
      registers.push_back(static_cast<float>(b[in_group * 2 + (i & 1) + (i >= 2 ? 8 : 0)][group]));
    for (int i = 0; i < 4; ++i)
      registers.push_back(static_cast<float>(c[group + (i < 2 ? 0 : 8)][in_group * 2 + (i & 1)]));
  }
  std::string body =
      "ld.param.u64 %rd1, [k_param_0];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 64;\nadd.s64 "
      "%rd3, %rd1, %rd2;\n";
  for (int k = 0; k < 16; ++k)
    body +=
        "ld.global.f32 %f" + std::to_string(10 + k) + ", [%rd3+" + std::to_string(4 * k) + "];\n";
  for (int k = 0; k < 6; ++k)  // the first of two in the low half
    body += "cvt.rn.f16x2.f32 %r" + std::to_string(10 + k) + ", %f" + std::to_string(11 + 2 * k) +
            ", %f" + std::to_string(10 + 2 * k) + ";\n";
  body +=
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f30, %f31, %f32, %f33}, {%r10, %r11, "
      "%r12, %r13}, {%r14, %r15}, {%f22, %f23, %f24, %f25};\n";
  for (int k = 0; k < 4; ++k)
    body += "st.global.f32 [%rd3+" + std::to_string(48 + 4 * k) + "], %f" + std::to_string(30 + k) +
            ";\n";
  Module module(one_kernel(body + "ret;"));
  Machine machine;
  const u64 at = machine.upload(registers);
  machine.run(*module.find("k"), {}, {32, 1, 1}, {at});
  const auto out = machine.download<float>(at, registers.size());
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 4; ++i) {
      const int row = (lane >> 2) + (i < 2 ? 0 : 8), column = lane % 4 * 2 + (i & 1);
      int sum = c[row][column];
      for (int k = 0; k < 16; ++k) sum += a[row][k] * b[k][column];
      EXPECT_EQ(out[static_cast<std::size_t>(16 * lane + 12 + i)], static_cast<float>(sum))
          << lane << " " << i;
    }
}

TEST(PtxInterpreter, FindsOperandsThatWereNotRoundedToTf32) {
  const auto body = [](const std::string& round) {
    return "mov.f32 %f1, 0f3F800001;\nmov.f32 %f2, 0f00000000;\n" + round +
           "\nmma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f3, %f4, %f5, %f6}, {%r2, %r2, "
           "%r2, %r2}, {%r2, %r2}, {%f2, %f2, %f2, %f2};\nret;";
  };
  expect_found(body("mov.b32 %r2, %f1;"), body("cvt.rna.tf32.f32 %r2, %f1;"), "not rounded to TF32",
               threads(32));
  // NaN is one.
  EXPECT_EQ(fault_of(body("mov.u32 %r2, 0x7fffffff;"), threads(32)), "");
  // All lanes must take part.
  EXPECT_NE(
      fault_of(
          body("setp.eq.s32 %p1, %r1, 5;\n@%p1 bra $E;\nmov.u32 %r2, 0;\nbra $G;\n$E:\nret;\n$G:"),
          threads(32))
          .find("names lane 5"),
      std::string::npos);
}

// ---- barriers

TEST(PtxInterpreter, FindsDivergentBarriers) {
  const std::string lanes = "setp.lt.s32 %p1, %r1, 16;\n", warps = "setp.lt.s32 %p1, %r1, 32;\n";
  expect_found(lanes + "@%p1 bar.sync 0;\nret;", lanes + "bar.sync 0;\nret;",
               "bar.sync by a part of a warp", threads(64));
  expect_found(lanes + "@%p1 bra $A;\nbar.sync 0;\nbra $B;\n$A:\nbar.sync 0;\n$B:\nret;",
               lanes + "@%p1 bra $A;\n$A:\nbar.sync 0;\nret;", "others that never come",
               threads(64));
  expect_found(warps + "@%p1 bra $A;\nbar.sync 0;\nbra $B;\n$A:\nbar.sync 0;\n$B:\nret;",
               warps + "@%p1 bra $A;\n$A:\nbar.sync 0;\nret;", "wait at different barriers",
               threads(64));
  // Threads that have ended are waited for by nobody.
  EXPECT_EQ(fault_of(warps + "@%p1 ret;\nbar.sync 0;\nret;", threads(64)), "");
  EXPECT_EQ(fault_of(lanes + "@%p1 ret;\nbar.sync 0;\nret;", threads(64)), "");
}

TEST(PtxInterpreter, FindsBranchesThatAreNotUniform) {
  expect_found("setp.lt.s32 %p1, %r1, 16;\n@%p1 bra.uni $A;\n$A:\nret;",
               "setp.lt.s32 %p1, %r1, 99;\n@%p1 bra.uni $A;\n$A:\nret;", "bra.uni", threads(32));
}

TEST(PtxInterpreter, FindsDivisionByZeroAndNotesOverflow) {
  for (const std::string type : {"s32", "u32", "s64", "u64"})
    for (const std::string op : {"div.", "rem."}) {
      const std::string r = type.ends_with("32") ? "%r" : "%rd";
      const auto body = [&](const std::string& by) {
        return "mov.u" + type.substr(1) + " " + r + "5, 7;\nmov.u" + type.substr(1) + " " + r +
               "6, " + by + ";\n" + op + type + " " + r + "7, " + r + "5, " + r + "6;\nret;";
      };
      expect_found(body("0"), body("2"), "division by zero");
    }
  EXPECT_NE(fault_of("mov.u32 %r2, 0x80000000;\nmov.u32 %r3, -1;\ndiv.s32 %r4, %r2, %r3;\nret;")
                .find("note: a quotient that overflows"),
            std::string::npos);
}

// ---- launches

TEST(PtxInterpreter, FindsBlocksThatNoDeviceOrKernelAllows) {
  const auto with = [](Dim grid, Dim block, const std::string& directives, u32 dynamic = 0,
                       u32 allowed = 48 * 1024, const char* device = "H100") -> std::string {
    Module module(one_kernel(".shared .align 4 .b8 a[1024];\nret;", 1, directives));
    Machine machine(1, device);
    module.find("k")->max_dynamic_shared = allowed;
    try {
      machine.run(*module.find("k"), grid, block, {0}, dynamic);
    } catch (const Fault& f) {
      return f.what();
    }
    return "";
  };
  EXPECT_NE(with({}, {65, 1, 1}, ".maxntid 64, 1, 1\n").find("more threads than .maxntid, 64"),
            std::string::npos);
  EXPECT_EQ(with({}, {64, 1, 1}, ".maxntid 64, 1, 1\n.minnctapersm 4\n"), "");
  EXPECT_EQ(with({}, {16, 4, 1}, ".maxntid 64\n"), "");
  EXPECT_NE(with({}, {1025, 1, 1}, ""), "");
  EXPECT_NE(with({}, {1, 1, 65}, ""), "");
  EXPECT_EQ(with({}, {1, 1, 64}, ""), "");
  EXPECT_NE(with({1, 65536, 1}, {}, ""), "");
  EXPECT_NE(with({0, 1, 1}, {}, ""), "");
  EXPECT_EQ(with({}, {}, "", 47 * 1024), "");
  EXPECT_NE(with({}, {}, "", 48 * 1024).find("more shared memory"), std::string::npos);
  EXPECT_EQ(with({}, {}, "", 100 * 1024, 100 * 1024), "");
  EXPECT_NE(with({}, {}, "", 101 * 1024, 100 * 1024).find("more shared memory"), std::string::npos);
  EXPECT_NE(with({}, {}, "", 100 * 1024, 100 * 1024, "L4").find("L4 does not hold"),
            std::string::npos);
  EXPECT_NE(with({}, {}, "", 227 * 1024, 227 * 1024).find("H100 does not hold"), std::string::npos);
  Module module(one_kernel("ret;"));
  Machine machine;
  EXPECT_THROW(machine.run(*module.find("k"), {}, {}, {1, 2}), Fault);
}

TEST(PtxInterpreter, HoldsAsManyBlocksAsTheDevice) {
  Module module(one_kernel(".shared .align 4 .b8 a[15360];\nret;"));
  const Kernel& k = *module.find("k");
  EXPECT_EQ(blocks_in_flight(device_named("H100"), k, 32, 0), 14u);   // 228 KB of 15 + 1
  EXPECT_EQ(blocks_in_flight(device_named("A100"), k, 32, 0), 10u);   // 164 KB
  EXPECT_EQ(blocks_in_flight(device_named("L4"), k, 32, 0), 6u);      // 100 KB
  EXPECT_EQ(blocks_in_flight(device_named("H100"), k, 1000, 0), 2u);  // 2048 threads, warps of 32
  EXPECT_EQ(blocks_in_flight(device_named("L4"), k, 1024, 0), 1u);    // 1536 threads
  EXPECT_EQ(blocks_in_flight(device_named("A100"), k, 32, 163 * 1024), 0u);
  EXPECT_EQ(blocks_in_flight(device_named("H100"), k, 1025, 0), 0u);
  EXPECT_THROW(device_named("P100"), std::invalid_argument);
}

TEST(PtxInterpreter, DynamicSharedMemoryBeginsBehindAllVariables) {
  const std::string extern_shared = ".extern .shared .align 16 .b8 dynamic[];\n";
  const std::string body =
      ".shared .align 4 .b8 a[100];\nmov.u32 %r10, dynamic;\nmul.lo.s32 %r11, %r1, 4;\nadd.s32 "
      "%r12, %r10, %r11;\nmov.u32 %r13, a;\n"
      "st.shared.u32 [a+96], %r1;\nst.shared.u32 [%r12], %r1;\nld.shared.u32 %r2, "
      "[dynamic];\ncvt.u64.u32 %rd8, %r10;\ncvta.shared.u64 %rd9, %rd8;\nld.u32 %r3, [%rd9];\n";
  Shape shape;
  shape.dynamic_shared = 4;
  EXPECT_EQ(fault_of(body + "ret;", shape, 1, "", extern_shared), "");
  EXPECT_NE(fault_of(body + "st.shared.u32 [%r12+4], 1;\nret;", shape, 1, "", extern_shared)
                .find("past the end of shared memory"),
            std::string::npos);
  EXPECT_NE(fault_of(body + "st.shared.u32 [dynamic+-4], 1;\nret;", shape, 1, "", extern_shared)
                .find("between variables"),
            std::string::npos);
  const auto back = [&](const std::string& from) {
    return fault_of(body + "cvta.to.shared.u64 %rd10, " + from +
                        ";\ncvt.u32.u64 %r14, %rd10;\nld.shared.u32 %r4, [%r14];\nret;",
                    shape, 1, "", extern_shared);
  };
  EXPECT_EQ(back("%rd9"), "");
  EXPECT_NE(back("%rd1").find("global memory as one of shared memory"), std::string::npos);
  EXPECT_NE(fault_of(body + "ld.global.u32 %r5, [%rd9];\nret;", shape, 1, "", extern_shared)
                .find("outside of device memory"),
            std::string::npos);
}

// ---- scheduling

/// A sum by a tree in shared memory, of blocks that add what they have atomically.
constexpr const char* kSumOfBlocks = R"(
    .shared .align 4 .b8 a[1024];
    ld.param.u64 %rd1, [k_param_0];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;
    mad.lo.s32 %r4, %r2, %r3, %r1;
    mul.wide.u32 %rd2, %r4, 4; add.s64 %rd3, %rd1, %rd2;
    ld.global.u32 %r5, [%rd3+16];
    mov.u32 %r6, a; shl.b32 %r7, %r1, 2; add.s32 %r8, %r6, %r7;
    st.shared.u32 [%r8], %r5;
    mov.u32 %r9, 128;
$L:
    bar.sync 0;
    setp.ge.u32 %p1, %r1, %r9;
    @%p1 bra $M;
    shl.b32 %r10, %r9, 2; add.s32 %r11, %r8, %r10;
    ld.shared.u32 %r12, [%r11]; ld.shared.u32 %r13, [%r8];
    add.s32 %r13, %r13, %r12;
    st.shared.u32 [%r8], %r13;
$M:
    shr.u32 %r9, %r9, 1;
    setp.ne.s32 %p2, %r9, 0;
    @%p2 bra $L;
    setp.ne.s32 %p3, %r1, 0;
    @%p3 ret;
    ld.shared.u32 %r14, [%r8];
    atom.global.add.u32 %r15, [%rd1], %r14;
    ret;)";

TEST(PtxInterpreter, ResultsAreTheSameWhateverTheOrder) {
  Module module(one_kernel(kSumOfBlocks));
  const u32 blocks = 300;
  std::vector<u32> values(4 + 256 * blocks);
  u32 sum = 0;
  std::mt19937 random(5);
  for (std::size_t k = 4; k < values.size(); ++k) sum += values[k] = random() % 1000;
  for (const char* device : {"H100", "L4"})
    for (u64 seed = 1; seed <= kSeeds; ++seed) {
      Machine machine(seed, device);
      const u64 at = machine.upload(values);
      machine.run(*module.find("k"), {blocks, 1, 1}, {256, 1, 1}, {at});
      EXPECT_EQ(machine.download<u32>(at, 1)[0], sum);
      EXPECT_EQ(machine.interpreter().totals().blocks, blocks);
      EXPECT_TRUE(machine.interpreter().notes().empty());
    }
}

TEST(PtxInterpreter, WithoutItsBarrierTheSumIsFoundWrongWhateverTheOrder) {
  std::string text = kSumOfBlocks;
  text.replace(text.find("bar.sync 0;"), 11, "           ");
  Module module(one_kernel(text));
  for (u64 seed = 1; seed <= kSeeds; ++seed) {
    Machine machine(seed);
    const u64 at = machine.upload(std::vector<u32>(4 + 256));
    EXPECT_THROW(machine.run(*module.find("k"), {}, {256, 1, 1}, {at}), Fault);
  }
}

/// Lanes, warps and blocks add to one counter: the order in which they came is one of many.
std::vector<u32> order_of_arrival(u64 seed, Dim grid, Dim block, const std::string& wait) {
  Module module(
      one_kernel("ld.param.u64 %rd1, [k_param_0];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, "
                 "%ctaid.x;\nmov.u32 %r3, %ntid.x;\nmad.lo.s32 %r4, %r2, %r3, %r1;\n" +
                 wait +
                 "atom.global.add.u32 %r5, [%rd1], 1;\nmul.wide.u32 %rd2, %r4, 4;\nadd.s64 %rd3, "
                 "%rd1, %rd2;\nst.global.u32 [%rd3+4], %r5;\nret;"));
  Machine machine(seed);
  const std::size_t n = grid.count() * block.count();
  const u64 at = machine.upload(std::vector<u32>(n + 1));
  machine.run(*module.find("k"), grid, block, {at});
  auto out = machine.download<u32>(at, n + 1);
  out.erase(out.begin());
  return out;
}

TEST(PtxInterpreter, BlocksWarpsAndLanesComeInManyOrders) {
  const auto differ = [](Dim grid, Dim block, const std::string& wait) {
    for (u64 seed = 2; seed <= kSeeds; ++seed)
      if (order_of_arrival(seed, grid, block, wait) != order_of_arrival(1, grid, block, wait))
        return true;
    return false;
  };
  EXPECT_TRUE(differ({6, 1, 1}, {1, 1, 1}, ""));
  EXPECT_TRUE(differ({1, 1, 1}, {256, 1, 1}, ""));
  // Lanes of one warp, which a branch has parted.
  EXPECT_TRUE(differ({1, 1, 1}, {32, 1, 1},
                     "and.b32 %r6, %r1, 1;\nsetp.eq.s32 %p1, %r6, 0;\n@%p1 bra $A;\nadd.s32 %r7, "
                     "%r1, 1;\nadd.s32 %r7, %r7, 1;\nadd.s32 %r7, %r7, 1;\n$A:\n"));
  // The same seed is the same order.
  EXPECT_EQ(order_of_arrival(3, {6, 1, 1}, {64, 1, 1}, ""),
            order_of_arrival(3, {6, 1, 1}, {64, 1, 1}, ""));
}

TEST(PtxInterpreter, ALaneMayWaitForAnotherOfItsWarp) {
  // Independent thread scheduling: lane 0 waits for a number that lane 1 adds behind the loop.
  EXPECT_EQ(fault_of("st.global.u32 [%rd3], 0;\nsetp.ne.s32 %p1, %r1, 0;\n@%p1 bra "
                     "$B;\n$A:\natom.global.add.u32 %r2, [%rd1+4096], 0;\nsetp.lt.u32 %p2, %r2, "
                     "1025;\n@%p2 bra $A;\nret;\n"
                     "$B:\nsetp.ne.s32 %p1, %r1, 1;\n@%p1 ret;\natom.global.add.u32 %r2, "
                     "[%rd1+4096], 1;\nret;",
                     threads(32)),
            "");
}

TEST(PtxInterpreter, BlocksThatWaitForEachOtherAreInFlightTogether) {
  Shape both;
  both.grid.x = 2;
  EXPECT_EQ(fault_of("atom.global.add.u32 %r2, [%rd1], 1;\n$A:\natom.global.add.u32 %r3, [%rd1], "
                     "0;\nsetp.lt.u32 %p1, %r3, 2;\n@%p1 bra $A;\nret;",
                     both),
            "");
}

}  // namespace
}  // namespace cudp::ptx
