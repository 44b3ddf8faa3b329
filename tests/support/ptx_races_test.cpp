// The interpreter finds races, in a block, between blocks and between launches, and copies that are
// used before they arrive.

#include <gtest/gtest.h>

#include "tests/support/ptx_faults.hpp"

namespace cudp::ptx {
namespace {

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

/// bar.sync with a number and a count orders those that come to it, and nobody else.
TEST(PtxInterpreter, FindsRacesAroundNamedBarriers) {
  // Of four warps, %r14 is the word of the other in the same half, %r15 of one in the other half.
  const std::string begin =
      kShared +
      "shr.u32 %r16, %r1, 6;\nadd.s32 %r16, %r16, 1;\nxor.b32 %r15, %r1, 64;\n"
      "mul.lo.s32 %r15, %r15, 4;\nadd.s32 %r15, %r10, %r15;\n";
  const std::string write = "st.shared.u32 [%r12], %r1;\n", half = "ld.shared.u32 %r2, [%r14];\n",
                    other = "ld.shared.u32 %r2, [%r15];\n", named = "bar.sync %r16, 64;\n",
                    all = "bar.sync 0;\n";
  expect_found(begin + write + half + "ret;", begin + write + named + half + "ret;", "race: a ",
               threads(128));
  expect_found(begin + write + named + half + write + "ret;",
               begin + write + named + half + named + write + "ret;", "race: a ", threads(128));
  expect_found(begin + write + named + other + "ret;", begin + write + named + all + other + "ret;",
               "race: a ", threads(128));
  expect_found(begin + write + named + other + "ret;",
               begin + write + "bar.sync 3, 128;\n" + other + "ret;", "race: a ", threads(128));
  // One half may pass its barrier more often, and what it knew of the other half stays known.
  EXPECT_EQ(fault_of(begin + write + "bar.sync 3, 128;\nsetp.eq.s32 %p1, %r16, 1;\n@%p1 bra $A;\n" +
                         named + named + "$A:\n" + named + other + "ret;",
                     threads(128)),
            "");
  expect_found(begin + "bar.sync 5, 96;\nret;", begin + "bar.sync 5, 128;\nret;",
               "too few threads reach", threads(64 + 64));
  expect_found(begin + "bar.sync 16, 128;\nret;", begin + "bar.sync 15, 128;\nret;",
               "that no device has", threads(128));
}

TEST(PtxInterpreter, FindsRacesBetweenLanesOfAWarp) {
  const std::string write = "st.shared.u32 [%r12], %r1;\n", lanes = "ld.shared.u32 %r2, [%r13];\n",
                    barrier = "bar.warp.sync -1;\n";
  expect_found(kShared + write + lanes + "ret;", kShared + write + barrier + lanes + "ret;",
               "race: a read", threads(32));
  expect_found(kShared + write + barrier + lanes + write + "ret;",
               kShared + write + barrier + lanes + barrier + write + "ret;",
               "race: a write after another thread's read", threads(32));
  // ldmatrix reads 16 bytes at each of the addresses that it uses.
  const std::string row =
      "and.b32 %r4, %r1, 7;\nshl.b32 %r4, %r4, 4;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 "
      "{%r5}, [%r4];\n";
  expect_found(kShared + write + row + "ret;", kShared + write + barrier + row + "ret;",
               "race: a read", threads(32));
  expect_found(kShared + write + barrier + row + write + "ret;",
               kShared + write + barrier + row + barrier + write + "ret;",
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

/// The last of the blocks that count themselves after a barrier and a fence may write what the
/// others have read, after a fence of its own.
TEST(PtxInterpreter, FencesAndACounterOrderTheLastBlockAfterTheOthers) {
  Shape blocks;
  blocks.grid.x = 5;
  blocks.block.x = 64;
  const std::string barrier = "bar.sync 0;\n", fence = "membar.gl;\n";
  const auto body = [](const std::string& before, const std::string& first,
                       const std::string& second) {
    return "ld.global.u32 %r3, [%rd1+4];\n" + before + "setp.ne.s32 %p1, %r1, 0;\n@%p1 bra $E;\n" +
           first + "atom.global.add.u32 %r2, [%rd1], 1;\nsetp.ne.s32 %p2, %r2, 4;\n@%p2 bra $E;\n" +
           second +
           "ld.global.u32 %r4, [%rd1+4];\nst.global.u32 [%rd1+4], 7;\nst.global.u32 [%rd1], "
           "0;\n$E:\nret;";
  };
  const std::string right = body(barrier, fence, fence), race = "race: a ";
  expect_found(body("", fence, fence), right, race, blocks);
  expect_found(body(barrier, "", fence), right, race, blocks);
  expect_found(body(barrier, fence, ""), right, race, blocks);
}

TEST(PtxInterpreter, AtomicsInSharedMemoryAddAndMayMeetEachOther) {
  const std::string zero =
      ".shared .align 4 .b8 a[4];\nmov.u32 %r4, a;\nsetp.eq.s32 %p1, %r1, 0;\n"
      "@%p1 st.shared.u32 [%r4], 0;\nbar.sync 0;\n";
  const std::string add = "atom.shared.add.u32 %r2, [%r4], 3;\n";
  expect_found(zero + add + "ld.shared.u32 %r3, [%r4];\nret;",
               zero + add + "bar.sync 0;\nld.shared.u32 %r3, [%r4];\nret;", "race: a read",
               threads(64));
  Module module(one_kernel("ld.param.u64 %rd1, [k_param_0];\nmov.u32 %r1, %tid.x;\n" + zero + add +
                           "bar.sync 0;\nld.shared.u32 %r3, [%r4];\n"
                           "@%p1 st.global.u32 [%rd1], %r3;\nret;"));
  for (u64 seed = 1; seed <= kSeeds; ++seed) {
    Machine machine(seed);
    const u64 at = machine.upload(std::vector<u32>(1));
    machine.run(*module.find("k"), {}, {96, 1, 1}, {at});
    EXPECT_EQ(machine.download<u32>(at, 1)[0], 288u);
  }
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
class Streams final : public HappensBefore {
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
    const auto touches = [&](u64 from, u64 to, Access how, HappensBefore& order) -> std::string {
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

/// A dependent launch may do before its wait what has nothing to do with its primary. It must wait.
TEST(PtxInterpreter, FindsDependentLaunchesThatDoNotWait) {
  const auto kernel = [](const std::string& body) {
    return one_kernel(
        "ld.param.u64 %rd1, [k_param_0];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\n"
        "add.s64 %rd3, %rd1, %rd2;\n" +
        body + "ret;");
  };
  Module primary(kernel("st.global.u32 [%rd3], 7;\nld.global.u32 %r2, [%rd3+1024];\n"));
  const auto said = [&](const std::string& body) -> std::string {
    Module dependent(kernel(body));
    Machine machine;
    const u64 at = machine.upload(std::vector<u32>(1024, 1));
    OneAfterTheOther order;
    order.operation_before = machine.interpreter().next_interval();
    try {
      machine.run(*primary.find("k"), {}, {64, 1, 1}, {at});
      Launch l{.kernel = dependent.find("k"), .block = {64, 1, 1}, .is_dependent = true};
      l.parameters.resize(8);
      std::memcpy(l.parameters.data(), &at, 8);
      machine.interpreter().run(l, order);
    } catch (const Fault& fault) {
      return fault.what();
    }
    return "";
  };
  const std::string wait = "griddepcontrol.wait;\n", other = "ld.global.u32 %r5, [%rd3+2048];\n",
                    read = "ld.global.u32 %r4, [%rd3];\n",
                    write = "st.global.u32 [%rd3+1024], 1;\n";
  EXPECT_EQ(said(other + wait + read + write), "");
  EXPECT_NE(
      said(read + wait + write).find("race: nothing orders it after the operation that wrote"),
      std::string::npos);
  EXPECT_NE(said(write + wait + read).find("race: nothing orders it after the operation that read"),
            std::string::npos);
  EXPECT_NE(said(other).find("ends without a wait"), std::string::npos);
  EXPECT_NE(said("setp.eq.s32 %p1, %r1, 3;\n@%p1 ret;\n" + wait).find("ends without a wait"),
            std::string::npos);
}

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

}  // namespace
}  // namespace cudp::ptx
