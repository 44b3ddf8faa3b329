#include "runtime/base/interrupt.hpp"

#include <csignal>
#include <cstdlib>

#include <gtest/gtest.h>

namespace cudp {
namespace {

/// A signal in the last moments of a complete run must not change its exit code.
TEST(EndOnSignal, LeavesSignalsIgnoredThatAreIgnoredByItsEnd) {
  const auto end_of_a_run = [] {
    {
      const EndOnSignal end("interrupted");
      ignore_signals();
    }
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) (void)std::raise(signal);
    std::_Exit(0);
  };
  EXPECT_EXIT(end_of_a_run(), testing::ExitedWithCode(0), "");
}

TEST(EndOnSignal, RestoresWhatASignalDidBefore) {
  const auto ended_by_the_signal = [] {
    (void)std::signal(SIGTERM, SIG_DFL);
    { const EndOnSignal end("interrupted"); }
    (void)std::raise(SIGTERM);
    std::_Exit(0);
  };
  EXPECT_EXIT(ended_by_the_signal(), testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace cudp
