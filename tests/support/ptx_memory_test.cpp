// The interpreter finds accesses to memory and registers that are wrong, and not their right twins.

#include <gtest/gtest.h>

#include "tests/support/ptx_faults.hpp"

namespace cudp::ptx {
namespace {

// ---- memory

TEST(PtxInterpreter, FindsAccessesOutsideOfAllocations) {
  expect_found("ld.global.u32 %r2, [%rd1+16384];\nret;", "ld.global.u32 %r2, [%rd1+16380];\nret;",
               "outside of device memory");
  expect_found("st.global.u32 [%rd1+-4], %r1;\nret;", "st.global.u32 [%rd1], %r1;\nret;",
               "outside of device memory");
  Shape odd;
  odd.words = 3;
  expect_found("ld.global.v2.u32 {%r2, %r3}, [%rd1+8];\nret;",
               "ld.global.v2.u32 {%r2, %r3}, [%rd1];\nret;",
               "past the end of an allocation of 12 bytes", odd);
  expect_found("mov.u64 %rd4, 0;\nst.global.u32 [%rd4], %r1;\nret;",
               "st.global.u32 [%rd1], %r1;\nret;", "outside of device memory");
}

TEST(PtxInterpreter, FindsMisalignedAccesses) {
  expect_found("ld.global.u32 %r2, [%rd1+2];\nret;", "ld.global.u16 %rs1, [%rd1+2];\nret;",
               "misaligned access to global memory");
  expect_found("ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1+8];\nret;",
               "ld.global.v2.f32 {%f1, %f2}, [%rd1+8];\nret;",
               "misaligned access to global memory");
  expect_found(".shared .align 16 .b8 a[64];\nst.shared.v4.u32 [a+4], {%r1, %r1, %r1, %r1};\nret;",
               ".shared .align 16 .b8 a[64];\nst.shared.v4.u32 [a+16], {%r1, %r1, %r1, %r1};\nret;",
               "misaligned access to shared memory");
  expect_found("ld.param.u32 %r2, [k_param_0+2];\nret;", "ld.param.u32 %r2, [k_param_0+4];\nret;",
               "misaligned access to parameters");
}

TEST(PtxInterpreter, FindsWrongRowsOfMatrices) {
  const std::string fill =
      ".shared .align 16 .b8 a[512];\nmov.u32 %r4, a;\nshl.b32 %r5, %r1, 4;\n"
      "add.s32 %r4, %r4, %r5;\nst.shared.v4.u32 [%r4], {%r1, %r1, %r1, %r1};\n"
      "bar.warp.sync -1;\n";
  const auto load = [&](const std::string& offset) {
    return fill + "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r6, %r7, %r8, %r9}, [%r4" + offset +
           "];\nret;";
  };
  expect_found(load("+8"), load("+0"), "misaligned access to shared memory", threads(32));
  expect_found(load("+16"), load(""), "past the end of shared memory", threads(32));
  // The addresses of lanes beyond 8 for each matrix are not used.
  const std::string two = "setp.gt.s32 %p1, %r1, 15;\n@%p1 mov.u32 %r4, 7;\n";
  EXPECT_EQ(fault_of(fill + two +
                         "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r6, %r7}, "
                         "[%r4];\nret;",
                     threads(32)),
            "");
  EXPECT_NE(fault_of(fill + "setp.lt.s32 %p1, %r1, 16;\n@%p1 ldmatrix.sync.aligned.m8n8.x1.shared."
                            "b16 {%r6}, [%r4];\nret;",
                     threads(32)),
            "");
}

TEST(PtxInterpreter, FindsAccessesBetweenAndBehindSharedVariables) {
  const std::string variables = ".shared .align 4 .b8 a[128];\n.shared .align 4 .b8 b[128];\n";
  expect_found(variables + "st.shared.u32 [a+128], %r1;\nret;",
               variables + "st.shared.u32 [a+124], %r1;\nret;", "between variables");
  expect_found(variables + "st.shared.u32 [b+128], %r1;\nret;",
               variables + "st.shared.u32 [b+124], %r1;\nret;", "past the end of shared memory");
}

TEST(PtxInterpreter, FindsAccessesBehindTheParameters) {
  expect_found("ld.param.u64 %rd4, [k_param_0+8];\nret;", "ld.param.u64 %rd4, [k_param_0];\nret;",
               "past the end of the parameters");
  expect_found("mov.b64 %rd4, k_param_0;\nadd.s64 %rd4, %rd4, 8;\nld.param.u32 %r2, [%rd4];\nret;",
               "mov.b64 %rd4, k_param_0;\nadd.s64 %rd4, %rd4, 4;\nld.param.u32 %r2, [%rd4];\nret;",
               "past the end of the parameters");
}

TEST(PtxInterpreter, FindsMemoryThatNobodyWrote) {
  Shape unwritten;
  unwritten.written = false;
  expect_found("ld.global.u32 %r2, [%rd1];\nret;",
               "st.global.u32 [%rd1], %r1;\nld.global.u32 %r2, [%rd1];\nret;",
               "memory that nobody wrote", unwritten);
  expect_found(
      "st.global.u8 [%rd1], %r1;\nld.global.u16 %rs1, [%rd1];\nret;",
      "st.global.u8 [%rd1], %r1;\nst.global.u8 [%rd1+1], %r1;\nld.global.u16 %rs1, [%rd1];\nret;",
      "memory that nobody wrote", unwritten);
  expect_found("atom.global.add.u32 %r2, [%rd1], 1;\nret;",
               "st.global.u32 [%rd1], %r1;\natom.global.add.u32 %r2, [%rd1], 1;\nret;",
               "memory that nobody wrote", unwritten);
  const std::string a = ".shared .align 4 .b8 a[128];\n";
  expect_found(a + "ld.shared.u32 %r2, [a+8];\nret;",
               a + "st.shared.u32 [a+8], %r1;\nld.shared.u32 %r2, [a+8];\nret;",
               "memory that nobody wrote");
  // Shared memory of an earlier block is not written memory.
  Shape two;
  two.grid.x = 2000;
  expect_found(a + "mov.u32 %r2, %ctaid.x;\nsetp.ne.s32 %p1, %r2, 0;\n@!%p1 st.shared.u32 [a], "
                   "%r1;\nld.shared.u32 %r2, [a];\nret;",
               a + "st.shared.u32 [a], %r1;\nld.shared.u32 %r2, [a];\nret;",
               "memory that nobody wrote", two);
}

TEST(PtxInterpreter, DoesNotAskForBytesThatALoadDoesNotUse) {
  Shape unwritten;
  unwritten.written = false;
  const std::string half = "st.global.v2.u32 [%rd1], {%r1, %r1};\n";
  const std::string load = "ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd1];\nret;";
  expect_found(half + load, half + ".pragma \"used_bytes_mask 255\";\n" + load,
               "memory that nobody wrote", unwritten);
  expect_found(half + ".pragma \"used_bytes_mask 511\";\n" + load,
               half + ".pragma \"used_bytes_mask 15\";\n" + load, "memory that nobody wrote",
               unwritten);
}

TEST(PtxInterpreter, FindsRegistersThatNobodyWrote) {
  expect_found("add.s32 %r2, %r3, 1;\nret;", "mov.u32 %r3, 5;\nadd.s32 %r2, %r3, 1;\nret;",
               "a register is read that nobody has written");
  expect_found("selp.b32 %r2, 1, 2, %p1;\nret;",
               "setp.eq.s32 %p1, %r1, 0;\nselp.b32 %r2, 1, 2, %p1;\nret;",
               "a register is read that nobody has written");
  expect_found("@%p1 mov.u32 %r2, 1;\nret;", "setp.eq.s32 %p1, %r1, 0;\n@%p1 mov.u32 %r2, 1;\nret;",
               "a predicate is read that nobody has written");
  // Some lanes write it, and only those may read it.
  const std::string some = "setp.lt.s32 %p1, %r1, 7;\n@%p1 mov.u32 %r2, 1;\n";
  expect_found(some + "add.s32 %r3, %r2, 1;\nret;", some + "@%p1 add.s32 %r3, %r2, 1;\nret;",
               "a register is read that nobody has written", threads(32));
  const std::string branch = "setp.lt.s32 %p1, %r1, 7;\n@%p1 bra $A;\nmov.u32 %r2, 1;\n$A:\n";
  expect_found(branch + "add.s32 %r3, %r2, 1;\nret;", branch + "@!%p1 add.s32 %r3, %r2, 1;\nret;",
               "a register is read that nobody has written", threads(32));
  // A value that a lane wrote in an earlier round of a loop is one.
  EXPECT_EQ(
      fault_of(
          "mov.u32 %r4, 0;\n$L:\nsetp.eq.s32 %p1, %r4, 0;\n@%p1 bra $M;\nadd.s32 %r3, %r2, "
          "1;\n$M:\n"
          "mov.u32 %r2, 5;\nadd.s32 %r4, %r4, 1;\nsetp.lt.s32 %p1, %r4, 3;\n@%p1 bra $L;\nret;",
          threads(40)),
      "");
}

}  // namespace
}  // namespace cudp::ptx
