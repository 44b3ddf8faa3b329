// What the interpreter says of a fault, and what its parser refuses.
#include <sstream>

#include <gtest/gtest.h>

#include "tests/support/ptx_faults.hpp"

namespace cudp::ptx {
namespace {

// ---- what is said

TEST(PtxInterpreter, AFaultSaysWhere) {
  const std::string text =
      "\n.version 9.0\n.target sm_80\n.address_size 64\n.visible .entry wrong(.param .u64 "
      "p)\n{\n.reg .b32 %r<3>;\n.reg .b64 %rd<3>;\n.reg .pred %p<2>;\n"
      "\t.loc\t1 5 3\n\tld.param.u64 %rd1, [p];\n\tmov.u32 %r1, %tid.y;\n\tsetp.ne.s32 %p1, %r1, "
      "2;\n\t@%p1 bra $E;\n"
      "\t.loc\t2 42 7, function_name $L__info_string0, inlined_at 1 6 3\n\tst.global.u32 "
      "\t[%rd1],\n\t%r1;\n$E:\n\tret;\n}\n"
      "\t.file\t1 \"kernels/a.cuh\"\n\t.file\t2 "
      "\"kernels/b.hpp\"\n\t.section\t.debug_str\n\t{\n$L__info_string0:\n.b8 95\n.b8 0\n}\n";
  Module module(text);
  EXPECT_EQ(module.kernels(), std::vector<std::string>{"wrong"});
  EXPECT_EQ(module.find("right"), nullptr);
  Machine machine;
  try {
    machine.run(*module.find("wrong"), {2, 1, 1}, {4, 3, 1}, {64});
    FAIL();
  } catch (const Fault& f) {
    const std::string what = f.what();
    EXPECT_NE(what.find("access outside of device memory"), std::string::npos) << what;
    EXPECT_NE(what.find("kernel wrong"), std::string::npos) << what;
    EXPECT_NE(what.find("block "), std::string::npos) << what;
    EXPECT_NE(what.find("thread 0,2,0 (lane 8 of warp 0)"), std::string::npos) << what;
    EXPECT_NE(what.find("line 16: st.global.u32  [%rd1],  %r1"), std::string::npos) << what;
    EXPECT_NE(what.find("source kernels/b.hpp:42"), std::string::npos) << what;
  }
}

// ---- what is not known

TEST(PtxInterpreter, WhatTheParserDoesNotKnowIsAFault) {
  const auto refused = [](const std::string& body, const std::string& reason = "unknown") {
    const std::string fault = fault_of(body + "\nret;");
    EXPECT_NE(fault.find(reason), std::string::npos) << body << ": " << fault;
  };
  EXPECT_EQ(fault_of("ret;"), "");
  // Opcodes, types and modifiers.
  for (const char* instruction : {"ex2.approx.f32 %f1, %f2;",
                                  "add.ftz.f32 %f1, %f2, %f3;",
                                  "add.sat.s32 %r2, %r1, %r1;",
                                  "add.f16 %rs1, %rs2, %rs3;",
                                  "add.rm.f32 %f1, %f2, %f3;",
                                  "setp.eq.and.s32 %p1, %r1, %r1, %p2;",
                                  "ld.volatile.shared.u32 %r2, [%rd1];",
                                  "ld.global.nc.u32 %r2, [%rd1];",
                                  "ld.local.u32 %r2, [%rd1];",
                                  "atom.global.max.u32 %r2, [%rd1], 1;",
                                  "atom.shared.max.u32 %r2, [%rd1], 1;",
                                  "red.global.add.u32 [%rd1], 1;",
                                  "cvt.u32.f32 %r2, %f1;",
                                  "cvt.rn.f32.f32 %f1, %f2;",
                                  "cvt.rzi.sat.s32.f32 %r2, %f1;",
                                  "cvt.rn.tf32.f32 %r2, %f1;",
                                  "call foo;",
                                  "trap;",
                                  "membar.sys;",
                                  "bar.arrive 0, 32;",
                                  "mov.b128 %r2, %r1;",
                                  "ld.global.v8.u32 {%r2, %r3}, [%rd1];",
                                  "ld.global.v4.u64 {%rd4, %rd5, %rd6, %rd7}, [%rd1];",
                                  "add.v2.u32 %r2, %r1, %r1;",
                                  "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%f1, %f2, "
                                  "%f3, %f4}, {%r1, %r1}, {%r1}, {%f1, %f2, %f3, %f4};",
                                  "cp.async.ca.shared.global [%r1], [%rd1], 4;",
                                  "cp.async.commit_group;",
                                  "shfl.bfly.b32 %r2, %r1, 1, 31;",
                                  "mov.b64 {2} %r2, %r1;"})
    refused(instruction);
  // Directives and pragmas.
  for (const char* directive :
       {".local .align 4 .b8 depot[16];", ".branchtargets a;", ".pragma \"unroll\";",
        ".reg .b128 %q<2>;", ".reg .v4 .b32 %v;", ".const .b32 c = 1;"})
    refused(directive);
  // Operands: numbers and widths.
  for (const char* instruction : {"add.s32 %r2, %r1;",
                                  "add.s32 %r2, %r1, %r1, %r1;",
                                  "add.s32 %r2, %rd1, %r1;",
                                  "add.s64 %rd4, %rd1, %r1;",
                                  "add.s16 %rs1, %r1, %rs2;",
                                  "add.s32 %rd4, %r1, %r1;",
                                  "add.s32 %r2, %r1, 0x1ffffffff;",
                                  "add.s32 %r2, %r1, %r64;",
                                  "add.s32 %r2, %r1, %clock;",
                                  "mov.u32 %tid.x, %r1;",
                                  "add.s32 5, %r1, %r1;",
                                  "add.f32 %f1, %f2, 0d3FF0000000000000;",
                                  "add.f64 %fd1, %fd2, 0f3F800000;",
                                  "setp.eq.s32 %r2, %r1, %r1;",
                                  "setp.eq.s32 %p1|%p2, %r1, %r1;",
                                  "selp.b32 %r2, %r1, %r1, 1;",
                                  "ld.global.u32 %r2, [%r1];",
                                  "ld.global.u32 %r2, %rd1;",
                                  "ld.global.u64 %r2, [%rd1];",
                                  "st.global.u32 [%rd1], %rs1;",
                                  "ld.global.v2.u32 {%r2}, [%rd1];",
                                  "ld.global.v2.u32 {%r2, %r3, %r4}, [%rd1];",
                                  "bar.sync 1;",
                                  "bra $nowhere;",
                                  "@%r1 bra $A;\n$A:",
                                  "$A:\n$A:",
                                  "cp.async.cg.shared.global [%r1], [%rd1+16], 16;",
                                  "cp.async.cg.shared.global [%r1], [%rd1], 8;",
                                  "mov.b64 {%r2, %r3}, %r1;",
                                  "mov.b64 {%r2, %r3, %r4}, %rd1;",
                                  "shfl.sync.bfly.b32 %r2|%r3, %r1, 1, 31, -1;",
                                  "add.s32 %r2, %r1, 010;",
                                  "mov.u32 %r2, unknown_name;"})
    refused(instruction);
  refused("bar.sync 0, 32;", "a named barrier that no device has");
  // What is unknown is said with its place.
  const std::string fault = fault_of("mov.u32 %r2, 1;\nfrobnicate.b32 %r2, %r1;\nret;");
  EXPECT_NE(fault.find("unknown instruction frobnicate.b32"), std::string::npos) << fault;
  EXPECT_NE(fault.find("kernel k, line 22"), std::string::npos) << fault;
  // Outside of kernels, and between their names and bodies.
  for (const char* before : {".global .align 4 .b8 g[16];", ".const .align 4 .b8 c[4];",
                             ".func f() { ret; }", ".alias a, b;", ".visible .func f();"})
    EXPECT_NE(fault_of("ret;", {}, 1, "", before), "") << before;
  for (const char* directive : {".reqntid 32", ".maxnreg 32", ".maxclusterrank 2", ".noreturn"})
    EXPECT_NE(fault_of("ret;", {}, 1, directive + std::string("\n")), "") << directive;
  for (const char* module : {".target compute_80\n", ".target sm_80, texmode_independent\n",
                             ".address_size 32\n", ".section .nv.info { }\n", "nonsense\n"})
    EXPECT_THROW(Module{module}, Fault) << module;
  EXPECT_NO_THROW(Module{".version 9.0\n.target sm_100a\n.address_size 64\n"});
  // A kernel that runs on behind its end.
  EXPECT_NE(fault_of("add.s32 %r2, %r1, 1;"), "");
}

// What nvcc 13.0 makes of our kernels, for compute_80 and compute_100.
constexpr const char* kInstructions =
    "add.f32 add.f64 add.rn.f64 add.rz.f32 add.s16 add.s32 add.s64 and.b16 and.b32 and.b64 "
    "and.pred atom.global.add.u32 atom.global.add.u64 bar.sync bar.warp.sync bfe.u32 bfi.b32 "
    "bfi.b64 bfind.shiftamt.u32 bra bra.uni brev.b32 cp.async.cg.shared.global cp.async.wait_all "
    "cvt.f32.f16 cvt.f64.f32 cvt.rmi.f64.f64 cvt.rn.f16x2.f32 cvt.rn.f32.f64 cvt.rn.f32.s32 "
    "cvt.rn.f32.u16 cvt.rn.f32.u32 cvt.rn.f64.s32 cvt.rn.f64.s64 cvt.rn.f64.u16 cvt.rn.f64.u32 "
    "cvt.rn.f64.u64 cvt.rna.tf32.f32 cvt.rni.f64.f64 cvt.rni.s32.f32 cvt.rpi.f64.f64 "
    "cvt.rzi.f64.f64 cvt.rzi.s64.f64 cvt.rzi.u64.f64 cvt.s16.s8 cvt.s32.s16 cvt.s32.s8 cvt.s64.s32 "
    "cvt.s8.s32 cvt.s8.s64 cvt.u16.u32 cvt.u16.u64 cvt.u32.u16 cvt.u32.u64 cvt.u64.u32 "
    "cvta.shared.u64 cvta.to.global.u64 cvta.to.shared.u64 div.rn.f32 div.rn.f64 div.s32 div.s64 "
    "div.u32 div.u64 fma.rn.f16x2 fma.rn.f32 fma.rn.f64 ld.f32 ld.global.f32 ld.global.f64 "
    "ld.global.s32 ld.global.u16 ld.global.u32 ld.global.u64 ld.global.u8 ld.param.f32 "
    "ld.param.f64 ld.param.s32 ld.param.u32 ld.param.u64 ld.param.u8 ld.s32 ld.shared.f32 "
    "ld.shared.f64 ld.shared.u32 ld.shared.u64 ld.shared.u8 ld.u32 "
    "ldmatrix.sync.aligned.m8n8.x2.shared.b16 ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 "
    "ldmatrix.sync.aligned.m8n8.x4.shared.b16 ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 "
    "mad.lo.s16 mad.lo.s32 mad.lo.s64 max.f32 max.s32 max.s64 max.u32 max.u64 min.f32 min.s32 "
    "min.s64 mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 mov.b32 mov.b64 mov.f32 mov.f64 mov.pred "
    "mov.u16 mov.u32 mov.u64 mul.f32 mul.f64 mul.hi.s16 mul.hi.s32 mul.hi.u16 mul.hi.u32 "
    "mul.lo.s16 mul.lo.s32 mul.lo.s64 mul.rn.f64 mul.wide.s16 mul.wide.s32 mul.wide.u16 "
    "mul.wide.u32 neg.f32 neg.f64 neg.s32 neg.s64 not.b32 not.b64 not.pred or.b32 or.b64 or.pred "
    "popc.b32 prmt.b32 rcp.approx.ftz.f64 rcp.rn.f32 rcp.rn.f64 rem.s32 rem.s64 rem.u32 rem.u64 "
    "ret selp.b16 selp.b32 selp.b64 selp.f32 selp.f64 selp.s32 selp.u16 selp.u32 selp.u64 "
    "setp.eq.b32 setp.eq.b64 setp.eq.f32 setp.eq.f64 setp.eq.s16 setp.eq.s32 setp.eq.s64 "
    "setp.equ.f32 setp.ge.s32 setp.ge.s64 setp.ge.u32 setp.geu.f32 setp.geu.f64 setp.gt.f32 "
    "setp.gt.f64 setp.gt.s32 setp.gt.s64 setp.gt.u32 setp.gt.u64 setp.le.f32 setp.le.s32 "
    "setp.le.s64 setp.le.u32 setp.le.u64 setp.leu.f32 setp.leu.f64 setp.lt.f32 setp.lt.f64 "
    "setp.lt.s32 setp.lt.s64 setp.lt.u32 setp.lt.u64 setp.ltu.f32 setp.ltu.f64 setp.nan.f32 "
    "setp.ne.f32 setp.ne.s16 setp.ne.s32 setp.ne.s64 setp.neu.f32 setp.neu.f64 shf.l.wrap.b32 "
    "shf.r.wrap.b32 shfl.sync.bfly.b32 shfl.sync.up.b32 shl.b16 shl.b32 shl.b64 shr.s16 shr.s32 "
    "shr.s64 shr.u16 shr.u32 shr.u64 sqrt.rn.f32 sqrt.rn.f64 st.global.f32 st.global.f64 "
    "st.global.u16 st.global.u32 st.global.u64 st.global.u8 st.shared.f32 st.shared.f64 "
    "st.shared.u32 st.shared.u64 st.shared.u8 sub.f32 sub.f64 sub.s16 sub.s32 sub.s64 "
    "vote.sync.ballot.b32 xor.b32 xor.pred ";

TEST(PtxInterpreter, KnowsEveryInstructionThatNvccMakes) {
  std::istringstream all(kInstructions);
  int count = 0;
  for (std::string name; all >> name; ++count) EXPECT_NE(find_operation(name), nullptr) << name;
  EXPECT_GT(count, 200);
}

TEST(PtxInterpreter, ReadsWhatNvccWrites) {
  EXPECT_EQ(fault_of("{ .reg .b32 %temp; mov.b64 {%temp, %r5}, %rd1; }\n{ .reg .b64 %temp; mov.b64 "
                     "%temp, %rd1; }\n"
                     "// begin inline asm\nmov.u32 %r6, %tid.x;\n// end inline asm\n.pragma "
                     "\"nounroll\";\n/* a { brace */ ret;"),
            "");
  Module module(one_kernel("ret;", 1, ".maxntid 128, 2, 1\n.minnctapersm 2\n"));
  EXPECT_EQ(module.find("k")->max_threads, 256u);
  Module parameters(
      ".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry k(\n.param .u32 "
      "k_param_0,\n.param .align 8 .b8 k_param_1[12],\n.param .u64 .ptr .align 1 "
      "k_param_2\n)\n{\nret;\n}\n");
  const Kernel& k = *parameters.find("k");
  ASSERT_EQ(k.parameters.size(), 3u);
  EXPECT_EQ(k.parameters[0].bytes, 4u);
  EXPECT_EQ(k.parameters[1].at, 8u);
  EXPECT_EQ(k.parameters[1].bytes, 12u);
  EXPECT_EQ(k.parameters[2].at, 24u);
  EXPECT_EQ(k.parameter_bytes, 32u);
}

}  // namespace
}  // namespace cudp::ptx
