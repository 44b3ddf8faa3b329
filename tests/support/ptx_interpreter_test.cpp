// The interpreter's checks, each on a text that is wrong and on its twin that is right; how lanes,
// warps and blocks run; and what the parser refuses.
#include <bit>
#include <random>
#include <sstream>

#include <gtest/gtest.h>

#include "tests/support/ptx_machine.hpp"

namespace cudp::ptx {
namespace {

constexpr u64 kSeeds = 8;

struct Shape {
  Dim grid, block;
  u32 dynamic_shared = 0;
  u64 words = 4096;     ///< of the memory that is the only parameter
  bool written = true;  ///< its words are then 0, 1, 2, ...
  u32 launches = 1;
};

/// What is wrong with a text, or nothing. %rd1 is the memory's address, %r1 the thread, %rd3 the
/// address of the thread's word.
std::string fault_of(const std::string& body, const Shape& shape = {}, u64 seed = 1,
                     const std::string& directives = "", const std::string& before = "") {
  const std::string text = one_kernel(
      "ld.param.u64 %rd1, [k_param_0];\ncvta.to.global.u64 %rd1, %rd1;\nmov.u32 %r1, %tid.x;\n"
      "mul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\n" +
          body,
      1, directives, before);
  try {
    Module module(text);
    Machine machine(seed);
    Kernel& kernel = *module.find("k");
    std::vector<u32> values(shape.words);
    for (u32 k = 0; k < shape.words; ++k) values[k] = k;
    const u64 address = shape.written ? machine.upload(values) : machine.allocate(4 * shape.words);
    for (u32 n = 0; n < shape.launches; ++n)
      machine.run(kernel, shape.grid, shape.block, {address}, shape.dynamic_shared);
    for (const auto& [note, count] : machine.interpreter().notes()) return "note: " + note;
  } catch (const Fault& fault) {
    return fault.what();
  }
  return "";
}

/// Whatever the seed: the wrong text is found wrong, for that reason, and its twin is right.
void expect_found(const std::string& wrong, const std::string& right, const std::string& reason,
                  const Shape& shape = {}) {
  for (u64 seed = 1; seed <= kSeeds; ++seed) {
    EXPECT_NE(fault_of(wrong, shape, seed).find(reason), std::string::npos)
        << fault_of(wrong, shape, seed);
    EXPECT_EQ(fault_of(right, shape, seed), "");
  }
}

Shape threads(u32 count) { return {{1, 1, 1}, {count, 1, 1}}; }

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

// ---- races in a block

/// %r12: the thread's word of shared memory, %r13: that of the neighbouring lane, %r14: that of the
/// neighbouring warp. All have been written, and a barrier is behind that.
const std::string kShared =
    ".shared .align 4 .b8 a[4096];\nmov.u32 %r10, a;\nmul.lo.s32 %r11, %r1, 4;\n"
    "add.s32 %r12, %r10, %r11;\nxor.b32 %r13, %r1, 1;\nmul.lo.s32 %r13, %r13, 4;\n"
    "add.s32 %r13, %r10, %r13;\nxor.b32 %r14, %r1, 32;\nmul.lo.s32 %r14, %r14, 4;\n"
    "add.s32 %r14, %r10, %r14;\nst.shared.u32 [%r12], 0;\nbar.sync 0;\n";

TEST(PtxInterpreter, FindsRacesInSharedMemoryWhateverTheOrder) {
  const std::string write = "st.shared.u32 [%r12], %r1;\n", warps = "ld.shared.u32 %r2, [%r14];\n",
                    barrier = "bar.sync 0;\n";
  expect_found(kShared + write + warps + "ret;", kShared + write + barrier + warps + "ret;",
               "race: a ", threads(64));
  // Write after read.
  expect_found(kShared + write + barrier + warps + write + "ret;",
               kShared + write + barrier + warps + barrier + write + "ret;", "race: a ",
               threads(64));
  // Two that write, even the same number.
  expect_found(kShared + "st.shared.u32 [a], 1;\nret;",
               kShared + "setp.eq.s32 %p1, %r1, 0;\n@%p1 st.shared.u32 [a], 1;\nret;",
               "race: a write after another thread's write", threads(64));
  expect_found(kShared +
                   "setp.eq.s32 %p1, %r1, 33;\n@%p1 st.shared.u32 [a], 1;\n@!%p1 bra $E;\nbra "
                   "$F;\n$E:\nsetp.eq.s32 %p2, %r1, 0;\n@%p2 st.shared.u32 [a], 1;\n$F:\nret;",
               kShared +
                   "setp.eq.s32 %p1, %r1, 33;\n@%p1 st.shared.u32 [a], 1;\nbar.sync "
                   "0;\nsetp.eq.s32 %p2, %r1, 0;\n@%p2 st.shared.u32 [a], 1;\nret;",
               "race: a write after another thread's write", threads(64));
}

TEST(PtxInterpreter, FindsRacesBetweenLanesOfAWarp) {
  const std::string write = "st.shared.u32 [%r12], %r1;\n", lanes = "ld.shared.u32 %r2, [%r13];\n",
                    barrier = "bar.warp.sync -1;\n";
  expect_found(kShared + write + lanes + "ret;", kShared + write + barrier + lanes + "ret;",
               "race: a read", threads(32));
  expect_found(kShared + write + barrier + lanes + write + "ret;",
               kShared + write + barrier + lanes + barrier + write + "ret;",
               "race: a write after another thread's read", threads(32));
  // A warp's barrier orders nothing between warps.
  const std::string warps = "ld.shared.u32 %r2, [%r14];\n";
  expect_found(kShared + write + barrier + warps + "ret;",
               kShared + write + "bar.sync 0;\n" + warps + "ret;", "race: a ", threads(64));
  // A shuffle is no barrier of memory.
  expect_found(kShared + write + "shfl.sync.bfly.b32 %r5|%p1, %r1, 1, 31, -1;\n" + lanes + "ret;",
               kShared + write + barrier + lanes + "ret;", "race: a read", threads(32));
  // What lanes read before a warp's barrier is ordered before what is written behind it, also where
  // others have read since.
  EXPECT_EQ(fault_of(kShared + write + barrier + lanes + barrier +
                         "setp.eq.s32 %p1, %r1, 3;\n@%p1 ld.shared.u32 %r3, [%r12];\n@%p1 "
                         "st.shared.u32 [%r12], 5;\nret;",
                     threads(32)),
            "");
}

TEST(PtxInterpreter, FindsRacesInGlobalMemoryOfOneBlock) {
  const std::string
      write = "st.global.u32 [%rd3], %r1;\n",
      other = "xor.b32 %r4, %r1, 32;\nmul.wide.u32 %rd4, %r4, 4;\nadd.s64 %rd4, %rd1, %rd4;\n";
  expect_found(other + write + "ld.global.u32 %r2, [%rd4];\nret;",
               other + write + "bar.sync 0;\nld.global.u32 %r2, [%rd4];\nret;", "race: a ",
               threads(64));
}

TEST(PtxInterpreter, KnowsNeighbouringBytesApart) {
  const std::string byte = "cvt.u64.u32 %rd4, %r1;\nadd.s64 %rd5, %rd1, %rd4;\n";
  // Each lane reads and writes its own byte.
  EXPECT_EQ(
      fault_of(
          byte + "ld.global.u8 %r2, [%rd5];\nadd.s32 %r2, %r2, 1;\nst.global.u8 [%rd5], %r2;\nret;",
          threads(64)),
      "");
  expect_found(byte + "st.global.u8 [%rd5+1], %r1;\nst.global.u8 [%rd5], %r1;\nret;",
               byte + "st.global.u8 [%rd5], %r1;\nret;",
               "race: a write after another thread's write", threads(64));
  const std::string a =
      ".shared .align 4 .b8 a[64];\nmov.u32 %r10, a;\nadd.s32 %r11, %r10, %r1;\n"
      "st.shared.u8 [%r11], 0;\nbar.sync 0;\n";
  expect_found(a + "st.shared.u8 [%r11], %r1;\nld.shared.u32 %r2, [a];\nret;",
               a + "st.shared.u8 [%r11], %r1;\nbar.sync 0;\nld.shared.u32 %r2, [a];\nret;",
               "race: a ", threads(64));
}

// ---- races between blocks and launches

TEST(PtxInterpreter, FindsRacesBetweenBlocks) {
  Shape blocks;
  blocks.grid.x = 3;
  const std::string own =
      "mov.u32 %r2, %ctaid.x;\nmul.wide.u32 %rd4, %r2, 4;\nadd.s64 %rd5, %rd1, %rd4;\n";
  expect_found(own + "st.global.u32 [%rd1], %r2;\nret;", own + "st.global.u32 [%rd5], %r2;\nret;",
               "race: two blocks of the launch write", blocks);
  expect_found(own + "st.global.u32 [%rd5], %r2;\nld.global.u32 %r3, [%rd1];\nret;",
               own + "st.global.u32 [%rd5], %r2;\nld.global.u32 %r3, [%rd5];\nret;", "race: a ",
               blocks);
  // bar.sync is one of a block.
  expect_found(own + "bar.sync 0;\nst.global.u32 [%rd1], %r2;\nbar.sync 0;\nret;",
               own + "bar.sync 0;\nst.global.u32 [%rd5], %r2;\nret;",
               "race: two blocks of the launch write", blocks);
  // More blocks than are in flight at once.
  blocks.grid.x = 9000;
  blocks.words = 9000;
  expect_found(own +
                   "setp.eq.s32 %p1, %r2, 8999;\n@%p1 st.global.u32 [%rd1], 7;\nsetp.eq.s32 %p2, "
                   "%r2, 5;\n@%p2 ld.global.u32 %r3, [%rd1];\nret;",
               own + "ld.global.u32 %r3, [%rd1];\nret;", "race: a ", blocks);
}

TEST(PtxInterpreter, AtomicsMayMeetEachOtherButNoPlainAccess) {
  Shape blocks;
  blocks.grid.x = 5;
  blocks.block.x = 64;
  const std::string add = "atom.global.add.u32 %r2, [%rd1], 1;\n";
  EXPECT_EQ(fault_of(add + "ret;", blocks), "");
  // An atomic that becomes a plain addition.
  expect_found("ld.global.u32 %r2, [%rd1];\nadd.s32 %r2, %r2, 1;\nst.global.u32 [%rd1], %r2;\nret;",
               add + "ret;", "race: ", blocks);
  expect_found(add + "ld.global.u32 %r3, [%rd1];\nret;", add + "ld.global.u32 %r3, [%rd1+4];\nret;",
               "race: a read", blocks);
  expect_found(add + "bar.sync 0;\nsetp.eq.s32 %p1, %r1, 0;\n@%p1 st.global.u32 [%rd1], 0;\nret;",
               add + "ret;", "race: ", blocks);
  // In one block a barrier is enough, but it takes one: also for the lane that added last.
  expect_found(add + "setp.eq.s32 %p1, %r1, 0;\n@%p1 ld.global.u32 %r3, [%rd1];\nret;",
               add + "bar.sync 0;\nld.global.u32 %r3, [%rd1];\nret;",
               "race: a read after another thread's write", threads(64));
}

TEST(PtxInterpreter, AddsAtomically) {
  Module module(one_kernel(
      "ld.param.u64 %rd1, [k_param_0];\nmov.u32 %r1, %tid.x;\natom.global.add.u32 %r2, [%rd1], 1;\n"
      "cvt.u64.u32 %rd2, %r1;\natom.global.add.u64 %rd3, [%rd1+8], %rd2;\nmul.wide.u32 %rd4, %r2, "
      "4;\nadd.s64 %rd4, %rd1, %rd4;\n"
      "st.global.u32 [%rd4+16], 1;\nret;"));
  for (u64 seed = 1; seed <= kSeeds; ++seed) {
    Machine machine(seed);
    std::vector<u32> zeros(4 + 7 * 50);
    const u64 at = machine.upload(zeros);
    machine.run(*module.find("k"), {7, 1, 1}, {50, 1, 1}, {at});
    const auto words = machine.download<u32>(at, zeros.size());
    EXPECT_EQ(words[0], 350u);
    EXPECT_EQ(words[2], 7u * 49 * 50 / 2);
    // Each thread got another place.
    for (std::size_t k = 4; k < words.size(); ++k) EXPECT_EQ(words[k], 1u);
  }
}

/// Streams: only what is in `ended` has ended.
class Streams final : public Order {
 public:
  Streams() { all_before_ = false; }
  std::vector<std::pair<u32, u32>> ended;

 private:
  bool known_before(u32 interval) const override {
    for (const auto& [from, to] : ended)
      if (interval >= from && interval < to) return true;
    return false;
  }
};

TEST(PtxInterpreter, FindsRacesBetweenLaunchesThatNothingOrders) {
  Module writes(one_kernel("ld.param.u64 %rd1, [k_param_0];\nst.global.u32 [%rd1], 1;\nret;"));
  Module reads(one_kernel("ld.param.u64 %rd1, [k_param_0];\nld.global.u32 %r1, [%rd1];\nret;"));
  for (const bool ordered : {false, true})
    for (const bool first_writes : {false, true}) {
      Machine machine;
      const u64 at = machine.upload<u32>({0, 0});
      const u32 begin = machine.interpreter().next_interval();
      Streams order;
      order.ended = {{0, begin}};
      machine.run(*(first_writes ? writes : reads).find("k"), {}, {}, {at}, 0, order);
      if (ordered) order.ended.push_back({order.first, machine.interpreter().next_interval()});
      const auto second = [&] {
        machine.run(*(first_writes ? reads : writes).find("k"), {}, {}, {at}, 0, order);
      };
      if (ordered) {
        EXPECT_NO_THROW(second());
      } else {
        EXPECT_THROW(second(), Fault);
      }
    }
}

TEST(PtxInterpreter, FindsCopiesAndFillsThatNothingOrders) {
  Module writes(one_kernel("ld.param.u64 %rd1, [k_param_0];\nst.global.u8 [%rd1+1003], 1;\nret;"));
  const u64 words = 1000;
  for (const Access kind : {Access::read, Access::write}) {
    Machine machine;
    const u64 at = machine.upload(std::vector<u32>(words));
    const u32 begin = machine.interpreter().next_interval();
    Streams before;  // the upload has ended, and nothing else
    before.ended = {{0, begin}};
    machine.run(*writes.find("k"), {}, {}, {at}, 0, before);
    const auto touches = [&](u64 from, u64 to, Access how, Order& order) -> std::string {
      Toucher host;
      host.interval = order.first = machine.interpreter().next_interval();
      try {
        machine.memory().range(at + from, to - from, how, host, order, "a copy");
      } catch (const Fault& f) {
        return f.what();
      }
      return "";
    };
    // Whole stretches, their parts, and single bytes, with and without the byte that is written.
    EXPECT_NE(touches(0, 4 * words, kind, before).find("nothing orders it"), std::string::npos);
    EXPECT_NE(touches(1000, 1004, kind, before).find("1000 bytes into"), std::string::npos);
    EXPECT_NE(touches(1003, 1004, kind, before), "");
    if (kind == Access::read) {
      EXPECT_EQ(touches(0, 1003, kind, before), "");
    }
    OneAfterTheOther after;
    EXPECT_EQ(touches(0, 4 * words, kind, after), "");
    // What that copy touched is touched as a whole now: what nothing orders behind it is found.
    EXPECT_EQ(touches(2048, 2052, Access::read, before) == "", kind == Access::read);
    EXPECT_NE(touches(2048, 2304, Access::write, before), "");
  }
  // A read of what was filled in part.
  Machine machine;
  const u64 at = machine.allocate(4096);
  OneAfterTheOther order;
  Toucher host;
  host.interval = order.first = machine.interpreter().next_interval();
  machine.memory().range(at, 3000, Access::write, host, order, "a fill");
  EXPECT_NO_THROW(machine.memory().range(at + 1, 2999, Access::read, host, order, "a copy"));
  EXPECT_THROW(machine.memory().range(at, 3001, Access::read, host, order, "a copy"), Fault);
  EXPECT_THROW(machine.memory().range(at + 3584, 256, Access::read, host, order, "a copy"), Fault);
  EXPECT_THROW(machine.memory().range(at + 4000, 97, Access::write, host, order, "a copy"), Fault);
}

TEST(PtxInterpreter, LaunchesOneAfterTheOtherRaceWithNothing) {
  Shape twice;
  twice.launches = 3;
  twice.grid.x = 4;
  EXPECT_EQ(fault_of("mov.u32 %r2, %ctaid.x;\nmul.wide.u32 %rd4, %r2, 4;\nadd.s64 %rd4, %rd4, "
                     "%rd1;\nld.global.u32 %r3, [%rd4];\nst.global.u32 [%rd4], 9;\nret;",
                     twice),
            "");
}

// ---- copies on their way

TEST(PtxInterpreter, FindsCopiesThatAreUsedBeforeTheyArrive) {
  const std::string copy =
      ".shared .align 16 .b8 a[2048];\nmov.u32 %r10, a;\nmul.lo.s32 %r11, %r1, 16;\nadd.s32 %r12, "
      "%r10, %r11;\n"
      "st.shared.v4.u32 [%r12], {%r1, %r1, %r1, %r1};\nbar.sync 0;\n"
      "mul.wide.u32 %rd4, %r1, 16;\nadd.s64 %rd5, %rd1, %rd4;\nmov.u32 %r9, 16;\n"
      "cp.async.cg.shared.global [%r12], [%rd5], 16, %r9;\n";
  const std::string wait = "cp.async.wait_all;\n", load = "ld.shared.u32 %r2, [%r12];\n";
  expect_found(copy + load + wait + "ret;", copy + wait + load + "ret;",
               "while a copy to it is on its way", threads(64));
  expect_found(copy + "st.shared.u32 [%r12], 5;\n" + wait + "ret;",
               copy + wait + "st.shared.u32 [%r12], 5;\nret;", "while a copy to it is on its way",
               threads(64));
  expect_found(copy + "ret;", copy + wait + "ret;", "ends while copies", threads(64));
  // What another thread copied is there after its wait and a barrier.
  const std::string other =
      "xor.b32 %r13, %r11, 512;\nadd.s32 %r13, %r13, %r10;\nld.shared.u32 %r3, [%r13];\n";
  for (u64 seed = 1; seed <= kSeeds; ++seed) {
    const std::string fault = fault_of(copy + wait + other + "ret;", threads(64), seed);
    EXPECT_TRUE(fault.find("race: a ") != std::string::npos ||
                fault.find("on its way") != std::string::npos)
        << fault;
  }
  EXPECT_EQ(fault_of(copy + wait + "bar.sync 0;\n" + other + "ret;", threads(64)), "");
  // The place that it is copied from must stay as it is.
  expect_found(copy +
                   "bar.sync 0;\nxor.b32 %r8, %r1, 32;\nmul.wide.u32 %rd6, %r8, 16;\nadd.s64 %rd6, "
                   "%rd6, %rd1;\nst.global.u32 [%rd6], 1;\n" +
                   wait + "ret;",
               copy + wait +
                   "bar.sync 0;\nxor.b32 %r8, %r1, 32;\nmul.wide.u32 %rd6, %r8, 16;\nadd.s64 %rd6, "
                   "%rd6, %rd1;\nst.global.u32 [%rd6], 1;\nret;",
               "race: ", threads(64));
  expect_found(
      ".shared .align 16 .b8 a[64];\nmov.u32 %r10, a;\nadd.s64 %rd4, %rd1, "
      "4;\ncp.async.cg.shared.global [%r10], [%rd4], 16;\ncp.async.wait_all;\nret;",
      ".shared .align 16 .b8 a[64];\nmov.u32 %r10, a;\nadd.s64 %rd4, %rd1, "
      "16;\ncp.async.cg.shared.global [%r10], [%rd4], 16;\ncp.async.wait_all;\nret;",
      "misaligned");
}

TEST(PtxInterpreter, CopiesAsManyBytesAsAreAskedForAndZeros) {
  Module module(one_kernel(R"(
    .shared .align 16 .b8 a[2048];
    ld.param.u64 %rd1, [k_param_0]; mov.u32 %r1, %tid.x;
    mov.u32 %r10, a; mul.lo.s32 %r11, %r1, 16; add.s32 %r12, %r10, %r11;
    mul.wide.u32 %rd4, %r1, 16; add.s64 %rd5, %rd1, %rd4;
    cp.async.cg.shared.global [%r12], [%rd5], 16, %r1;
    cp.async.wait_all;
    ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [%r12];
    st.global.v4.u32 [%rd5], {%r2, %r3, %r4, %r5};
    ret;)"));
  Machine machine;
  const u64 at = machine.upload(std::vector<u8>(17 * 16, 0xaa));
  machine.run(*module.find("k"), {}, {17, 1, 1}, {at});
  const auto bytes = machine.download<u8>(at, 17 * 16);
  for (u32 k = 0; k < 17; ++k)
    for (u32 b = 0; b < 16; ++b) EXPECT_EQ(bytes[16 * k + b], b < k ? 0xaa : 0) << k;
}

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
                                  "ld.volatile.global.u32 %r2, [%rd1];",
                                  "ld.global.nc.u32 %r2, [%rd1];",
                                  "ld.local.u32 %r2, [%rd1];",
                                  "atom.global.max.u32 %r2, [%rd1], 1;",
                                  "atom.shared.add.u32 %r2, [%rd1], 1;",
                                  "red.global.add.u32 [%rd1], 1;",
                                  "cvt.u32.f32 %r2, %f1;",
                                  "cvt.rn.f32.f32 %f1, %f2;",
                                  "cvt.rzi.sat.s32.f32 %r2, %f1;",
                                  "cvt.rn.tf32.f32 %r2, %f1;",
                                  "call foo;",
                                  "trap;",
                                  "membar.gl;",
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
                                  "bar.sync 0, 32;",
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
    "and.pred atom.global.add.u32 atom.global.add.u64 bar.sync bar.warp.sync bfi.b32 bfi.b64 "
    "bfind.shiftamt.u32 bra bra.uni brev.b32 cp.async.cg.shared.global cp.async.wait_all "
    "cvt.f64.f32 cvt.rmi.f64.f64 cvt.rn.f32.f64 cvt.rn.f32.s32 cvt.rn.f32.u16 cvt.rn.f32.u32 "
    "cvt.rn.f64.s32 cvt.rn.f64.s64 cvt.rn.f64.u16 cvt.rn.f64.u32 cvt.rn.f64.u64 cvt.rna.tf32.f32 "
    "cvt.rni.f64.f64 cvt.rni.s32.f32 cvt.rpi.f64.f64 cvt.rzi.f64.f64 cvt.rzi.s64.f64 "
    "cvt.rzi.u64.f64 cvt.s16.s8 cvt.s32.s16 cvt.s32.s8 cvt.s64.s32 cvt.s8.s32 cvt.s8.s64 "
    "cvt.u16.u32 cvt.u16.u64 cvt.u32.u16 cvt.u32.u64 cvt.u64.u32 cvta.shared.u64 "
    "cvta.to.global.u64 div.rn.f32 div.rn.f64 div.s32 div.s64 div.u32 div.u64 fma.rn.f32 "
    "fma.rn.f64 ld.f32 ld.global.f32 ld.global.f64 ld.global.s32 ld.global.u16 ld.global.u32 "
    "ld.global.u64 ld.global.u8 ld.param.f32 ld.param.f64 ld.param.s32 ld.param.u32 ld.param.u64 "
    "ld.param.u8 ld.s32 ld.shared.f32 ld.shared.f64 ld.shared.u32 ld.shared.u64 ld.shared.u8 "
    "ld.u32 mad.lo.s16 mad.lo.s32 mad.lo.s64 max.f32 max.s32 max.s64 max.u32 max.u64 min.f32 "
    "min.s32 min.s64 mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 mov.b32 mov.b64 mov.f32 "
    "mov.f64 mov.pred mov.u16 mov.u32 mov.u64 mul.f32 mul.f64 mul.hi.s16 mul.hi.s32 mul.hi.u16 "
    "mul.hi.u32 mul.lo.s16 mul.lo.s32 mul.lo.s64 mul.rn.f64 mul.wide.s16 mul.wide.s32 "
    "mul.wide.u16 mul.wide.u32 neg.f32 neg.f64 neg.s32 neg.s64 not.b32 not.b64 not.pred or.b32 "
    "or.b64 or.pred popc.b32 rcp.approx.ftz.f64 rcp.rn.f32 rcp.rn.f64 rem.s32 rem.s64 rem.u32 "
    "rem.u64 ret selp.b16 selp.b32 selp.b64 selp.f32 selp.f64 selp.s32 selp.u16 selp.u32 "
    "selp.u64 setp.eq.b32 setp.eq.b64 setp.eq.f32 setp.eq.f64 setp.eq.s16 setp.eq.s32 "
    "setp.eq.s64 setp.equ.f32 setp.ge.s32 setp.ge.s64 setp.ge.u32 setp.geu.f32 setp.geu.f64 "
    "setp.gt.f32 setp.gt.f64 setp.gt.s32 setp.gt.s64 setp.gt.u32 setp.gt.u64 setp.le.f32 "
    "setp.le.s32 setp.le.s64 setp.le.u32 setp.le.u64 setp.leu.f32 setp.leu.f64 setp.lt.f32 "
    "setp.lt.f64 setp.lt.s32 setp.lt.s64 setp.lt.u32 setp.lt.u64 setp.ltu.f32 setp.ltu.f64 "
    "setp.nan.f32 setp.ne.f32 setp.ne.s16 setp.ne.s32 setp.ne.s64 setp.neu.f32 setp.neu.f64 "
    "shf.l.wrap.b32 shfl.sync.bfly.b32 shfl.sync.up.b32 shl.b16 shl.b32 shl.b64 shr.s16 shr.s32 "
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
