#include "runtime/base/busy.hpp"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace cudp {
namespace {

using namespace std::chrono_literals;

TEST(Busy, SaysThatItGoesOnAndHowFarItIs) {
  testing::internal::CaptureStderr();
  {
    Busy busy("cudp account", Busy::Shown::always, 5ms);
    busy.done(0.25);
    std::this_thread::sleep_for(60ms);
  }
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(text.starts_with("cudp account: 25 % after 0 s\n")) << text;
}

TEST(Busy, SaysNothingOfWhatIsQuick) {
  testing::internal::CaptureStderr();
  { const Busy busy("cudp account"); }
  {
    const Busy busy("cudp account", Busy::Shown::never, 1ms);
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

/// Standard error of a test is no terminal.
TEST(Busy, SaysInNoLogWhatIsForATerminalAlone) {
  testing::internal::CaptureStderr();
  {
    Busy busy("reading 'a.csv'", Busy::Shown::on_terminal, 1ms);
    busy.done(0.5);
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Busy, BeginsAnewUnderAnotherName) {
  testing::internal::CaptureStderr();
  {
    Busy busy("counting the rows of 'a.csv'", Busy::Shown::always, 5ms);
    busy.done(1.0);
    busy.next("reading 'a.csv'");
    std::this_thread::sleep_for(60ms);
  }
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(text.starts_with("reading 'a.csv': 0 s\n")) << text;
}

}  // namespace
}  // namespace cudp
