// What comes before what, of operations in lines, and of copies that the interpreter's memory sees.
#include "tests/support/ptx/history.hpp"

#include <gtest/gtest.h>

namespace cudp::ptx {
namespace {

TEST(PtxHistory, KnowsWhatAClockSays) {
  History h;
  const u32 a = h.new_line();
  const u32 b = h.new_line();
  const Clock first = h.begin(a, {}, 10);
  const Clock second = h.begin(b, {}, 20);
  EXPECT_TRUE(h.is_known(12, first));
  EXPECT_FALSE(h.is_known(20, first));
  EXPECT_FALSE(h.is_known(19, second)) << "intervals are the operation's until the next one's";
  Clock both = first;
  both.join(second);
  EXPECT_TRUE(h.is_known(12, both));
  EXPECT_TRUE(h.is_known(25, both));
  EXPECT_TRUE(h.is_all_known(both));
  EXPECT_FALSE(h.is_all_known(second));

  // A third, which waited for the second, is not after the first.
  const KnownOperations order(h, second);
  EXPECT_TRUE(order.before(20));
  EXPECT_FALSE(order.before(10));
  EXPECT_TRUE(order.before(0)) << "nobody had it";
}

TEST(PtxHistory, ForgetsWhatTheHostHasWaitedFor) {
  History h;
  const u32 a = h.new_line();
  h.host_waits_for(h.begin(a, {}, 10));
  const u32 b = h.new_line();
  const Clock later = h.begin(b, h.host(), 20);
  EXPECT_TRUE(h.is_known(10, later));
  EXPECT_TRUE(KnownOperations(h, later).before(10));
}

TEST(PtxHistory, UsesALineAgainOnlyWhenAllOfItHasEnded) {
  History h;
  const u32 a = h.new_line();
  const Clock ended = h.begin(a, {}, 10);
  h.give_back(a);
  const u32 b = h.new_line();
  EXPECT_NE(b, a);
  h.host_waits_for(ended);
  EXPECT_EQ(h.new_line(), a);
}

/// A copy in one stream and a fill in another, as an engine's memory sees them.
TEST(PtxHistory, OrdersCopies) {
  DeviceMemory memory(1 << 20);
  const u64 p = memory.allocate(64);
  History h;
  const u32 a = h.new_line();
  const u32 b = h.new_line();
  u32 interval = 0;
  const auto write = [&](u32 line, const Clock& known) {
    KnownOperations order(h, known);
    order.first = interval += 10;
    const Clock ended = h.begin(line, known, order.first);
    memory.range(p, 64, Access::write, {.interval = order.first}, order, "a fill");
    return ended;
  };
  const Clock first = write(a, {});
  EXPECT_NO_THROW(write(b, write(a, first)));
  EXPECT_THROW(write(a, first), Fault) << "the other line has written meanwhile";
}

}  // namespace
}  // namespace cudp::ptx
