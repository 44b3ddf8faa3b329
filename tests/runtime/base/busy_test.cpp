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
    Busy busy("cudp account", false, 5ms);
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
    const Busy busy("cudp account", true, 1ms);
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace cudp
