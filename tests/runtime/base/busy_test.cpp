#include "runtime/base/busy.hpp"

#include <chrono>
#include <regex>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "tests/support/temporary_folder.hpp"
#include "tests/support/wait_until.hpp"

namespace cudp {
namespace {

using namespace std::chrono_literals;

/// Waits until the captured stderr has a line that matches. Returns whether it has.
bool comes_on_stderr(const std::string& line) {
  const std::regex found("(^|\n)" + line + "\n");
  return wait_until([&] { return std::regex_search(content_of("/proc/self/fd/2"), found); });
}

TEST(Busy, SaysThatItGoesOnAndHowFarItIs) {
  testing::internal::CaptureStderr();
  bool is_shown = false;
  {
    Busy busy("cudp account", Busy::Shown::always, 5ms);
    busy.done(0.25);
    is_shown = comes_on_stderr("cudp account: 25 % after [0-9]+ s");
  }
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(is_shown) << text;
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
  bool is_shown = false;
  {
    Busy busy("counting the rows of 'a.csv'", Busy::Shown::always, 5ms);
    busy.done(1.0);
    busy.next("reading 'a.csv'");
    is_shown = comes_on_stderr("reading 'a.csv': [0-9]+ s");
  }
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(is_shown) << text;
}

}  // namespace
}  // namespace cudp
