#include "runtime/base/timings.hpp"

#include <thread>

#include <gtest/gtest.h>

namespace cudp {
namespace {

void spin(double seconds) {
  const ThreadClock clock;
  while (clock.spent().cpu < seconds) {
  }
}

TEST(Timings, AddUpPhasesOfOneName) {
  Timings timings;
  timings.enter("reading");
  spin(0.02);
  timings.enter("waiting");
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  timings.enter("reading");
  spin(0.02);
  const std::vector<Timings::Phase> phases = timings.phases();
  ASSERT_EQ(phases.size(), 3u);
  EXPECT_EQ(phases[0].name, "program start");
  EXPECT_EQ(phases[1].name, "reading");
  EXPECT_GE(phases[1].spent.wall, 0.04);
  EXPECT_GE(phases[1].spent.cpu, 0.035);
  EXPECT_EQ(phases[2].name, "waiting");
  EXPECT_GE(phases[2].spent.wall, 0.03);
  EXPECT_LT(phases[2].spent.cpu, 0.02);
}

TEST(Timings, ListWorkOfOtherThreadsApart) {
  Timings timings;
  timings.enter("all");
  for (int i = 0; i < 2; ++i)
    std::thread([&] {
      const ThreadClock clock;
      spin(0.01);
      timings.add_beside("accountant", clock.spent());
    }).join();
  const std::vector<Timings::Phase> beside = timings.beside();
  ASSERT_EQ(beside.size(), 1u);
  EXPECT_EQ(beside[0].name, "accountant");
  EXPECT_GE(beside[0].spent.cpu, 0.02);
  const std::vector<std::string> table = timings_table(timings);
  ASSERT_EQ(table.size(), 5u);
  EXPECT_TRUE(table[2].starts_with("  all ")) << table[2];
  EXPECT_TRUE(table[3].starts_with("  all of it ")) << table[3];
  EXPECT_TRUE(table[4].starts_with("  meanwhile: accountant ")) << table[4];
}

}  // namespace
}  // namespace cudp
